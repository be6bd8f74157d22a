"""Steps that apply an arm to a network that is up: its links, scheme, limiter and marks.

All lines for the same program in the same namespace go to one process.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from qjump_mn import theory
from qjump_mn.executor.steps import MACHINE, AnyStep, Offloads, Run, Settings
from qjump_mn.links import commands, registry
from qjump_mn.links.base import HANDLE, PARENT, Shaping
from qjump_mn.model import hooks, words
from qjump_mn.model.link import Link
from qjump_mn.model.plan import ArmPlan, QJumpPlan
from qjump_mn.model.scheme import SchemePlan
from qjump_mn.model.topology import Network
from qjump_mn.steps import traces
from qjump_mn.steps.network import vlan_queues
from qjump_mn.theory import LEVELS

ICMP_ECHO_REPLY = 0
ALLOWED = "net.ipv4.tcp_allowed_congestion_control"
SYSCTL = ("sysctl", "-qp", "-")
FQ_HORIZON_S = 4000
"""The longest that fq holds a packet, near its maximum: qjump-edt has a limit of its own."""
INSERT = 'insmod "$@" || { dmesg | tail -n 3 >&2; exit 1; }'
"""Load a module; if the kernel refuses it, its log says why."""
MAX_SEGMENTS = 65535
"""The default maximum of segments in a packet (GSO_MAX_SEGS)."""
LINUX_TSO_RTT_LOG = 9
"""Linux's default: a packet for a near host may have the maximum length."""


def apply_arm(arm: ArmPlan, seed: int) -> Iterator[AnyStep]:
    """Yield the steps that apply an arm, each with its undo; ``seed`` is the trial's."""
    network = arm.network
    yield from _module(arm.scheme)
    yield from _congestion_control(arm.scheme)
    for node, shapings in _shapings(network, seed).items():
        yield from _shape(node, shapings, _queues(arm, node))
    yield from registry.of(network.model).switches(network)
    if arm.uses_levels and arm.scheme.switch_port:
        yield _level_priorities(network)
    for host in network.hosts:
        yield from _host(host, arm)
    replies = dict(reply for workload in arm.workloads for reply in hooks.echo_replies(workload))
    for host, level in replies.items():
        yield _mark_echo_replies(host, network.vlan_device(host), level)
    if arm.scheme.vlan:
        # After the marks: a qdisc that is added to an interface resets its other qdiscs, and
        # taprio's reset cancels the timer of its gates for good (Linux 6.12,
        # tests/guest/test_gates.py).
        for host in network.hosts:
            yield _above_wire(host, arm)


def _shapings(network: Network, seed: int) -> dict[str, list[Shaping]]:
    """Return how to shape the link ends at each node."""
    model, links = registry.of(network.model), network.by_device()

    def shaping(device: str, *, on_switch: bool) -> Shaping:
        device_seed = zlib.crc32(f"{seed} {device}".encode())
        return model.shape(links[device], device, on_switch=on_switch, seed=device_seed)

    shapings = {MACHINE: [shaping(device, on_switch=True) for device in network.switch_ports()]}
    return shapings | {host: [shaping(f"{host}-eth0", on_switch=False)] for host in network.hosts}


def _host(host: str, arm: ArmPlan) -> Iterator[AnyStep]:
    """Apply the arm's VLAN queues, departure times and TCP settings to a host."""
    if arm.scheme.vlan:
        yield vlan_queues(host, arm.network)
    if arm.departure_times:
        yield _departure_times(host, arm.departure_times)
    if settings := transport(arm):
        yield Settings(node=host, values=settings, restored=True)
    if arm.tcp.segmentation_offload:
        # Packets stay as long as 64 kB from TCP down to the host's wire, which segments them.
        devices = (f"{host}-eth0", arm.network.vlan_device(host))
        yield Offloads(node=host, devices=devices, on=True)
        if arm.departure_times:
            yield _single_frames(host, arm.network)


