"""A plan as the shell commands that it stands for: what ``--dry-run`` prints, and what a reader may try by hand."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.model.topology import PREFIX_BITS, Network
from qjump_mn.network import commands
from qjump_mn.programs import registry
from qjump_mn.programs.launch import PHASES


def lines(plan: Plan) -> Iterator[str]:
    """The commands, with comments, in the order in which they are run."""
    network = plan.network
    ports = network.ports()
    yield f"# {network.topology}: {len(network.hosts)} hosts, {len(network.switches)} switches, {network.told_links} of model {network.model}"
    yield from (f"ip netns add {host}" for host in network.hosts)
    yield from (f"ovs-vsctl add-br {switch} -- set bridge {switch} fail_mode=standalone" for switch in network.switches)
    for (above, upper), (below, lower) in ports:
        inside = below in network.hosts
        yield f"ip {commands.veth(commands.veth_end(upper), commands.veth_end(lower, netns=below if inside else None))}"
        yield f"ovs-vsctl add-port {above} {upper}" + ("" if inside else f" -- add-port {below} {lower}")
    yield from (line for pair in ports for node, device in pair if node not in network.hosts for line in commands.switch_port(device, network))
    for host, address in network.addresses.items():
        yield f"# {host}"
        yield from (_inside(host, command) for command in commands.vlan_host(f"{host}-eth0", network, f"{address}/{PREFIX_BITS}"))
    yield "# every end of every link"
    links = network.by_device()
    for (_, upper), (below, lower) in ports:
        yield from _shape(links[upper], None, upper)
        yield from _shape(links[lower], below if below in network.hosts else None, lower)
    if network.model == "htb":
        rates = {device: links[device].rate_bps for pair in ports for node, device in pair if node not in network.hosts}
        yield shlex.join(["ovs-vsctl", *commands.htb_qos(rates)])
        yield from (shlex.join(["ovs-ofctl", "add-flow", switch, rule]) for switch in network.switches for rule in commands.htb_flows())
    for arm in plan.arms_run:
        yield ""
        yield f"# arm {arm.name}: {arm.label}; for each seed of {', '.join(map(str, plan.seeds))}"
        yield from _arm(plan, arm)


def _inside(host: str | None, command: str) -> str:
    return f"ip netns exec {host} {command}" if host else command


def _shape(network: Network, host: str | None, device: str) -> Iterator[str]:
    if network.model == "htb" and host is None:
        return  # OVS's QoS shapes the switches' ports
    shaping = commands.shape(network, device, on_switch=host is None)
    yield from (_inside(host, f"ip {line}") for line in shaping.ip)
    yield from (_inside(host, f"tc {line}") for line in shaping.tc)


def _arm(plan: Plan, arm: ArmPlan) -> Iterator[str]:
    network = arm.network
    if network != plan.network:
        control = f", flow control at {network.xoff_bytes} and {network.xon_bytes} B" if network.xoff_bytes else ""
        yield f"# with links of its own: model {network.model}, {network.told_links}, orphan {network.orphan}{control}"
    for host in network.hosts:
        device = f"{host}-eth0"
        transport = commands.transport(arm.scheme)
        if transport:
            yield _inside(host, shlex.join(["sysctl", "-qw", *(line.replace(" = ", "=") for line in transport)]))
        yield from (_inside(host, f"tc {line}") for line in commands.placed(arm.scheme.host, device))
        if arm.qjump is not None:
            yield from (_inside(host, f"tc {line}") for line in commands.limiter(arm.qjump, device, network))
        elif arm.uses_levels and network.model != "wire":
            yield from (_inside(host, f"tc {line}") for line in commands.host_priorities(device, network))
    yield from (f"tc {line}" for lines in commands.port_queues(arm.scheme, network).values() for line in lines)
    trial = next(trial for trial in plan.trials() if trial.arm == arm)
    started = [(workload, launch) for workload in arm.workloads for launch in registry.of(workload).launches(workload, trial)]
    for workload in arm.workloads:
        for host, level in workload.echo_replies:
            yield from (_inside(host, f"tc {line}") for line in commands.mark_echo_replies(f"{host}-eth0.{network.vlan}", level))
    for workload, launch in sorted(started, key=lambda one: PHASES.index(one[1].phase)):
        wrapper = commands.qjau(workload.level, workload.window_bytes, launch.preload)
        yield _inside(launch.host, shlex.join([*wrapper, *launch.argv])) + ("" if launch.phase == "probe" else " &")
