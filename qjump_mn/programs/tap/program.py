"""tap: record when each frame of a flow arrived in a switch and when its last bit left it, like the
hardware taps of the paper.

It uses the trace event of sch_wire, and sends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.errors import LostError, UsageError
from qjump_mn.executor.steps import MACHINE
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Size
from qjump_mn.programs.base import LATENCIES, Flow, FlowSpec, Program, Read, WorkloadPlan, bounded
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.text import transposed

BUFFER_KB = 65536
"""Size of the kernel's trace buffer; a frame takes about 200 bytes."""

READY = "the tap is in its place"

_SCRIPT = """set -e
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
mkdir -p {instance}
cd {instance}
echo {buffer} > buffer_size_kb
echo > trace
echo '{filter}' > events/wire/wire_frame/filter
echo 1 > events/wire/wire_frame/enable
end() {{
    echo 0 > events/wire/wire_frame/enable
    sed 's/ vlan=.*//' trace
    cd /
    rmdir {instance}
    kill $!
    exit 0
}}
trap end TERM
echo {ready}
sleep 86400 &
wait
"""


class TapPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="tap"):
    """Every frame of ``frame_bytes`` at the ports by which the flows leave switch ``at``."""

    MEASURES: ClassVar = LATENCIES | {"sent": "frames", "received": "frames"}
    ONE_WAY: ClassVar = True
    SENDS: ClassVar = False
    WATCHES_PORTS: ClassVar = True

    at: str
    frame_bytes: int

    def ports(self, network: Network) -> dict[str, Flow]:
        """The interface by which each flow leaves the switch."""
        interfaces = network.interfaces()
        return {
            interfaces[hop]: flow
            for flow in self.flows
            for hop in network.path(*flow)
            if hop[0] == self.at
        }

    def constants(self, network: Network) -> dict[str, float]:
        """A frame's transmission time on its outgoing link, for the slowest one; and the constants
        of the one port in which it waits between the two taps, whatever the rest of its path."""
        slowest_bps = min(network.by_device()[device].rate_bps for device in self.ports(network))
        full = theory.frame_bytes(network.mtu_bytes)
        return {
            "analytic_ms": (switch_ns(network) + theory.delivery_ns(self.frame_bytes, slowest_bps))
            / 1e6,
            "busy_ports": 1.0,
            "ack_ports": 0.0,
            "wait_ms": theory.occupancy_ns(full, slowest_bps) / 1e6,
        }

    def describe(self) -> str:
        return (
            f"frames of {self.frame_bytes} B through {self.at}, from their last bit in to their "
            "last bit out"
        )


class Tap(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="tap", kw_only=True):
    """A tap at the switch ``at``, on the path of each flow. It sees all frames of IP packets of the
    length ``packet``, whoever sent them; no other traffic there may have that length. An arm whose
    scheme has its own queues at switch ports has no tap, because a frame waits in them unseen."""

    at: str
    packet: Size

    def check(self, where: str, network: Network) -> None:
        bounded(
            f"{where}.packet", self.packet, 20, network.mtu_bytes, f"20B to {network.mtu_bytes}B"
        )
        if self.at not in network.switches:
            raise UsageError(f"{where}.at: topology {network.topology!r} has no switch {self.at!r}")
        if network.model != "wire":
            raise UsageError(f"{where}: a tap needs links of model wire (got {network.model})")
        for _, flow in self.pairs(where):
            if self.at not in {node for node, _ in network.path(*flow)}:
                raise UsageError(
                    f"{where}.at: {'>'.join(flow)} does not pass {self.at}: use a switch on its "
                    "path"
                )

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> TapPlan:
        return TapPlan(**common, at=self.at, frame_bytes=theory.frame_bytes(int(self.packet)))


COLUMNS = {"flow": "string", "arrival_ns": "int64", "start_ns": "int64", "latency_us": "double"}
"""A row for each frame that left: when its last bit arrived and when its first bit left, on the
guest's monotonic clock; ``latency_us`` is from the former until its last bit left."""

FRAME = re.compile(
    r"wire_frame: dev=(\S+) level=\d+ len=\d+ arrival=(\d+) start=(\d+) handover=(\d+)$", re.M
)
"""A line of the trace: the device, and three instants in ns."""
_COUNTS = re.compile(r"entries-in-buffer/entries-written: (\d+)/(\d+)")


def trace_name(plan: TapPlan) -> str:
    """The raw file with the kernel's trace."""
    return f"{plan.name}.trace.txt"


def launches(plan: TapPlan, trial: Trial) -> Iterator[Launch]:
    """A shell that starts the kernel's trace before anything is sent, and prints it when it is
    terminated."""
    devices = " || ".join(f'dev == "{device}"' for device in plan.ports(trial.network))
    script = _SCRIPT.format(
        instance=f"/sys/kernel/tracing/instances/qjump-mn-{plan.name}",
        buffer=BUFFER_KB,
        ready=READY,
        filter=f"len == {plan.frame_bytes} && ({devices})",
    )
    yield Launch("serve", MACHINE, ("sh", "-c", script), trace_name(plan), says=READY, itself=False)


def columns(plan: TapPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every frame, by port and in the order of their starts."""
    text = read(trace_name(plan))
    counts = _COUNTS.search(text)
    if counts is None:
        raise LostError(f"{plan.name}: the kernel's trace is missing: the tap was cut off")
    if counts[1] != counts[2]:
        raise LostError(
            f"{plan.name}: the kernel kept {counts[1]} of {counts[2]} events: tap fewer frames"
        )
    ports, links = plan.ports(trial.network), trial.network.by_device()
    rows = []
    for device, arrival, start, _ in FRAME.findall(text):
        end_ns = int(start) + theory.delivery_ns(plan.frame_bytes, links[device].rate_bps)
        arrival_ns = int(arrival) - switch_ns(trial.network)
        rows.append((">".join(ports[device]), arrival_ns, int(start), (end_ns - arrival_ns) / 1e3))
    return transposed(rows, COLUMNS)


def switch_ns(network: Network) -> int:
    """Return the declared time of a switch before a frame can wait at a port, which the kernel's
    trace does not see."""
    return network.link.switch_ns or 0


PROGRAM = Program(
    spec=Tap,
    plan=TapPlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.tap.measures:MEASURES",
)
