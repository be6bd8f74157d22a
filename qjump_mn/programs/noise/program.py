"""noise: bursts of full-size datagrams (native/fanin), like those that the paper's generators sent
to disturb others."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration
from qjump_mn.programs import datagrams
from qjump_mn.programs.base import FlowSpec, Program, Read, WorkloadPlan, bounded, check_interval
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.text import transposed

LEAST_INTERVAL_NS = 10**6
"""The shortest interval of bursts that one processor keeps in real time."""


class NoisePlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="noise"):
    """Each flow sends ``burst`` datagrams that fill the MTU, back to back, in every
    ``interval_ns``, each at its own phase."""

    MEASURES: ClassVar = {
        "offered_mbps": "offered, Mb/s",
        "goodput_mbps": "goodput, Mb/s",
        "bursts": "bursts",
        "loss": "loss",
    }
    BACKGROUND: ClassVar = True

    interval_ns: int
    burst: int

    def constants(self, network: Network) -> dict[str, float]:
        """The interval divided by the time that a full buffer takes to drain."""
        return {
            "drains": self.interval_ns * network.link.rate_bps / (network.link.buffer_bytes * 8e9)
        }

    def check_real_time(self, where: str) -> None:
        check_interval(self, where, self.interval_ns, LEAST_INTERVAL_NS)

    @property
    def answer_bytes(self) -> int:
        return 0

    def packets(self, trial: Trial) -> float:
        return len(self.flows) * self.burst * trial.length_ns / self.interval_ns

    def describe(self) -> str:
        return (
            f"fanin, bursts of {self.burst} full-size datagrams every {self.interval_ns / 1e6:g} ms"
        )


class Noise(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="noise", kw_only=True):
    """Bursts of ``burst`` full-size datagrams, one in every ``interval``, from the warm-up to the
    trial's end."""

    interval: Duration
    burst: int

    def check(self, where: str, network: Network) -> None:
        full = theory.occupancy_ns(theory.frame_bytes(network.mtu_bytes), network.link.rate_bps)
        bounded(f"{where}.interval", self.interval, 10**3, 6 * 10**10, "1us to 60s")
        most = int(self.interval) // full
        bounded(
            f"{where}.burst",
            self.burst,
            1,
            most,
            f"1 to {most} (the link's capacity in an interval)",
        )

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> NoisePlan:
        return NoisePlan(**common, interval_ns=int(self.interval), burst=self.burst)


COLUMNS = {
    "flow": "string",
    "start_ns": "int64",
    "end_ns": "int64",
    "sent": "int64",
    "arrived": "int64",
}
"""A row for each burst: when it started, when the kernel had its last datagram, how many were sent,
and how many arrived."""

LINGER_S = 1.0
"""Receivers are stopped after their senders: a full buffer takes 0.12 s to drain at 10 Mb/s, and
each switch of a path may have one."""


def launches(plan: NoisePlan, trial: Trial) -> Iterator[Launch]:
    """A receiver for each destination, a sender for each flow."""
    payload = trial.network.mtu_bytes - theory.UDP_HEADERS_BYTES
    lasts_ns = trial.background_ns
    yield from datagrams.receivers(
        plan,
        rows=len(plan.flows) * plan.burst * (lasts_ns // plan.interval_ns + 2),
        linger_s=LINGER_S,
    )
    bursts = (
        "--payload",
        str(payload),
        "--interval",
        str(plan.interval_ns),
        "--burst",
        str(plan.burst),
    )
    yield from datagrams.senders(plan, trial, "load", bursts, duration_ns=lasts_ns)


def columns(plan: NoisePlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every burst of every flow."""
    arrivals = datagrams.arrivals(plan, trial, read)
    rows = []
    for flow in plan.flows:
        arrived = sorted(sequence for _, sequence, _ in arrivals[flow])
        bursts = datagrams.sent(plan, flow[0], read)
        for first, start, end, sent, dropped in zip(
            *(bursts[name] for name in ("sequence", "start_ns", "end_ns", "sent", "dropped")),
            strict=True,
        ):
            # A burst's datagrams are numbered from ``first``.
            until = bisect.bisect_left(arrived, first + sent + dropped)
            rows.append(
                (">".join(flow), start, end, sent, until - bisect.bisect_left(arrived, first))
            )
    return transposed(rows, COLUMNS)


PROGRAM = Program(
    spec=Noise,
    plan=NoisePlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.noise.measures:MEASURES",
)
