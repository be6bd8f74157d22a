"""What to record of a run besides its outcome: samples over time, counts of each flow, every
packet, and progress."""

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
"""Kinds of packets, as `Trace.kind` numbers them."""
End = tuple[Literal["host", "switch"], int]
BANDS = 9
"""Bands of a queue with levels: ACKs, and levels 0 to 7."""


@dataclass(frozen=True)
class Watch:
    """What to record. The outcome is the same with any of it; a run takes longer, most of all with
    `trace` and `flows`.

    >>> watch = Watch(ports=True, every_ps=us(10), most=1_000, trace=[3])
    """

    ports: bool = False
    """`Outcome.ports`, and the columns of `series` that need them."""
    flows: bool = False
    """`Outcome.flows`."""
    every_ps: int | None = None
    """`Outcome.series`, with a sample every so many ps from 0 on. More samples than the machine has
    memory for are a ValueError: before the run if its end is known, or else when the room is used
    up."""
    until: int | None = None
    """The last sample's time, in ps; None: the run's end."""
    most: int | None = None
    """Most samples of the series: beyond it every second one is dropped and the interval doubled,
    so that a run of unknown length has a series of known size."""
    trace: Sequence[int] | Literal["all"] | None = None
    """`Outcome.trace`: packets on these hosts' links, in both directions, or all."""


@dataclass(frozen=True, eq=False, repr=False)
class Series(ReadOnly):
    """Samples of a network, each after everything that happened at its instant. Arrays of int64,
    read-only; ports are in the order of `Outcome.ports`.

    >>> outcome.series.queued.shape == (len(outcome.series.at), len(outcome.ports))
    True
    """

    _ROWS = "samples"

    ports: tuple[tuple[End, End], ...]
    """Both ends of each port's cable, such as `(("host", 3), ("switch", 0))`."""
    at: NDArray[np.int64]
    """Times of the samples, in ps, shape (samples,)."""
    queued: NDArray[np.int64]
    """Bytes that each port had accepted and not sent, shape (samples, ports)."""
    levels: NDArray[np.int64] | None
    """For queues with levels: waiting bytes of ACKs and of levels 0 to 7, without the packet being
    sent, shape (samples, ports, 9); 0 for other queues. None if no queue has levels."""
    sent: NDArray[np.int64] | None
    """Bytes that each port has sent so far, shape (samples, ports); None without `Watch.ports`."""
    marked: NDArray[np.int64] | None
    """Packets that each port has marked so far, likewise."""
    dropped: NDArray[np.int64] | None
    """Packets that each port has dropped so far, likewise."""
    totals: NDArray[np.int64]
    """Totals of the network so far: packets dropped by queues, retransmissions, data delivered with
    a mark, timeouts; shape (samples, 4)."""
    sample: NDArray[np.int64]
    """Rows of unfinished flows, shape (rows,): the sample's index in `at`; ascending."""
    flow: NDArray[np.int64]
    """The flow's place in the outcome's arrays; an application's flow has its path key, from 2**29
    on."""
    window: NDArray[np.int64]
    """Packets that may be under way."""
    acknowledged: NDArray[np.int64]
    """Packets acknowledged cumulatively."""

    @property
    def rate(self) -> NDArray[np.float64]:
        """Rate of each port between two samples, in bit/s, shape (samples - 1, ports). Raises
        ValueError without `Watch.ports`."""
        if self.sent is None:
            raise ValueError("series.rate: the ports were not watched")
        rate: NDArray[np.float64] = np.diff(self.sent, axis=0) * 8e12 / np.diff(self.at)[:, None]
        return rate


@dataclass(frozen=True, eq=False, repr=False)
class FlowCounts(ReadOnly):
    """Counts of each flow's packets: arrays of int64, shape (flows,), read-only; the outcome's
    flows in order, then those of applications with any count.

    >>> int(outcome.flows.marked.sum()) == outcome.counters["marked"]
    True
    """

    _ROWS = "flows"

    flow: NDArray[np.int64]
    """The flow, as in `Series.flow`; messages of one connection of an application are one flow."""
    delivered: NDArray[np.int64]
    """Data packets that reached the receiver, retransmissions included."""
    marked: NDArray[np.int64]
    """Of these, packets with a mark."""
    retransmitted: NDArray[np.int64]
    """Data packets retransmitted."""
    dropped: NDArray[np.int64]
    """Data packets dropped by queues or limiters, or lost on failed links."""
    timeouts: NDArray[np.int64]
    """Timeouts, those of SYNs included."""
    waited: NDArray[np.int64]
    """Total queueing time of delivered data, in ps."""
    waited_most: NDArray[np.int64]
    """Longest queueing time."""
    held: NDArray[np.int64]
    """Total time that data waited in its host's limiter, in ps."""


@dataclass(frozen=True)
class Progress:
    """The progress of a run.

    >>> Progress(now=ms(3), finished=1, flows=4, share=0.25, elapsed=5.0).left
    15.0
    """

    now: int
    """Simulated time, in ps."""
    finished: int
    """Flows that have finished, of the `flows` that are not applications'."""
    flows: int
    share: float
    """The share of their packets that is acknowledged, or the share of the time until
    `Scenario.stop`, whichever is more; 0 with neither."""
    elapsed: float
    """Seconds since the run began."""

    @property
    def left(self) -> float | None:
        """Estimated seconds left; None if unknown."""
        return self.elapsed * (1 - self.share) / self.share if self.share > 0 else None


def progress_line(progress: Progress) -> str:
    """A line such as `12 %, 34.500 ms simulated, 1,200 of 10,000 flows finished; 5 s, 37 s left`."""
    left = "" if progress.left is None else f", {progress.left:.0f} s left"
    flows = f", {progress.finished:,} of {progress.flows:,} flows finished" if progress.flows else ""
    share = f"{100 * progress.share:.0f} %, " if progress.share else ""
    return f"{share}{progress.now / 1e9:.3f} ms simulated{flows}; {progress.elapsed:.0f} s{left}"


def show_progress(stream: TextIO | None = None) -> Callable[[Progress], None]:
    """For `run(..., progress=show_progress())`: writes a line twice a second, over the last one if
    the stream (standard error) is a terminal."""
    to = stream or sys.stderr

    def show(progress: Progress) -> None:
        to.write(f"\r\x1b[K{progress_line(progress)}" if to.isatty() else progress_line(progress) + "\n")
        to.flush()

    return show


def listener(progress: Callable[[Progress], None] | None) -> Callable[[int, int, int, float], None] | None:
    """The callback for the simulator."""
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
