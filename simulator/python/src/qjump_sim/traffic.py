"""Traffic: flows from a list or a distribution of sizes, and sources of datagrams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qjump_sim import _native
from qjump_sim.arrays import ReadOnly
from qjump_sim.readers import points, text
from qjump_sim.units import Bytes

_LATEST = 1 << 62  # ps: 53 of the 213 days that the simulator's clock holds
_LARGEST = 2**32 - 1
_NOTHING = -1
"""Marks a flow without a setting of its own."""
_COLUMNS = ("start", "src", "dst", "packets", "level", "transport", "deadline", "bytes")
"""The columns of `Flows`."""


@dataclass(frozen=True)
class Sizes:
    """A distribution of flow sizes: `points` of packets and the share of flows that are not larger, from share 0 to share 1; linear in between,
    rounded up.

    Their load is that of what is sent, in packets of the transport's size; "search" and "mining" have the mean that was published with them.

    >>> traffic = Poisson(Sizes([(1, 0), (6, 0.5), (100, 1)]), load=0.4, count=1000)
    """

    points: Sequence[tuple[int, float]]

    @classmethod
    def read(cls, path: str | PathLike[str], payload: int | None = None) -> Sizes:
        """Read lines of packets and share; empty lines and lines that start with # are skipped.

        `payload`: sizes are bytes, of which a packet carries so many, such as 1,460. Shares up to
        100 are per cent. So HPCC's files are read (`traffic_gen/WebSearch_distribution.txt` in
        github.com/alibaba-edu/High-Precision-Congestion-Control: bytes and per cent from `0 0` on),
        and those for htsim in github.com/TritonNetworking/opera-sim (`Figure1_traffic/websearch.csv`:
        bytes and share with a comma). A third number between the two is ignored: the published
        scripts' files are ns-2's, with value, count and share. Byte-order marks and the ends of
        lines of any editor are accepted.

        Raises OSError, and ValueError with the file, the line and what was expected.
        """
        if payload is not None and payload < 1:
            raise ValueError(f"payload: {payload} is not a number of bytes above 0")
        return cls(points(path, payload))


@dataclass(frozen=True)
class _Drawn:
    sizes: Literal["search", "mining"] | Sizes
    load: float
    count: int


class Poisson(_Drawn):
    """`count` flows; each ordered pair of hosts is a Poisson process.

    `sizes`: web search or data mining as in pFabric and QJump, or one's own. `load`: share of the slowest host cable's rate, above 0 and at most
    1; ACKs not counted.

    >>> traffic = Poisson("search", load=0.6, count=1000)
    """


class Published(_Drawn):
    """Like `Poisson`, but with the generators and seeds of the scripts published with QJump: flows
    to one host start nearly together, with nearly equal sizes. The scenario's seed 1 gives the
    published flows, to the nanosecond.

    >>> traffic = Published("mining", load=0.6, count=1000)
    """


class Flows(ReadOnly):
    """A list of flows, in any order. `start` in ps, at most 2**62 (53 days), `src` and `dst` as
    numbers of hosts, `packets` of data: int64, shape (n,), read-only. So are the columns of the
    flows' own settings, where -1 means none: `level` (else that of the size), `transport` (0 is
    the scheme's, 1 to 3 are its `others`), `deadline` (in ps) and `bytes` on the wire (else all
    packets are full). Flows are equal if their columns are.

    >>> flows = Flows(start=[0, us(5)], src=[0, 1], dst=[2, 2], packets=[6, 100], deadline=[ms(1), -1])
    >>> flows
    Flows(<2 flows>)
    """

    _ROWS = "flows"

    def __init__(
        self,
        start: ArrayLike,
        src: ArrayLike,
        dst: ArrayLike,
        packets: ArrayLike,
        level: ArrayLike | None = None,
        transport: ArrayLike | None = None,
        deadline: ArrayLike | None = None,
        bytes: ArrayLike | None = None,
    ) -> None:
        """From sequences or arrays of whole numbers, each of shape (n,). Raises ValueError with the
        column, and with the flow if it concerns one."""
        self.start: Final = _whole("start", start, _LATEST)
        self.src: Final = _whole("src", src, _LARGEST)
        self.dst: Final = _whole("dst", dst, _LARGEST)
        self.packets: Final = _whole("packets", packets, _LARGEST)
        self.level: Final = self._own("level", level, 7)
        self.transport: Final = self._own("transport", 0 * self.start if transport is None else transport, 3, least=0)
        self.deadline: Final = self._own("deadline", deadline, _LATEST)
        self.bytes: Final = self._own("bytes", bytes, _LATEST)
        for name in _COLUMNS:
            if len(column := getattr(self, name)) != len(self.start):
                raise ValueError(f"flows.{name}: it has {len(column)} values, start has {len(self.start)}")

    def _own(self, name: str, values: ArrayLike | None, largest: int, least: int = _NOTHING) -> NDArray[np.int64]:
        return _whole(name, np.full(len(self.start), _NOTHING) if values is None else values, largest, least)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Flows:
        """Read lines of seconds, source, destination and packets; empty lines and lines that start
        with # are skipped.

        Seconds are decimals, also as Python prints small ones (`1e-05`), read exactly to the
        picosecond. Byte-order marks and the ends of lines of any editor are accepted. Raises
        OSError, and ValueError with the file, the line and what was expected.
        """
        lines = text(path)
        try:
            columns = _native.read_flows(lines)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        start, src, dst, packets = (np.frombuffer(column, np.int64) for column in columns)
        return cls(start, src, dst, packets)


def _whole(name: str, values: ArrayLike, largest: int, least: int = 0) -> NDArray[np.int64]:
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"flows.{name}: it is no array of shape (n,)") from error
    if array.ndim != 1:
        raise ValueError(f"flows.{name}: its shape is {array.shape}, not (n,)")
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"flows.{name}: its values are {array.dtype}, not whole numbers")
    wrong = np.flatnonzero((array < least) | (array > largest)) if array.size else array
    if wrong.size:
        raise ValueError(f"flows.{name}[{wrong[0]}]: {array[wrong[0]]} is not a whole number from {least} to {largest}")
    column = array.astype(np.int64)
    column.setflags(write=False)
    return column


@dataclass(frozen=True)
class Source:
    """A source of `count` datagrams from host `src` to host `dst`, without acknowledgements.

    `gap`: ps between two, at most 1,000 s; with `poisson` the mean of exponential ones, the first of which is counted from `first` (ps). `bytes` on
    the wire, 1 to 65,535; with `exponential` their mean. `level` 0 to 7; 0 is served first.

    >>> source = Source(src=0, dst=1, gap=us(10), bytes=1500, count=1000, poisson=True)
    """

    src: int
    dst: int
    gap: int
    bytes: int | Bytes
    count: int
    first: int = 0
    level: int = 0
    poisson: bool = False
    exponential: bool = False
