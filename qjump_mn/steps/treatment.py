"""What is done to a network that is up so that it is an arm's: links, scheme, limiter, marks.

One process does all that is to be done in a namespace with one program.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from qjump_mn import theory
from qjump_mn.executor.steps import MACHINE, AnyStep, Offloads, Run, Settings
from qjump_mn.links import commands, registry
from qjump_mn.links.base import HANDLE, PARENT, Shaping
from qjump_mn.model import words
from qjump_mn.model.plan import ArmPlan, QJumpPlan
from qjump_mn.model.scheme import SchemePlan
from qjump_mn.model.topology import Network
from qjump_mn.steps.network import vlan_queues
from qjump_mn.theory import LEVELS

ICMP_ECHO_REPLY = 0
ALLOWED = "net.ipv4.tcp_allowed_congestion_control"
SYSCTL = ("sysctl", "-qp", "-")
FQ_HORIZON_S = 4000
"""The longest that fq keeps a packet, about as long as its field can say: qjump-edt has a limit of its
own."""
MOST_SEGMENTS = 65535
"""Of a packet, by default (GSO_MAX_SEGS)."""
LINUX_TSO_RTT_LOG = 9
"""As Linux has it: a packet for a near host may be as long as it can."""


def treatment(arm: ArmPlan, seed: int) -> Iterator[AnyStep]:
    """The steps; each says how it is undone. ``seed`` is the trial's."""
    network, model = arm.network, registry.of(arm.network.model)
    links = network.by_device()

    def end(device: str, *, on_switch: bool) -> Shaping:
        own = zlib.crc32(f"{seed} {device}".encode())
        return model.shape(links[device], device, on_switch=on_switch, seed=own)

    ends = {MACHINE: [end(device, on_switch=True) for device in network.switch_ports()]}
    ends |= {host: [end(f"{host}-eth0", on_switch=False)] for host in network.hosts}
    yield from _congestion_control(arm.scheme)
    for node, shapings in ends.items():
        yield from _shape(node, shapings, _queues(arm, node))
    yield from model.switches(network)
    if arm.uses_levels and arm.scheme.switch_port:
        yield _level_priorities(network.switch_ports())
    for host in network.hosts:
        if arm.scheme.vlan:
            yield vlan_queues(host, network)
        if arm.departure_times:
            yield _departure_times(host, arm.departure_times)
        if settings := transport(arm):
            yield Settings(node=host, values=settings, restored=True)
        if arm.tcp.segmentation_offload:
            # Packets of up to 64 kB from TCP down to the host's wire, which cuts them.
            yield Offloads(node=host, devices=(f"{host}-eth0", network.vlan_device(host)), on=True)
            if arm.departure_times:
                yield _single_frames(host, network)
    for host, level in dict(reply for workload in arm.workloads for reply in workload.echo_replies).items():
        yield _mark_echo_replies(host, network.vlan_device(host), level)
    if arm.scheme.vlan:
        # After the marks: a qdisc that is added to an interface resets those that it has, and taprio's reset
        # cancels the timer of its gates for good (Linux 6.12, tests/guest/test_gates.py).
        for host in network.hosts:
            yield _above_wire(host, arm)


def known(arm: ArmPlan) -> Iterator[Run]:
    """Make the flows of what is measured known to the switches, with one ping each way that nobody counts.

    The first frame of a flow goes through every switch's daemon, which takes ten times as long as an idle
    round trip. What disturbs has a warm-up.
    """
    flows = dict.fromkeys(
        (source, destination, workload.level)
        for workload in arm.workloads
        if workload.SENDS and not workload.BACKGROUND
        for way in workload.flows
        for source, destination in (way, way[::-1])
    )
    for host in dict.fromkeys(source for source, _, _ in flows):
        pings = [
            f"qjau -p {level} --library -- ping -n -q -c 1 -w 5 {arm.network.addresses[destination]} "
            ">/dev/null || :"
            for source, destination, level in flows
            if source == host
        ]
        yield Run(node=host, argv=("sh", "-c", "\n".join(pings)))


