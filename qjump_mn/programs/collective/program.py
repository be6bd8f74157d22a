"""collective: a job that repeats an all-reduce or an all-to-all, in the simulator only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration, Size
from qjump_mn.programs import simulated_text
from qjump_mn.programs.base import (
    LATENCIES,
    Flow,
    Program,
    Read,
    WorkloadPlan,
    WorkloadSpec,
    all_pairs,
    bounded,
)
from qjump_mn.programs.launch import Launch

PATTERNS = {
    "ring": "all-reduce in a ring",
    "tree": "all-reduce along a binomial tree",
    "all-to-all": "all-to-all by pairwise exchange",
    "goal": "operations of a file in GOAL",
}
"""How the report describes each pattern."""


class CollectivePlan(
    WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="collective"
):
    """``hosts``, or all hosts if there are none, carry out a ``pattern``. In an all-reduce each has
    ``size_bytes`` of data; in an all-to-all each sends so many to every other. The next iteration
    begins ``pause_ns`` after the last host has ended. ``flows`` are all ordered pairs of
    ``hosts``. The pattern "goal" is that of a text in GOAL, ``goal``."""

    MEASURES: ClassVar = {
        **{name: text for name, text in LATENCIES.items() if name.endswith("_ms")},
        "iterations": "iterations",
        "bus_gbps": "bus bandwidth, Gb/s",
        "of_ideal": "median, of the ideal",
    }
    BACKGROUND: ClassVar = True
    ONLY_SIMULATED: ClassVar = True

    hosts: tuple[str, ...]
    pattern: str
    size_bytes: int
    pause_ns: int
    goal: str | None = None

    @property
    def measures(self) -> Mapping[str, str]:
        """Without a formula for the operations of a file."""
        unknown = ("bus_gbps", "of_ideal") if self.goal is not None else ()
        return {name: text for name, text in self.MEASURES.items() if name not in unknown}

    @property
    def answer_bytes(self) -> int:
        return theory.ACK_BYTES

    def packets(self, trial: Trial) -> float:
        network = trial.network
        ranks = len(self.hosts or network.hosts)
        seconds = trial.length_ns / theory.NS_PER_S
        return ranks * seconds * network.link.rate_bps / 8 / network.mtu_bytes

    def describe(self) -> str:
        hosts = f" of {', '.join(self.hosts)}" if self.hosts else ""
        each = " to each host" if self.pattern == "all-to-all" else ""
        pause = f", {self.pause_ns / 1e6:g} ms apart" if self.pause_ns else ""
        size = f", {self.size_bytes / 1e6:g} MB{each}" if self.goal is None else ""
        return f"{PATTERNS[self.pattern]}{hosts}{size}, again and again{pause}"

    def message_bytes(self, ranks: int) -> int:
        """Payload of a message; the largest one, if ranks do not divide the data."""
        return -(-self.size_bytes // ranks) if self.pattern == "ring" else self.size_bytes

    def steps(self, ranks: int) -> int:
        """Messages one after another."""
        return {
            "ring": 2 * (ranks - 1),
            "tree": 2 * math.ceil(math.log2(ranks)),
            "all-to-all": ranks - 1,
        }[self.pattern]

    def ideal_ns(self, network: Network) -> float:
        """Thakur, Rabenseifner and Gropp's cost (2005), steps x (alpha + bytes x beta), without
        ACKs. alpha is of the longest path that a message takes; in a ring, where data passes from
        host to host, the paths add up instead."""
        hosts = self.hosts or network.hosts
        pairs: Iterator[Flow] = (
            zip(hosts, (*hosts[1:], hosts[0]), strict=True)
            if self.pattern == "ring"
            else ((hosts[0], other) for other in hosts[1:])
        )
        segment = network.mtu_bytes - theory.TCP_HEADERS_BYTES
        message = self.message_bytes(len(hosts))
        frame = theory.frame_bytes(theory.TCP_HEADERS_BYTES + min(message, segment))
        alphas_ns = [theory.one_way_ns(frame, network.speeds(*pair)) for pair in pairs]
        others = max(0.0, message / segment - 1)
        others_ns = others * theory.occupancy_ns(frame, network.link.rate_bps)
        steps = self.steps(len(hosts))
        if self.pattern == "ring":  # twice around, but for the last two hops
            after = (*alphas_ns[1:], alphas_ns[0])
            left_out = min(map(sum, zip(alphas_ns, after, strict=True)))
            return 2 * sum(alphas_ns) - left_out + steps * others_ns
        return steps * (max(alphas_ns) + others_ns)


class Collective(
    WorkloadSpec, frozen=True, forbid_unknown_fields=True, tag="collective", kw_only=True
):
    """A job on ``hosts``, or on all hosts, from the trial's beginning to its end. ``pattern`` is
    "ring" or "tree", which are all-reduces of ``size`` bytes on each host, or "all-to-all", in
    which each host sends ``size`` to every other; or "goal", for which ``goal`` names a file
    experiments/NAME.goal of operations, whose ranks are the hosts in order, with bytes on the wire
    (LogGOPSim, ATLAHS). Two of them are competing jobs.

    The next iteration begins ``pause`` after the last host has ended, as if it computed.
    """

    hosts: tuple[str, ...] = ()
    pattern: str = "ring"
    size: Size = Size(0)
    goal: str | None = None
    pause: Duration = Duration(0)

    FILE: ClassVar = "goal"

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        return all_pairs(f"{where}.hosts", self.hosts)

    def check(self, where: str, network: Network) -> None:
        if self.pattern not in PATTERNS:
            raise UsageError(
                f"{where}.pattern: there is no pattern {self.pattern!r}: use 'ring', 'tree', "
                "'all-to-all' or 'goal'"
            )
        has_file = self.goal is not None
        if (self.pattern == "goal") != has_file or (has_file and self.size):
            raise UsageError(
                f"{where}.goal: pattern 'goal' needs the name of a file, and no size; another "
                "pattern needs a size, and no file"
            )
        ranks = len(self.hosts or network.hosts)
        if not has_file:
            bounded(f"{where}.size", self.size, ranks, 10**9, f"{ranks}B (a byte a host) to 1000MB")
        bounded(f"{where}.pause", self.pause, 0, 10**11, "0s to 100s")

    def planned(
        self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int
    ) -> CollectivePlan:
        return CollectivePlan(
            **common,
            hosts=self.hosts,
            pattern=self.pattern,
            size_bytes=int(self.size),
            pause_ns=int(self.pause),
        )


COLUMNS = {"iteration": "int32", "start_ns": "int64", "latency_us": "double"}
"""A row for each iteration that began before the trial's end. ``latency_us``, from its start to the
arrival of its last message, is null if it did not end."""


def launches(plan: CollectivePlan, trial: Trial) -> Iterator[Launch]:
    """None: this program runs only in the simulator."""
    return iter(())


def columns(plan: CollectivePlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """The iterations; raise :class:`LostError` if the table is incomplete."""
    return simulated_text.columns(read(simulated_text.output_name(plan.name)), COLUMNS)


PROGRAM = Program(
    spec=Collective,
    plan=CollectivePlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.collective.measures:MEASURES",
    simulated="qjump_mn.programs.collective.simulated:SIMULATED",
)