def introduce_flows(arm: ArmPlan) -> Iterator[Run]:
    """Send one uncounted ping each way for each measured flow, so that the switches know it.

    A flow's first frame passes through every switch's daemon, which takes ten times as long as an
    idle round trip. Background traffic needs none of this: it has a warm-up.
    """
    flows = dict.fromkeys(
        (source, destination, workload.level)
        for workload in arm.workloads
        if hooks.sends(workload) and not hooks.is_background(workload)
        for flow in workload.flows
        for source, destination in (flow, flow[::-1])
    )
    for host in dict.fromkeys(source for source, _, _ in flows):
        pings = [
            f"qjau -p {level} --library -- ping -n -q -c 1 -w 5 "
            f"{arm.network.addresses[destination]} >/dev/null || :"
            for source, destination, level in flows
            if source == host
        ]
        yield Run(node=host, argv=("sh", "-c", "\n".join(pings)))


def _shape(node: str, shapings: Sequence[Shaping], queues: Sequence[str]) -> Iterator[AnyStep]:
    """Shape the link ends at one node, and add the queues below them."""
    ip, tc, undo_tc, undo_ip = (
        [line for lines in column for line in lines] for column in zip(*shapings, strict=True)
    )
    if ip:
        yield _batch("ip", node, ip, undo_ip)
    if tc:
        yield _batch("tc", node, [*tc, *queues], undo_tc)


def _batch(program: str, node: str, lines: Sequence[str], undo: Sequence[str]) -> Run:
    # -force: if one line of the undo fails, the others still run.
    undo_run = Run(node=node, argv=(program, "-force", "-batch", "-"), stdin=_text(undo))
    return Run(node=node, argv=(program, "-batch", "-"), stdin=_text(lines), undo=undo_run)


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _queues(arm: ArmPlan, node: str) -> list[str]:
    """Return tc lines for the qdiscs below a node's roots: limiter, priorities, scheme's queues."""
    if node == MACHINE:
        return [line for lines in port_queues(arm.scheme, arm.network).values() for line in lines]
    device = f"{node}-eth0"
    lines = for_device(arm.scheme.host, device)
    if arm.qjump is not None:
        return lines + limiter(arm.qjump, device, arm.network)
    if arm.uses_levels and not registry.of(arm.network.model).serves_levels:
        return lines + host_priorities(device, arm.network)
    return lines


def for_device(lines: Sequence[str], device: str, parent: str = PARENT) -> list[str]:
    """Fill an interface's name into a scheme's tc lines."""
    return [line.format(dev=device, parent=parent) for line in lines]


def vlan_lines(arm: ArmPlan, host: str) -> list[str]:
    """Return a scheme's tc lines for a host's VLAN device."""
    return for_device(arm.scheme.vlan, arm.network.vlan_device(host))


def port_queues(scheme: SchemePlan, network: Network) -> dict[str, list[str]]:
    """Return a scheme's tc lines for each switch port, by interface."""
    trunks = {
        device for ends in network.ports() if ends[1][0] in network.switches for _, device in ends
    }
    links = network.by_device()
    queues = {
        device: scheme.trunk_port if device in trunks else scheme.switch_port
        for device in network.switch_ports()
    }
    return {
        device: traced_queues(lines, device, links[device])
        if traces.of(links[device])
        else for_device(lines, device)
        for device, lines in queues.items()
    }


def traced_queues(lines: Sequence[str], device: str, link: Link) -> list[str]:
    """Return tc lines for the queues below a port's gate: a scheme's, or else the levels'."""
    if lines:
        return for_device(lines, device, commands.GATED)
    return commands.priorities(device, commands.GATED, link.buffer_bytes)


