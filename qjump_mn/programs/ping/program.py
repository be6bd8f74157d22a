"""ping: round trips, by iputils' ping or by nsping (native/nsping)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import msgspec

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model import ports
from qjump_mn.model.plan import ArmPlan, Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration, Size, told_rate
from qjump_mn.programs.base import LATENCIES, FlowSpec, Program, Read, WorkloadPlan
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.ping.parse import parse, parse_nsping
from qjump_mn.programs.text import transposed

Tool = Literal["", "iputils", "nsping"]
"""The program that sends. By default it is iputils, but nsping on links above 10 Mb/s, where a
microsecond, the last digit that iputils prints, may be most of a frame. In real time it is iputils.
"""


class PingPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="ping"):
    """``count`` echo requests for each flow, one every ``interval_ns``."""

    MEASURES: ClassVar = LATENCIES

    interval_ns: int
    payload_bytes: int
    reply_level: int
    count: int
    tool: Tool = ""

    @property
    def is_iputils(self) -> bool:
        """Whether iputils sends; it has its own intervals and prints microseconds."""
        return self.tool != "nsping"

    @property
    def levels(self) -> set[int]:
        return {self.level, self.reply_level}

    @property
    def echo_replies(self) -> tuple[tuple[str, int], ...]:
        return (
            tuple((destination, self.reply_level) for _, destination in self.flows)
            if self.reply_level
            else ()
        )

    def constants(self, network: Network) -> dict[str, float]:
        rtt = theory.ping_rtt_ns(self.payload_bytes, network.speeds(*self.flows[0]))
        return {"analytic_ms": rtt / 1e6, "interval_ms": self.interval_ns / 1e6}

    @property
    def longest_ns(self) -> int:
        """Below 10 ms, iputils waits longer than the interval if there is no reply; and it may
        start an interval later."""
        longest_ns = (
            max(self.interval_ns, theory.PING_UNANSWERED_NS)
            if self.is_iputils
            else self.interval_ns
        )
        return self.count * longest_ns + self.interval_ns

    @property
    def phase_ns(self) -> int:
        return self.interval_ns

    def arm_constants(self, arm: ArmPlan) -> dict[str, float]:
        """Effect of a budget of one reply per epoch on requests that are sent more often: the wait
        in a full queue, or the loss."""
        if arm.qjump is None or arm.qjump.epochs == "aligned":
            return {}
        cost = arm.qjump.cost_bytes(self.packet_bytes)
        if arm.qjump.budget_bytes[self.reply_level] // cost != 1:
            return {}
        if arm.qjump.mode == "drop":
            return {
                f"{arm.name}_predicted_loss": theory.ping_loss(self.interval_ns, arm.qjump.epoch_ns)
            }
        waiting = arm.qjump.limit_packets if self.interval_ns < arm.qjump.epoch_ns else 0
        return {
            f"{arm.name}_predicted_wait_ms": theory.full_queue_delay_ns(waiting, arm.qjump.epoch_ns)
            / 1e6
        }

    def equations(
        self, network: Network, constants: Mapping[str, float]
    ) -> list[tuple[str, str, str]]:
        links = network.speeds(*self.flows[0])
        frame = theory.frame_bytes(self.packet_bytes)
        idle_ms = theory.ping_rtt_ns(self.payload_bytes, links) / 1e6
        wait_ms, processor_ms = (
            constants.get(f"{self.name}_wait_ms", 0.0),
            constants["processor_ms"],
        )
        terms = [
            f"{count} links × ((8 + {frame}) B × 8 / {told_rate(rate_bps)}"
            + (f" + {delay_ns / 1e6:g} ms)" if delay_ns else ")")
            for (rate_bps, delay_ns), count in Counter(links).items()
        ]
        one_way = terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"
        bound = (
            f"the idle round trip + what may be in transmission: {ports.told(constants, self.name)}"
        )
        lines = [
            ("round trip of the idle network", f"2 × {one_way}", f"{idle_ms:g} ms"),
            ("bound of an urgent ping", bound, f"{idle_ms + wait_ms:.4g} ms"),
        ]
        if processor_ms:
            lines.append(
                (
                    "allowed for the processor",
                    "beside the bound, there and back",
                    f"{processor_ms:g} ms",
                )
            )
        return lines

    @property
    def packet_bytes(self) -> int:
        return theory.PING_HEADERS_BYTES + self.payload_bytes

    def packets(self, trial: Trial) -> float:
        return 2 * len(self.flows) * self.count

    def scaled(self, time_scale: int) -> Self:
        if self.tool or time_scale == 1:
            return self
        return msgspec.structs.replace(self, tool="nsping")

    def check_emulated(self, where: str) -> None:
        if self.is_iputils and self.interval_ns < theory.PING_SHORTEST_NS:
            raise UsageError(
                f"{where}.interval: ping cannot send more often than every 2 ms: use that or more, "
                'or tool = "nsping"'
            )

    def describe(self) -> str:
        requests = (
            f"{'ping' if self.is_iputils else 'nsping'}, {self.count} requests of "
            f"{self.payload_bytes} B every {self.interval_ns / 1e6:g} ms"
        )
        if (
            not self.is_iputils
            or not theory.PING_SHORTEST_NS <= self.interval_ns < theory.PING_UNANSWERED_NS
        ):
            return requests
        return (
            f"{requests}; {theory.PING_UNANSWERED_NS / 1e6:g} ms after one without a reply by then"
        )


class Ping(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="ping", kw_only=True):
    """An echo request every ``interval`` for the duration of the trial, sent by ``tool``; measured
    from start to end.

    Replies have the requests' level, unless ``reply_level`` is given.
    """

    interval: Duration = Duration(10_000_000)
    payload: Size = Size(56)
    reply_level: int | None = None
    tool: Tool = ""

    def check(self, where: str, network: Network) -> None:
        if self.reply_level is not None and not 0 <= self.reply_level <= 7:
            raise UsageError(
                f"{where}.reply_level: {self.reply_level} is not an 802.1Q priority: use 0 to 7 "
                "(most urgent)"
            )
        if not 1_000 <= self.interval <= 10**10:
            raise UsageError(f"{where}.interval: {self.interval} is out of range: use 1us to 10s")
        most = network.mtu_bytes - theory.PING_HEADERS_BYTES
        if not 16 <= self.payload <= most:
            raise UsageError(
                f"{where}.payload: {self.payload} is out of range: use 16B (for a time stamp) to "
                f"{most}B"
            )

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> PingPlan:
        return PingPlan(
            **common,
            interval_ns=int(self.interval),
            payload_bytes=int(self.payload),
            reply_level=(common["level"] if self.reply_level is None else self.reply_level)
            if uses_levels
            else 0,
            count=max(2, duration_ns // int(self.interval)),
            tool=self.tool,
        )


PRELOAD = "libpatience.so"
"""Keeps ping from spinning (native/patience)."""

GOOD = (0, 1)
"""Exit statuses that count as success: ping returns 1 if replies were lost."""

LINGER_S = 5
"""How long iputils waits for the last replies; a full buffer at 10 Mb/s holds 0.12 s."""

LINGER_FRAMES = 10_000
"""How long nsping waits, in full-size frames of the slowest link: several full buffers of the
largest switches."""


COLUMNS = {"flow": "string", "sequence": "int32", "received_s": "double", "latency_us": "double"}
"""A row for each request. ``sequence`` counts from 1. ``received_s`` is Unix time, or
CLOCK_MONOTONIC of nsping. It and ``latency_us``, the round trip, are null if there was no reply."""


def output_name(plan: PingPlan, flow: tuple[str, str]) -> str:
    """The raw file of one flow."""
    return f"{plan.name}-{flow[0]}-{flow[1]}.ping.txt"


def linger_ns(network: Network) -> int:
    """How long nsping waits for the last replies, in ns."""
    frame_ns = theory.occupancy_ns(theory.frame_bytes(network.mtu_bytes), network.slowest_bps)
    return LINGER_FRAMES * frame_ns


def nsping_argv(plan: PingPlan, destination: str, network: Network) -> tuple[str, ...]:
    """The command line of nsping to the address ``destination``."""
    return (
        *(
            "nsping",
            "--to",
            destination,
            "--interval",
            str(plan.interval_ns),
            "--count",
            str(plan.count),
        ),
        *("--payload", str(plan.payload_bytes), "--linger", str(linger_ns(network))),
    )


def argv(plan: PingPlan, destination: str) -> tuple[str, ...]:
    """The command line of iputils to the address ``destination``."""
    interval = f"{plan.interval_ns / 1e9:g}"
    return (
        "ping",
        "-D",
        "-n",
        "-i",
        interval,
        "-c",
        str(plan.count),
        "-s",
        str(plan.payload_bytes),
        "-W",
        str(LINGER_S),
        destination,
    )


def launches(plan: PingPlan, trial: Trial) -> Iterator[Launch]:
    """One ping for each flow."""
    for source, destination in plan.flows:
        address, output = (
            trial.network.addresses[destination],
            output_name(plan, (source, destination)),
        )
        longest_s = plan.longest_ns / 1e9
        if plan.is_iputils:
            command, longest_s = argv(plan, address), longest_s + LINGER_S
            yield Launch(
                "probe", source, command, output, longest_s=longest_s, good=GOOD, preload=PRELOAD
            )
        else:
            longest_s += linger_ns(trial.network) / 1e9
            command = nsping_argv(plan, address, trial.network)
            yield Launch("probe", source, command, output, longest_s=longest_s)


def columns(plan: PingPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every request of every flow; flow is "h8>h10"."""
    echoes = parse if plan.is_iputils else parse_nsping
    rows = [
        (f"{source}>{destination}", *echo)
        for source, destination in plan.flows
        for echo in echoes(read(output_name(plan, (source, destination))), plan.count)
    ]
    return transposed(rows, COLUMNS)


PROGRAM = Program(
    spec=Ping,
    plan=PingPlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.ping.measures:MEASURES",
    simulated="qjump_mn.programs.ping.simulated:SIMULATED",
)