def _shape(node: str, shapings: Sequence[Shaping], queues: Sequence[str]) -> Iterator[AnyStep]:
    """The ends of links at one node, and what stands below them."""
    ip, tc, undo_tc, undo_ip = (
        [line for lines in column for line in lines] for column in zip(*shapings, strict=True)
    )
    if ip:
        yield _batch("ip", node, ip, undo_ip)
    if tc:
        yield _batch("tc", node, [*tc, *queues], undo_tc)


def _batch(program: str, node: str, lines: Sequence[str], undo: Sequence[str]) -> Run:
    # Whatever one line of it comes to, the others are undone.
    back = Run(node=node, argv=(program, "-force", "-batch", "-"), stdin=_text(undo))
    return Run(node=node, argv=(program, "-batch", "-"), stdin=_text(lines), undo=back)


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _queues(arm: ArmPlan, node: str) -> list[str]:
    """tc lines for what stands below the roots of a node's interfaces: limiter, priorities, a scheme's own
    queues."""
    if node == MACHINE:
        return [line for lines in port_queues(arm.scheme, arm.network).values() for line in lines]
    device = f"{node}-eth0"
    lines = placed(arm.scheme.host, device)
    if arm.qjump is not None:
        return lines + limiter(arm.qjump, device, arm.network)
    if arm.uses_levels and not registry.of(arm.network.model).serves_levels:
        return lines + host_priorities(device, arm.network)
    return lines


def placed(lines: Sequence[str], device: str) -> list[str]:
    """A scheme's tc lines for one interface."""
    return [line.format(dev=device, parent=PARENT) for line in lines]


def vlan_lines(arm: ArmPlan, host: str) -> list[str]:
    """A scheme's tc lines for a host's VLAN device."""
    return placed(arm.scheme.vlan, arm.network.vlan_device(host))


def port_queues(scheme: SchemePlan, network: Network) -> dict[str, list[str]]:
    """A scheme's tc lines for each switch port's interface."""
    trunks = {device for ends in network.ports() if ends[1][0] in network.switches for _, device in ends}
    return {
        device: placed(scheme.trunk_port if device in trunks else scheme.switch_port, device)
        for device in network.switch_ports()
    }


def _level_priorities(devices: Sequence[str]) -> Run:
    """Give every frame that leaves a switch its level as priority, by the tag, for a scheme's own queues."""
    lines = [line for device in devices for line in commands.tagged_priorities(device)]
    return _batch("tc", MACHINE, lines, [f"qdisc del dev {device} clsact" for device in devices])


def transport(arm: ArmPlan) -> dict[str, str]:
    """What an arm asks of a host's TCP, by sysctl's names."""
    scheme, tcp = arm.scheme, arm.tcp
    values = {
        "net.ipv4.tcp_congestion_control": scheme.congestion_control,
        "net.ipv4.tcp_ecn": None if scheme.ecn is None else int(scheme.ecn),
        "net.ipv4.tcp_early_retrans": None if tcp.tail_loss_probe is None else 3 * tcp.tail_loss_probe,
        "net.ipv4.tcp_tso_rtt_log": LINUX_TSO_RTT_LOG if tcp.segmentation_offload else None,
    }
    return {key: str(value) for key, value in values.items() if value is not None}


def _above_wire(host: str, arm: ArmPlan) -> Run:
    return _batch("tc", host, vlan_lines(arm, host), [f"qdisc del dev {arm.network.vlan_device(host)} root"])


def _congestion_control(scheme: SchemePlan) -> Iterator[Run]:
    """Kernels since 4.15 let a namespace choose only from the machine's list, to which what is loaded must be
    added."""
    if scheme.congestion_control is None:
        return
    # It stands in a shell's text, also where a run's manifest is the plan.
    words.check(words.CONGESTION_CONTROL, "scheme", scheme.congestion_control)
    added = f'sysctl -qw "{ALLOWED}=$(sysctl -n {ALLOWED}) {scheme.congestion_control}"'
    yield Run(
        argv=("sh", "-c", f"modprobe tcp_{scheme.congestion_control} 2>/dev/null; {added}"),
        saves=("sysctl", ALLOWED),
        undo=Run(argv=SYSCTL),
        refusal=f"this kernel has no congestion control {scheme.congestion_control!r}",
    )


