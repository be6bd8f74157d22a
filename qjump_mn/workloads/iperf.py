"""iperf3: bulk traffic, measured where it arrives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import IperfPlan
from qjump_mn.workloads.launch import Launch
from qjump_mn.workloads.text import transposed

UDP_HEADERS_BYTES = 28
REPORT_S = 0.5
BLOCK = "8K"
"""iperf3 counts a block when all of it is there: with its own 128 KiB, an interval at 10 Mb/s is known to 20 %."""

COLUMNS = {"flow": "string", "side": "string", "stream": "int32", "start_s": "double", "end_s": "double", "bytes": "int64", "retransmits": "int32"}
"""``side`` is "sender" or "receiver"; start_s and end_s count from the beginning of the flow's test; no retransmits at the receiver."""


class Interval(NamedTuple):
    """Bytes of one TCP stream (its socket number) between two instants, in s since the test began; ``retransmits`` at the sender only."""

    stream: int
    start_s: float
    end_s: float
    bytes: int
    retransmits: int | None


def output_name(plan: IperfPlan, flow: tuple[str, str], end: str) -> str:
    """The raw file of one flow's ``end`` ("client" or "server")."""
    return f"{plan.name}-{flow[0]}-{flow[1]}.{end}.json"


def server_argv(port: int) -> tuple[str, ...]:
    """The command line of a server that serves one test."""
    return ("iperf3", "-s", "-1", "-p", str(port), "-i", str(REPORT_S), "-J")


def client_argv(plan: IperfPlan, destination: str, port: int, seconds: int, mtu_bytes: int) -> tuple[str, ...]:
    """The command line of the sender."""
    transport = [*(("-C", plan.congestion_control) if plan.congestion_control else ()), "-l", BLOCK]
    if plan.udp_rate_bps is not None:
        transport = ["-u", "-b", str(plan.udp_rate_bps), "-l", str(mtu_bytes - UDP_HEADERS_BYTES)]
    return ("iperf3", "-c", destination, "-p", str(port), "-t", str(seconds), "-i", str(REPORT_S), "-P", str(plan.streams), *transport, "-J")


def launches(plan: IperfPlan, trial: Trial) -> Iterator[Launch]:
    """A server and a sender for each flow."""
    for index, (source, destination) in enumerate(plan.flows):
        flow, port = (source, destination), plan.port + index
        seconds = trial.background_s
        argv = client_argv(plan, trial.network.addresses[destination], port, seconds, trial.network.mtu_bytes)
        yield Launch("serve", destination, server_argv(port), output_name(plan, flow, "server"), listens=("tcp", port), longest_s=seconds)
        yield Launch("load", source, argv, output_name(plan, flow, "client"), longest_s=seconds)


def columns(plan: IperfPlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """The table: every interval of every flow, at both ends; flow is "h7>h10"."""
    rows = [
        (f"{flow[0]}>{flow[1]}", side, *interval)
        for flow in plan.flows
        for end, side in (("client", "sender"), ("server", "receiver"))
        for interval in parse(read(output_name(plan, flow, end)))
    ]
    return transposed(rows, COLUMNS)


def parse(text: str) -> list[Interval]:
    """Every interval of every stream; raise :class:`LostError` with iperf3's own word if the test failed or was cut off."""
    try:
        report = json.loads(text)
    except json.JSONDecodeError as error:
        raise LostError(f"iperf3's report is not complete: {error}") from None
    if "error" in report:
        raise LostError(f"iperf3 failed: {report['error']}")
    intervals = [
        Interval(stream["socket"], stream["start"], stream["end"], stream["bytes"], stream.get("retransmits"))
        for interval in report.get("intervals", [])
        for stream in interval["streams"]
    ]
    if not intervals:
        raise LostError("iperf3's report has no intervals: nothing was sent")
    return intervals
