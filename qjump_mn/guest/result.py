"""What comes out of the guest: one tar stream and a trailer, checked before anything of it is written to
disk."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path, PurePosixPath

import msgspec

from qjump_mn.errors import LostError

_TRAILER_BYTES = 512  # the agent's constant


class Trailer(msgspec.Struct, frozen=True):
    """The last 512 bytes of the stream: how many bytes came before, their sha256, how the job ended and when
    it began."""

    bytes: int
    sha256: str
    exit_code: int
    virtual_ns: int
    started_ns: int


def unpack(stream: Path, out: Path) -> Trailer | None:
    """Check the stream and write its files below `out`; None when there is no trailer, for then the guest did
    not get there.

    Only files and folders are taken, and only below `out`. Raises LostError when the stream is damaged.
    """
    data = stream.read_bytes()
    try:
        trailer = msgspec.json.decode(data[-_TRAILER_BYTES:], type=Trailer)
    except msgspec.DecodeError:
        return None
    payload = data[:-_TRAILER_BYTES]
    if len(payload) != trailer.bytes or hashlib.sha256(payload).hexdigest() != trailer.sha256:
        raise LostError(
            f"the guest's result is damaged: {len(payload)} of {trailer.bytes} bytes came through"
        )
    with tarfile.open(fileobj=io.BytesIO(payload)) as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts:
                raise LostError(f"the guest's result holds a file outside its folder: {member.name}")
            path = out / name
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            elif member.isreg():
                path.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(member)
                assert content is not None
                path.write_bytes(content.read())
    return trailer
