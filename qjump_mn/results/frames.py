"""Read and write what was recorded of every frame, in the guest (steps/frames.py) or of the
simulator's trace (simulation/recording.py)."""

from __future__ import annotations

import base64
import binascii
import zlib
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from qjump_mn.model import filenames

Numbers = npt.NDArray[np.int64]

_MAX_ROWS = 1 << 20
"""Of a file that is read: a stranger's may be of any size."""
_MAX_HEAD_BYTES = 256


class Columns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number for each frame and drop, in the order of the events, as 64-bit integers that are
    compressed (zlib) and in base64. ``device`` and ``packet`` are indices; ``arrival`` is the
    difference from the row before."""

    device: str
    level: str
    length: str
    tag: str
    arrival: str
    waited: str
    crossed: str
    packet: str


class Recorded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: every frame that waited or crossed a wire between ``from_ns`` and ``to_ns`` of the
    trial's clock, but the ``lost`` last events, for which there was no room. ``heads`` has the
    different first bytes of frames, each after its length in one byte."""

    from_ns: int
    to_ns: int
    lost: int
    devices: list[str]
    columns: Columns
    heads: str


class Frames(NamedTuple):
    """A row for each frame at each wire, and for each drop there.

    ``device`` is the index of the sending port in ``devices``; ``length`` is in bytes with FCS,
    ``tag`` is that of 802.1Q, or -1; times are ns. A frame came to the port at ``arrival``, waited
    for ``waited``, and was at the other end ``crossed`` later. It was dropped if ``waited`` is -1;
    if ``crossed`` is -1, it waited at least so long, and no more is known of it. ``head`` is the
    index of the frame's first bytes, without its tag, in ``heads``. Between ``from_ns`` and
    ``to_ns`` no frame is missing, but what a simulated switch with several ways kept for longer;
    ``lost`` events came later.
    """

    from_ns: int
    to_ns: int
    lost: int
    devices: list[str]
    device: Numbers
    level: Numbers
    length: Numbers
    tag: Numbers
    arrival: Numbers
    waited: Numbers
    crossed: Numbers
    head: Numbers
    heads: list[bytes]

    @property
    def start(self) -> Numbers:
        """When each frame began to leave, in ns."""
        return self.arrival + self.waited

    @property
    def handover(self) -> Numbers:
        """When each frame's last bit was at the other end, in ns."""
        return self.start + self.crossed

    @property
    def dropped(self) -> npt.NDArray[np.bool_]:
        """Whether each row is a drop."""
        return self.waited < 0

    def known(self) -> Frames:
        """Return the frames without those of which it is not known whether they were sent."""
        rows = self.crossed >= 0
        columns = {
            name: column[rows]
            for name, column in self._asdict().items()
            if isinstance(column, np.ndarray)
        }
        return Frames(**{**self._asdict(), **columns})


def read(trial: Path) -> Frames | None:
    """Return a trial's frames; None if it was not watched.

    Raises OSError, or ValueError for a file that is damaged.
    """
    path = trial / filenames.FRAMES
    if not path.exists():
        return None
    recorded = msgspec.json.decode(path.read_bytes(), type=Recorded)
    columns = {
        name: _numbers(text) for name, text in msgspec.structs.asdict(recorded.columns).items()
    }
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError(f"{path}: its columns are not of one length")
    heads = list(_heads(_unpacked(recorded.heads, _MAX_ROWS * _MAX_HEAD_BYTES)))
    head = columns.pop("packet")
    _check(path, columns, len(recorded.devices), head, len(heads))
    columns["arrival"] = np.cumsum(columns["arrival"])
    frames = Frames(
        recorded.from_ns, recorded.to_ns, recorded.lost, recorded.devices, **columns, head=head,
        heads=heads,
    )  # fmt: skip
    return frames._replace(to_ns=_complete_until(frames)) if recorded.lost else frames


def encode(frames: Frames) -> bytes:
    """Return the file with these frames."""

    def packed(data: bytes) -> str:
        return base64.b64encode(zlib.compress(data, 9)).decode()

    columns = {
        **frames._asdict(),
        "arrival": np.diff(frames.arrival, prepend=0),
        "packet": frames.head,
    }
    recorded = Recorded(
        frames.from_ns, frames.to_ns, frames.lost, frames.devices,
        Columns(**{
            name: packed(columns[name].astype("<i8").tobytes())
            for name in Columns.__struct_fields__
        }),
        packed(b"".join(bytes([len(head)]) + head for head in frames.heads)),
    )  # fmt: skip
    return msgspec.json.encode(recorded) + b"\n"


def _check(
    path: Path, columns: dict[str, Numbers], devices: int, head: Numbers, heads: int
) -> None:
    """Raise ValueError for numbers that no frame has."""
    ages = -(1 << 61), 1 << 61
    bounds = {
        "device": (0, devices),
        "level": (0, 8),
        "length": (0, 1 << 20),
        "tag": (-1, 1 << 16),
        **dict.fromkeys(("arrival", "waited", "crossed"), ages),
    }
    bad = [name for name, (least, most) in bounds.items() if _outside(columns[name], least, most)]
    bad += ["packet"] if _outside(head, 0, heads) else []
    if bad:
        raise ValueError(f"{path}: column {bad[0]} has a number that is out of range")


def _outside(numbers: Numbers, least: int, most: int) -> bool:
    return bool(len(numbers)) and not (numbers.min() >= least and numbers.max() < most)


def _complete_until(frames: Frames) -> int:
    """Return when the recording was last complete, if later events were lost.

    A frame is recorded when it starts; so what waited at the end is missing.
    """
    sent = ~frames.dropped
    if not sent.any():
        return frames.from_ns
    last, longest = int(frames.start[sent].max()), int(frames.waited[sent].max())
    return max(frames.from_ns, min(frames.to_ns, last - longest))


def _numbers(text: str) -> Numbers:
    return np.frombuffer(_unpacked(text, _MAX_ROWS * 8), dtype="<i8").astype(np.int64)


def _unpacked(text: str, most: int) -> bytes:
    """Decompress; raise ValueError for what is damaged, or longer than ``most`` bytes."""
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(text, validate=True), most)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"damaged: {error}") from None
    if not unpacker.eof:
        raise ValueError("damaged: it is cut off, or too long")
    return data


def _heads(data: bytes) -> list[bytes]:
    heads, place = [], 0
    while place < len(data):
        heads.append(data[place + 1 : place + 1 + data[place]])
        place += 1 + data[place]
    return heads