def _level_priorities(network: Network) -> Run:
    """Set each frame's priority from its tag as it leaves a switch, for a scheme's queues."""
    lines, undo = [], []
    for device, link in network.by_device().items():
        if device not in network.switch_ports():
            continue
        hook, *filters = commands.tagged_priorities(device)
        if link.impairment and link.impairment.at_receiver:
            lines += filters
        else:
            lines += [hook, *filters]
            undo.append(f"qdisc del dev {device} clsact")
    return _batch("tc", MACHINE, lines, undo)


def transport(arm: ArmPlan) -> dict[str, str]:
    """Return the sysctl settings of an arm's TCP."""
    scheme, tcp = arm.scheme, arm.tcp
    values = {
        "net.ipv4.tcp_congestion_control": scheme.congestion_control,
        "net.ipv4.tcp_ecn": None if scheme.ecn is None else int(scheme.ecn),
        "net.ipv4.tcp_early_retrans": None
        if tcp.tail_loss_probe is None
        else 3 * tcp.tail_loss_probe,
        "net.ipv4.tcp_rto_min_us": tcp.min_rto_us,
        "net.ipv4.tcp_tso_rtt_log": LINUX_TSO_RTT_LOG if tcp.segmentation_offload else None,
    }
    return {key: str(value) for key, value in values.items() if value is not None}


def _above_wire(host: str, arm: ArmPlan) -> Run:
    return _batch(
        "tc", host, vlan_lines(arm, host), [f"qdisc del dev {arm.network.vlan_device(host)} root"]
    )


def _module(scheme: SchemePlan) -> Iterator[Run]:
    """Load the scheme's own module, which the guest's image has (backends/modules.py)."""
    if scheme.module is None:
        return
    scheme.module.check("scheme")
    yield Run(
        argv=("sh", "-c", INSERT, "sh", scheme.module.path, *scheme.module_parameters),
        refusal=f"the kernel refuses the module {scheme.module.file}",
    )


def _congestion_control(scheme: SchemePlan) -> Iterator[Run]:
    """Load the scheme's congestion control, and allow it to network namespaces.

    Since Linux 4.15 a namespace can only choose from the machine's list of allowed ones.
    """
    if scheme.congestion_control is None:
        return
    # It becomes part of a shell command, and the plan may come from a stranger's manifest.
    words.check(words.CONGESTION_CONTROL, "scheme", scheme.congestion_control)
    added = f'sysctl -qw "{ALLOWED}=$(sysctl -n {ALLOWED}) {scheme.congestion_control}"'
    yield Run(
        argv=("sh", "-c", f"modprobe tcp_{scheme.congestion_control} 2>/dev/null; {added}"),
        saves=("sysctl", ALLOWED),
        undo=Run(argv=SYSCTL),
        refusal=f"this kernel has no congestion control {scheme.congestion_control!r}",
    )


def _single_frames(host: str, network: Network) -> Run:
    """Limit TCP's packets to one frame each.

    Packets are charged before they are segmented, so one larger than a budget would never leave.
    """
    devices = (f"{host}-eth0", network.vlan_device(host))

    def lines(segments: int) -> list[str]:
        return [f"link set dev {device} gso_max_segs {segments}" for device in devices]

    return _batch("ip", host, lines(1), undo=lines(MAX_SEGMENTS))


