"""Unpack a guest's result, a tar stream with a trailer, after checking it."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path, PurePosixPath

import msgspec

from qjump_mn.errors import LostError

_TRAILER_BYTES = 512  # the agent's constant


class Trailer(msgspec.Struct, frozen=True):
    """The last 512 bytes of the stream: size and hash of the rest, the job's status and times."""

    bytes: int
    sha256: str
    exit_code: int
    virtual_ns: int
    started_ns: int


def unpack(stream: Path, out: Path) -> Trailer | None:
    """Check the stream, write its files and folders below `out`, and return its trailer.

    Returns None if there is no trailer, because the guest ended too early. Raises LostError if the
    stream is damaged, or has a file outside `out`.
    """
    data = stream.read_bytes()
    try:
        trailer = msgspec.json.decode(data[-_TRAILER_BYTES:], type=Trailer)
    except msgspec.DecodeError:
        return None
    payload = data[:-_TRAILER_BYTES]
    if len(payload) != trailer.bytes or hashlib.sha256(payload).hexdigest() != trailer.sha256:
        raise LostError(
            f"the guest's result is damaged: got {len(payload)} of {trailer.bytes} bytes"
        )
    with tarfile.open(fileobj=io.BytesIO(payload)) as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts:
                raise LostError(
                    f"the guest's result holds a file outside its folder: {member.name}"
                )
            path = out / name
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            elif member.isreg():
                path.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(member)
                assert content is not None
                path.write_bytes(content.read())
    return trailer
