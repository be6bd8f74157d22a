"""What is to be known of a run beside its outcome: samples over time, what became of each flow, every packet, and how far a run has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TextIO

import numpy as np
from numpy.typing import NDArray

from qjump_sim.arrays import ReadOnly

KINDS = ("data", "ack", "probe", "datagram", "syn", "syn-ack")
"""Of packets, as `Trace.kind` numbers them."""
End = tuple[Literal["host", "switch"], int]
BANDS = 9
"""Of a queue with levels: ACKs, and levels 0 to 7."""


@dataclass(frozen=True)
class Watch:
    """What to watch. The outcome is the same with any of it; a run takes longer, most with `trace` and `flows`."""

    ports: bool = False
    """`Outcome.ports`, and the columns of `series` that need them."""
    flows: bool = False
    """`Outcome.flows`."""
    every: int | None = None
    """`Outcome.series`, a sample every so many ps from 0 on."""
    until: int | None = None
    """The last sample's time, in ps; None: the run's end."""
    most: int | None = None
    """Samples of the series at most: of more, every second is forgotten and the time between two doubled, so that a run whose end nobody knows has a
    series of a known size."""
    trace: Sequence[int] | Literal["all"] | None = None
    """`Outcome.trace`: packets on the links of these hosts, both ways, or all."""


@dataclass(frozen=True, eq=False)
class Series(ReadOnly):
    """A network at instants, each after all that happened at it. Arrays of int64, read-only; ports are in the order of `Outcome.ports`."""

    ports: tuple[tuple[End, End], ...]
    """Both ends of each port's cable, such as `(("host", 3), ("switch", 0))`."""
    at: NDArray[np.int64]
    """The instants, in ps, shape (samples,)."""
    queued: NDArray[np.int64]
    """Bytes that each port had taken and not sent, shape (samples, ports)."""
    levels: NDArray[np.int64] | None
    """Of queues with levels: bytes that waited of ACKs and of levels 0 to 7, without the packet being sent, shape (samples, ports, 9); 0 of others.
    None if no queue has levels."""
    sent: NDArray[np.int64] | None
    """Bytes that each port has sent so far, shape (samples, ports); None without `Watch.ports`."""
    marked: NDArray[np.int64] | None
    """Packets that each port has marked so far, likewise."""
    dropped: NDArray[np.int64] | None
    """Packets that each port has dropped so far, likewise."""
    totals: NDArray[np.int64]
    """Of the whole network so far: packets dropped in queues, data sent again, data delivered with a mark, timeouts; shape (samples, 4)."""
    sample: NDArray[np.int64]
    """Rows of flows under way, shape (rows,): at which instant, by its place in `at`; ascending."""
    flow: NDArray[np.int64]
    """Which flow: its place in the outcome's arrays; an application's has what its path is chosen by, from 2**29 on."""
    window: NDArray[np.int64]
    """Packets that may be under way."""
    acknowledged: NDArray[np.int64]
    """Packets from the first on that are acknowledged."""

    @property
    def rate(self) -> NDArray[np.float64]:
        """What each port sent between two instants, in bit/s, shape (samples - 1, ports). Raises ValueError without `Watch.ports`."""
        if self.sent is None:
            raise ValueError("series.rate: the ports were not watched")
        rate: NDArray[np.float64] = np.diff(self.sent, axis=0) * 8e12 / np.diff(self.at)[:, None]
        return rate


@dataclass(frozen=True, eq=False)
class FlowCounts(ReadOnly):
    """What became of each flow's packets: arrays of int64, shape (flows,), read-only; the outcome's flows in their order, then those of
    applications that something happened to."""

    flow: NDArray[np.int64]
    """The flow, as `Series.flow` has it; messages of one connection of an application are one."""
    delivered: NDArray[np.int64]
    """Data packets that came to the receiver, those sent again too."""
    marked: NDArray[np.int64]
    """Of these, with a mark."""
    retransmitted: NDArray[np.int64]
    """Data packets sent again."""
    dropped: NDArray[np.int64]
    """Data packets dropped in queues or by a limiter, or lost with a link that failed."""
    timeouts: NDArray[np.int64]
    """Expired timers, a SYN's too."""
    waited: NDArray[np.int64]
    """Sum of the times that delivered data waited in queues, in ps."""
    waited_most: NDArray[np.int64]
    """Longest of them."""
    held: NDArray[np.int64]
    """Sum of the times that data waited in its host's limiter, in ps."""


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    now: int
    """Simulated time, in ps."""
    finished: int
    """Flows that have finished, of the `flows` that are not applications'."""
    flows: int
    share: float
    """Of all their packets, the share that is acknowledged; or of the time until `Scenario.stop`, if that is more. 0 where there are neither."""
    elapsed: float
    """Seconds since the run began."""

    @property
    def left(self) -> float | None:
        """Seconds that it will still take, if it goes on as it went; None as long as nobody knows."""
        return self.elapsed * (1 - self.share) / self.share if self.share > 0 else None


def progress_line(progress: Progress) -> str:
    """A line for people: `12 % of all packets, 34.5 ms simulated, 1,200 of 10,000 flows finished; 5 s, 37 s left`."""
    left = "" if progress.left is None else f", {progress.left:.0f} s left"
    flows = f", {progress.finished:,} of {progress.flows:,} flows finished" if progress.flows else ""
    share = f"{100 * progress.share:.0f} %, " if progress.share else ""
    return f"{share}{progress.now / 1e9:.3f} ms simulated{flows}; {progress.elapsed:.0f} s{left}"


def show_progress(stream: TextIO | None = None) -> Callable[[Progress], None]:
    """For `run(..., progress=show_progress())`: writes a line twice a second, over the last one where the stream (standard error) is a terminal."""
    to = stream or sys.stderr

    def show(progress: Progress) -> None:
        to.write(f"\r\x1b[K{progress_line(progress)}" if to.isatty() else progress_line(progress) + "\n")
        to.flush()

    return show


def listener(progress: Callable[[Progress], None] | None) -> Callable[[int, int, int, float], None] | None:
    """What the simulator calls, for whoever wants to know."""
    if progress is None:
        return None
    if not callable(progress):
        raise TypeError(f"progress: {progress!r} cannot be called")
    began = time.monotonic()
    return lambda now, finished, flows, share: progress(Progress(now, finished, flows, share, time.monotonic() - began))


def series(ports: Sequence[tuple[End, End]], columns: Sequence[bytes]) -> Series:
    """From the simulator's columns."""
    at, queued, levels, *watched, totals, sample, flow, window, acknowledged = (np.frombuffer(column, np.int64) for column in columns)
    shape = (len(at), len(ports))
    bands = levels.reshape(*shape, BANDS) if levels.size else None
    sent, marked, dropped = (column.reshape(shape) if column.size else None for column in watched)
    waiting = queued.reshape(shape)
    return Series(tuple(ports), at, waiting, bands, sent, marked, dropped, totals.reshape(-1, 4), sample, flow, window, acknowledged)


def flow_counts(columns: Sequence[bytes]) -> FlowCounts:
    """From the simulator's columns."""
    return FlowCounts(*(np.frombuffer(column, np.int64) for column in columns))