def host_priorities(device: str, network: Network) -> list[str]:
    """Return tc lines for strict priority at a host without QJump.

    They are for link models whose root qdisc does not serve levels by itself.
    """
    packets = max(1, network.link.buffer_bytes // theory.frame_bytes(network.mtu_bytes))
    priomap = " ".join(str(7 - level) for level in LEVELS) + " 7" * 8
    lines = [
        f"qdisc add dev {device} parent {PARENT} handle {HANDLE} prio bands 8 priomap {priomap}"
    ]
    for level in LEVELS:
        location = f"dev {device} parent {HANDLE}{8 - level} handle 6{level + 1}:"
        lines.append(f"qdisc add {location} pfifo limit {packets}")
    return lines


def limiter(plan: QJumpPlan, device: str, network: Network) -> list[str]:
    """Return tc lines that limit a host's levels, below the link's root qdisc."""
    return [qjump(plan, device)] if plan.qdisc else stock_limiter(plan, device, network)


def stock_limiter(plan: QJumpPlan, device: str, network: Network) -> list[str]:
    """Return QJump's limits made of stock qdiscs: strict priorities, with a tbf or fq each."""
    lines = []
    for line, level in zip(host_priorities(device, network), (None, *LEVELS), strict=True):
        budget = plan.budget_bytes[level] if level is not None else 0
        if budget:
            qdisc = fq(plan) if plan.mode == "edt" else tbf(plan, budget, network)
            line = f"{line.partition(' pfifo ')[0]} {qdisc}"
        lines.append(line)
    return lines


def tbf(plan: QJumpPlan, budget: int, network: Network) -> str:
    """Return a token bucket whose depth is one budget, and whose rate is one budget per epoch."""
    rate = budget * 8 * theory.NS_PER_S // plan.epoch_ns
    limit = plan.limit_packets * theory.frame_bytes(network.mtu_bytes)
    return (
        f"tbf rate {rate}bit burst {budget} limit {limit} overhead {plan.overhead} mpu {plan.mpu}"
    )


def fq(plan: QJumpPlan) -> str:
    """Return an unpaced fq, which holds a level's packets until qjump-edt's departure times.

    Its limit is doubled: it also holds packets that are due while the link is busy.
    """
    packets = 2 * plan.limit_packets
    return f"fq limit {packets} flow_limit {packets} nopacing horizon {FQ_HORIZON_S}s timer_slack 0"


def edt(plan: QJumpPlan, device: str) -> tuple[str, ...]:
    """Return the qjump-edt command that sets departure times for a host's limited levels."""
    budgets = [
        word
        for level in reversed(LEVELS)
        if plan.budget_bytes[level]
        for word in ("level", str(level), str(plan.budget_bytes[level]))
    ]
    return (
        *("qjump-edt", "add", device, "epoch", str(plan.epoch_ns), "slack", str(plan.slack_ns)),
        *("limit", str(plan.limit_packets), *budgets, "priomap", *map(str, plan.priomap)),
        *("overhead", str(plan.overhead), "mpu", str(plan.mpu)),
    )


def _departure_times(host: str, plan: QJumpPlan) -> Run:
    device = f"{host}-eth0"
    return Run(
        node=host, argv=edt(plan, device), undo=Run(node=host, argv=("qjump-edt", "del", device))
    )


def qjump(plan: QJumpPlan, device: str) -> str:
    """Return the tc line for sch_qjump or sch_qjump2015, with levels by 802.1Q priority."""
    unlimited = "0" if plan.mode == "2015" else "unlimited"
    budgets = " ".join(
        f"level {level} {plan.budget_bytes[level] or unlimited}" for level in reversed(LEVELS)
    )
    location = f"dev {device} parent {PARENT} handle {HANDLE}"
    qdisc = f"qdisc add {location} {plan.qdisc} epoch {plan.epoch_ns}ns"
    if plan.mode != "delay":
        return f"{qdisc} {budgets}"
    priomap = " ".join(map(str, plan.priomap))
    return (
        f"{qdisc} limit {plan.limit_packets} {budgets} priomap {priomap} "
        f"overhead {plan.overhead} mpu {plan.mpu} slack {plan.slack_ns}ns"
    )


def _mark_echo_replies(host: str, device: str, level: int) -> Run:
    """Give a host's echo replies the ping's level before the VLAN device reads it.

    The kernel sends them with priority 0, whatever the request had.
    """
    match = f"flower ip_proto icmp type {ICMP_ECHO_REPLY} action skbedit priority {level}"
    lines = (
        f"qdisc add dev {device} clsact",
        f"filter add dev {device} egress protocol ip {match}",
    )
    return _batch("tc", host, lines, (f"qdisc del dev {device} clsact",))