def _single_frames(host: str, network: Network) -> Run:
    """TCP makes no packets of several frames: nobody cuts them before they are charged, so that one which is
    dearer than a budget would never leave."""
    devices = (f"{host}-eth0", network.vlan_device(host))

    def lines(segments: int) -> list[str]:
        return [f"link set dev {device} gso_max_segs {segments}" for device in devices]

    return _batch("ip", host, lines(1), lines(MOST_SEGMENTS))


def host_priorities(device: str, network: Network) -> list[str]:
    """Strict priority at a host without QJump, for the link models whose root qdisc has none of its own."""
    packets = max(1, network.link.buffer_bytes // theory.frame_bytes(network.mtu_bytes))
    priomap = " ".join(str(7 - level) for level in LEVELS) + " 7" * 8
    return [
        f"qdisc add dev {device} parent {PARENT} handle {HANDLE} prio bands 8 priomap {priomap}",
        *(
            f"qdisc add dev {device} parent {HANDLE}{8 - level} handle 6{level + 1}: pfifo limit {packets}"
            for level in LEVELS
        ),
    ]


def limiter(plan: QJumpPlan, device: str, network: Network) -> list[str]:
    """What limits a host's levels, below Mininet's TC."""
    return [qjump(plan, device)] if plan.qdisc else prio_of(plan, device, network)


def prio_of(plan: QJumpPlan, device: str, network: Network) -> list[str]:
    """QJump's limits from tc's own parts: strict priorities, and of each limited level what holds it back."""
    lines = []
    for line, level in zip(host_priorities(device, network), (None, *LEVELS), strict=True):
        budget = plan.budget_bytes[level] if level is not None else 0
        if budget:
            below = fq(plan) if plan.mode == "edt" else tbf(plan, budget, network)
            line = f"{line.partition(' pfifo ')[0]} {below}"
        lines.append(line)
    return lines


def tbf(plan: QJumpPlan, budget: int, network: Network) -> str:
    """A token bucket with a budget as its depth and a budget an epoch as its rate."""
    rate = budget * 8 * theory.NS_PER_S // plan.epoch_ns
    limit = plan.limit_packets * theory.frame_bytes(network.mtu_bytes)
    return f"tbf rate {rate}bit burst {budget} limit {limit} overhead {plan.overhead} mpu {plan.mpu}"


def fq(plan: QJumpPlan) -> str:
    """What keeps a level's packets until the times that qjump-edt gives them, and has no pace of its own.

    It has room for as many again whose time has come while the link is another's."""
    packets = 2 * plan.limit_packets
    return f"fq limit {packets} flow_limit {packets} nopacing horizon {FQ_HORIZON_S}s timer_slack 0"


def edt(plan: QJumpPlan, device: str) -> tuple[str, ...]:
    """The command that makes qjump-edt give times to the packets of a host's limited levels."""
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
    return Run(node=host, argv=edt(plan, device), undo=Run(node=host, argv=("qjump-edt", "del", device)))


def qjump(plan: QJumpPlan, device: str) -> str:
    """sch_qjump, or sch_qjump2015; levels by 802.1Q priority."""
    none = "0" if plan.mode == "2015" else "unlimited"
    budgets = " ".join(f"level {level} {plan.budget_bytes[level] or none}" for level in reversed(LEVELS))
    place = f"qdisc add dev {device} parent {PARENT} handle {HANDLE} {plan.qdisc} epoch {plan.epoch_ns}ns"
    if plan.mode != "delay":
        return f"{place} {budgets}"
    priomap = " ".join(map(str, plan.priomap))
    return (
        f"{place} limit {plan.limit_packets} {budgets} priomap {priomap} "
        f"overhead {plan.overhead} mpu {plan.mpu} slack {plan.slack_ns}ns"
    )


def _mark_echo_replies(host: str, device: str, level: int) -> Run:
    """The kernel sends echo replies with priority 0 whatever the request had: give them the ping's level
    before the VLAN device reads it."""
    match = f"flower ip_proto icmp type {ICMP_ECHO_REPLY} action skbedit priority {level}"
    lines = (f"qdisc add dev {device} clsact", f"filter add dev {device} egress protocol ip {match}")
    return _batch("tc", host, lines, (f"qdisc del dev {device} clsact",))
