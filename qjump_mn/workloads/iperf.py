"""iperf3: bulk traffic, measured where it arrives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qjump_mn.errors import LostError
from qjump_mn.model.plan import IperfPlan, PingPlan, Trial
from qjump_mn.workloads.program import Program, Programs

if TYPE_CHECKING:
    from qjump_mn.network.testbed import Testbed

PORT = 5201
UDP_HEADERS_BYTES = 28
REPORT_S = 0.5
BLOCK = "8K"
"""iperf3 counts a block when all of it is there: with its own 128 KiB, an interval at 10 Mb/s is known to 20 %."""
TAIL_S = 1
"""Bulk traffic goes on for at least this long after the last request is due, so that every ping meets it."""


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


def server_argv(port: int) -> list[str]:
    """The command line of a server that serves one test."""
    return ["iperf3", "-s", "-1", "-p", str(port), "-i", str(REPORT_S), "-J"]


def client_argv(plan: IperfPlan, destination: str, port: int, seconds: int, mtu_bytes: int) -> list[str]:
    """The command line of the sender."""
    transport = ["-C", plan.congestion_control, "-l", BLOCK]
    if plan.udp_rate_bps is not None:
        transport = ["-u", "-b", str(plan.udp_rate_bps), "-l", str(mtu_bytes - UDP_HEADERS_BYTES)]
    return [
        *("iperf3", "-c", destination, "-p", str(port), "-t", str(seconds), "-i", str(REPORT_S)),
        *("-P", str(plan.streams), *transport, "-J"),
    ]


def seconds(trial: Trial) -> int:
    """How long the senders send: warm-up, the time of the slowest ping, which may begin an interval later, tail."""
    pings = [workload.longest_ns + workload.interval_ns for workload in trial.arm.workloads if isinstance(workload, PingPlan)]
    return -(-(trial.warmup_ns + max([trial.duration_ns, *pings])) // 10**9) + TAIL_S


def start_servers(testbed: Testbed, plan: IperfPlan, raw: Path, programs: Programs) -> list[Program]:
    """Start one server a flow and wait until each listens."""
    servers = []
    for index, (source, destination) in enumerate(plan.flows):
        output = raw / output_name(plan, (source, destination), "server")
        servers.append(
            programs.start(testbed, destination, server_argv(PORT + index), output, level=plan.level, window_bytes=plan.window_bytes)
        )
    for index, server in enumerate(servers):
        server.wait_listening(PORT + index)
    return servers


def start(testbed: Testbed, plan: IperfPlan, raw: Path, programs: Programs, length_s: int) -> list[Program]:
    """Start one sender a flow, for ``length_s`` seconds."""
    return [
        programs.start(
            testbed,
            source,
            client_argv(plan, testbed.hosts[destination].address, PORT + index, length_s, testbed.network.mtu_bytes),
            raw / output_name(plan, (source, destination), "client"),
            level=plan.level,
            window_bytes=plan.window_bytes,
        )
        for index, (source, destination) in enumerate(plan.flows)
    ]


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
