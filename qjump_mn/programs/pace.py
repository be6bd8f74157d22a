"""How long things take on the machine that carries every host of a trial: what a check of a program's own
times may allow for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.programs.measures_api import Floats
from qjump_mn.results.tables import TrialFacts

LATEST_US = 5000.0
"""At 10 Mb/s, of 99 wake-ups of a hundred, or all but two. Where code takes time, and there is some to spare,
a program waits for the tick of the kernel's scheduler (4 ms) at most."""

FEW, SHARE = 2, 0.01
"""Of wake-ups, that may be later; never most of them."""

STEADY, SURE = 0.4, 4.0
"""From which on sends follow the latencies: times that were multiplied by 0.7, or by 1.7, and a slope of so
many standard errors. Slopes of 40 valid flows were -0.39 to 0.35, none of more than 3 errors above 0.1."""

FAINT_US = 50.0
"""At 10 Mb/s: latencies that change by less, in the root of the mean square, say nothing of sends, for what
makes a send late may make it slow as well. Those of busy networks changed by 300 us and more."""

DRAWS = 200
"""Equally likely values that stand for a distribution."""

FEWEST = 8
"""Of pairs of requests, below which a slope says nothing."""


def outside(what: str, first_ns: int, last_ns: int, facts: TrialFacts) -> Iterator[str]:
    """A sentence for what began before the measurement did, or ended after it."""
    began_ns, ended_ns = facts.window_ns
    if first_ns < began_ns or last_ns > ended_ns:
        first_s, last_s, whole_s = ((ns - began_ns) / 1e9 for ns in (first_ns, last_ns, ended_ns))
        yield (
            f"{what} last from {first_s:.6g} s to {last_s:.6g} s, and the measurement from 0 s to "
            f"{whole_s:.6g} s"
        )


def latest_ns(trial: Trial) -> float:
    """How late a program may get the processor."""
    return LATEST_US * 1e3 / trial.arm.time_scale


def hundredth_us(network: Network) -> float:
    """A hundredth of a full-size frame on the slowest link: by so much at most a latency differs from
    arithmetic where code takes no time (measured: 8 ns of an idle round trip over eight links of 10 Gb/s)."""
    return theory.occupancy_ns(theory.frame_bytes(network.mtu_bytes), network.slowest_bps) / 1e5


def pauses(pause_ns: npt.NDArray[Any], most_ns: float) -> npt.NDArray[np.bool_]:
    """Which pauses cannot be: those below 0, and those above ``most_ns`` where they are more than the few for
    which a program may wait longer for the processor."""
    late = pause_ns > most_ns
    few = np.count_nonzero(late) <= min(max(FEW, SHARE * len(pause_ns)), len(pause_ns) // 2)
    return (pause_ns < 0) | (late & (not few))


def process_ns(facts: TrialFacts) -> float | None:
    """What it takes the machine to run one short process: the readings after the measurement are one each,
    one after the other."""
    times = sorted(ns for name, ns in (facts.read_ns or {}).items() if name.startswith("asbuilt/ended/"))
    return float(np.median(np.diff(times))) if len(times) > 1 else None


class Slope(NamedTuple):
    """By how much the time between two sends grows with the latency, and its standard error; and by how much
    latencies change from one to the next, in the root of the mean square."""

    value: float
    error: float
    change_us: float

    @property
    def scale(self) -> float:
        """What all latencies were multiplied by, if that is the reason."""
        return 1 / (1 + self.value)


def slope(sent_us: Floats, latency_us: Floats) -> Slope | None:
    """Of requests on a schedule, of which a program tells the time of the answer and the latency, in the
    order in which they were sent, nan where one was not answered; None for too few.

    The send is the one less the other, and knows nothing of the latency that is to come. Where latencies were
    multiplied by f, it moves by (1 - f) of the true one: the slope is 1/f - 1.
    """
    gaps, changes = np.diff(sent_us), np.diff(latency_us)
    known = ~np.isnan(gaps) & ~np.isnan(changes)
    if np.count_nonzero(known) < FEWEST:
        return None
    gaps, changes = gaps[known] - np.mean(gaps[known]), changes[known] - np.mean(changes[known])
    spread = float(np.sum(changes**2))
    if not spread:
        return None
    value = float(np.sum(changes * gaps)) / spread
    rest = gaps - value * changes
    error = float(np.sqrt(np.sum(rest**2) / (len(changes) - 2) / spread))
    return Slope(value, error, float(np.sqrt(spread / len(changes))))


def second_later(points: Sequence[tuple[float, int]], latency_us: Floats) -> float:
    """The slope of sends that are told by the answer to a second message, which follows the first at once.

    A host draws what it takes for each of them from ``points`` (per cent, ns), and hands them over in order:
    the second comes max(0, its draw - the first's) after the first, the later the shorter the first took.
    That is 0 where nothing is drawn, -0.5 for draws of one density, less where latencies differ by more than
    their draws do.
    """
    if not points:
        return 0.0
    share, drawn_ns = zip(*points, strict=True)
    drawn_us = np.interp((np.arange(DRAWS) + 0.5) * 100 / DRAWS, share, drawn_ns) / 1e3
    later_us = np.maximum(0.0, drawn_us[:, None] - drawn_us[None, :]).mean(axis=0)
    spread = max(float(np.var(drawn_us)), float(np.var(latency_us)))
    return (
        float(np.mean((later_us - later_us.mean()) * (drawn_us - drawn_us.mean()))) / spread
        if spread
        else 0.0
    )


def follows(sent_us: Floats, latency_us: Floats, expected: float = 0.0, *, time_scale: int) -> str:
    """A sentence's end for sends that follow their latencies by more than the slope ``expected`` of true
    ones, where these change by enough to say it; else empty. ``time_scale`` is that of the arm."""
    found = slope(sent_us, latency_us)
    if found is None or found.change_us < FAINT_US / time_scale:
        return ""
    # Times multiplied by f have the slope (1 + expected) / f - 1.
    found = found._replace(value=(1 + found.value) / (1 + expected) - 1, error=found.error / (1 + expected))
    if abs(found.value) < STEADY or abs(found.value) < SURE * found.error:
        return ""
    return (
        f"the times at which it sent move with the latencies (by {found.value:.2f} of their changes), as "
        f"they would were all of these {found.scale:.2g} times the true ones"
        if found.value > -1
        else f"the times at which it sent move against the latencies (by {found.value:.2f} of their changes)"
    )
