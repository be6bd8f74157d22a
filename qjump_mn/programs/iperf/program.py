"""iperf: bulk TCP or UDP flows by iperf3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.tcp import congestion_remarks
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Rate, told_rate
from qjump_mn.programs.base import FlowSpec, Program, Read, WorkloadPlan
from qjump_mn.programs.iperf.parse import parse
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.text import transposed


class IperfPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="iperf"):
    """``streams`` TCP connections for each flow, or UDP streams of ``udp_rate_bps`` each."""

    MEASURES: ClassVar = {
        "goodput_mbps": "goodput, Mb/s",
        "offered_mbps": "offered, Mb/s",
        "retransmits": "retransmits",
    }
    BACKGROUND: ClassVar = True

    streams: int
    congestion_control: str | None
    udp_rate_bps: int | None

    @property
    def answer_bytes(self) -> int:
        return theory.ACK_BYTES if self.udp_rate_bps is None else 0

    def packets(self, trial: Trial) -> float:
        network = trial.network
        rate_bps = (
            network.link.rate_bps if self.udp_rate_bps is None else self.udp_rate_bps * self.streams
        )
        return len(self.flows) * rate_bps * trial.length_ns / 1e9 / 8 / network.mtu_bytes

    def describe(self) -> str:
        streams = f"{self.streams} {{}} stream{'s' if self.streams > 1 else ''} a flow"
        if self.udp_rate_bps is not None:
            return f"iperf3, {streams.format('UDP')} of {told_rate(self.udp_rate_bps)}"
        return f"iperf3, {streams.format('TCP')}" + (
            f", {self.congestion_control}" if self.congestion_control else ""
        )


class Iperf(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="iperf", kw_only=True):
    """iperf3: each flow has ``streams`` parallel TCP connections, or UDP streams of ``udp_rate``
    each, from the warm-up to the trial's end.

    A datagram fills the MTU; its rate counts the payload.
    """

    streams: int = 1
    congestion_control: str | None = None
    udp_rate: Rate | None = None

    def check(self, where: str, network: Network) -> None:
        if not 1 <= self.streams <= 64:
            raise UsageError(f"{where}.streams: {self.streams} is out of range: use 1 to 64")
        if self.udp_rate == 0:
            raise UsageError(f"{where}.udp_rate: a rate of 0 sends nothing: give a rate above 0")

    def remarks(self, where: str) -> list[str]:
        return congestion_remarks(where, self.congestion_control)

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> IperfPlan:
        return IperfPlan(
            **common,
            streams=self.streams,
            congestion_control=self.congestion_control,
            udp_rate_bps=None if self.udp_rate is None else int(self.udp_rate),
        )


REPORT_S, LEAST_REPORT_S = 0.5, 0.1
"""Seconds between two reports, so that several fit into a measurement; the minimum is iperf3's."""
BLOCK_BYTES = 8192
BLOCK = f"{BLOCK_BYTES >> 10}K"
"""iperf3 counts a block once it is complete: with its default of 128 KiB, the error at 10 Mb/s is
20 % of an interval."""

ENDINGS = (0, 1)
"""Exit statuses of a sender that was stopped: older versions give 1."""

COLUMNS = {
    "flow": "string",
    "side": "string",
    "stream": "int32",
    "start_s": "double",
    "end_s": "double",
    "bytes": "int64",
    "retransmits": "int32",
}
"""A row for each interval of each stream. ``side`` is "sender" or "receiver". ``start_s`` and
``end_s`` count from the start of the flow's test. ``retransmits`` is null at the receiver."""


def output_name(plan: IperfPlan, flow: tuple[str, str], end: str) -> str:
    """The raw file of one flow's ``end`` ("client" or "server")."""
    return f"{plan.name}-{flow[0]}-{flow[1]}.{end}.json"


def report_s(trial: Trial) -> float:
    """Length in s of the intervals that a trial's flows report."""
    return REPORT_S if trial.duration_ns >= 4 * REPORT_S * theory.NS_PER_S else LEAST_REPORT_S


def server_argv(port: int, every_s: float) -> tuple[str, ...]:
    """The command line of a server for one test."""
    return ("iperf3", "-s", "-1", "-p", str(port), "-i", str(every_s), "-J")


def client_argv(
    plan: IperfPlan, destination: str, port: int, every_s: float, mtu_bytes: int
) -> tuple[str, ...]:
    """The command line of the sender, which runs until it is stopped, as iperf3 only knows whole
    seconds."""
    transport = [*(("-C", plan.congestion_control) if plan.congestion_control else ()), "-l", BLOCK]
    if plan.udp_rate_bps is not None:
        transport = [
            "-u",
            "-b",
            str(plan.udp_rate_bps),
            "-l",
            str(mtu_bytes - theory.UDP_HEADERS_BYTES),
        ]
    return (
        "iperf3",
        "-c",
        destination,
        "-p",
        str(port),
        "-t",
        "0",
        "-i",
        str(every_s),
        "-P",
        str(plan.streams),
        *transport,
        "-J",
    )


def launches(plan: IperfPlan, trial: Trial) -> Iterator[Launch]:
    """A server and a sender for each flow."""
    for index, (source, destination) in enumerate(plan.flows):
        flow, port, every_s = (source, destination), plan.port + index, report_s(trial)
        argv = client_argv(
            plan, trial.network.addresses[destination], port, every_s, trial.network.mtu_bytes
        )
        yield Launch(
            "serve",
            destination,
            server_argv(port, every_s),
            output_name(plan, flow, "server"),
            listens=("tcp", port),
            longest_s=trial.background_ns / 1e9,
        )
        yield Launch(
            "load", source, argv, output_name(plan, flow, "client"), itself=False, good=ENDINGS
        )


def columns(plan: IperfPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every interval of every flow, at both ends; flow is "h7>h10"."""
    rows = [
        (f"{flow[0]}>{flow[1]}", side, *interval)
        for flow in plan.flows
        for end, side in (("client", "sender"), ("server", "receiver"))
        for interval in parse(read(output_name(plan, flow, end)))
    ]
    return transposed(rows, COLUMNS)


PROGRAM = Program(
    spec=Iperf,
    plan=IperfPlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.iperf.measures:MEASURES",
    simulated="qjump_mn.programs.iperf.simulated:SIMULATED",
)
