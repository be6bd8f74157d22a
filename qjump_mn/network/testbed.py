"""The network under test, up and running: built from a plan's Network, shaped, limited, marked, read back and taken down."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from mininet.log import setLogLevel
from mininet.net import Mininet

from qjump_mn.errors import MachineError
from qjump_mn.model.plan import QJumpPlan
from qjump_mn.model.scheme import SchemePlan
from qjump_mn.model.topology import PREFIX_BITS, SWITCHES, Network
from qjump_mn.network import commands, openvswitch
from qjump_mn.network.nodes import INTERFACES, MultiqueueLink, OVSHtbQosSwitch, PrioritySwitch, VLANHost

_COMMON = ("openvswitch", "8021q", "veth", "cls_flower", "act_skbedit", "sch_ingress")
MODULES = {
    "wire": (*_COMMON, "sch_wire", "sch_qjump"),
    "htb": (*_COMMON, "sch_htb", "sch_prio", "sch_qjump"),
    "tbf": (*_COMMON, "act_mirred", "cls_matchall", "sch_tbf", "sch_prio", "sch_netem", "ifb"),
}


def load_modules(network: Network) -> None:
    """Load what the link model needs; raise :class:`MachineError` naming the modules this kernel has not."""
    missing = []
    for module in MODULES[network.model]:
        arguments = ["numifbs=0"] if module == "ifb" else []
        if (
            not Path(f"/sys/module/{module}").is_dir()
            and subprocess.run(["modprobe", module, *arguments], capture_output=True, check=False).returncode
        ):
            missing.append(module)
    if missing:
        raise MachineError(
            f"this kernel ({os.uname().release}) has no module {', '.join(missing)}: use --backend guest, which brings a kernel of its own"
        )


class Testbed:
    """A context manager: the network is up inside, and nothing of it is left behind."""

    __test__ = False  # not a test, whatever pytest thinks of its name

    def __init__(self, network: Network) -> None:
        self.network = network
        self.hosts: dict[str, VLANHost] = {}
        self.switches: dict[str, PrioritySwitch] = {}
        self._exits = ExitStack()
        self._shaped = False
        self._waiting: dict[tuple[str, VLANHost | None], list[str]] = {}
        self._marked: set[str] = set()
        self._transport: list[str] = []

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self._exits.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._exits.close()

    def _build(self) -> None:
        network = self.network
        openvswitch.check()
        load_modules(network)
        self._refuse_foreign()
        setLogLevel("warning")
        net = Mininet(topo=None, link=MultiqueueLink, intf=INTERFACES[network.model], controller=None, build=False, waitConnected=False)
        self._exits.callback(net.stop)
        switch_class = OVSHtbQosSwitch if network.model == "htb" else PrioritySwitch
        for index, name in enumerate(network.switches):
            self.switches[name] = net.addSwitch(name, cls=switch_class, dpid=f"{index + 1:x}")
        for index, name in enumerate(network.hosts):
            mac = f"02:00:00:00:00:{index + 1:02x}"
            self.hosts[name] = net.addHost(name, cls=VLANHost, ip=f"{network.addresses[name]}/{PREFIX_BITS}", mac=mac, network=network)
        for index, (above, below) in enumerate(network.edges):
            # Mininet draws these at random; a repeatable run has repeatable addresses.
            addresses = {"addr1": f"02:00:00:01:{index:02x}:01", "addr2": f"02:00:00:01:{index:02x}:02"}
            ends = (below, above) if below in self.hosts else (above, below)
            net.addLink(*ends, **addresses)
        net.start()
        devices = self.switch_devices()
        self._shell(" && ".join(line for device in devices for line in commands.switch_port(device, network)))
        if network.static_arp:
            self._static_arp()
        self._learn()
        # They stay as they are, and reading them takes a process for each device: read once, kept with every trial.
        self.offloads = {SWITCHES: self._read_offloads(None, devices)}
        self.offloads |= {name: self._read_offloads(name, [host.device, host.tagged]) for name, host in self.hosts.items()}

    def _learn(self) -> None:
        """Let every switch hear every host once, so that no frame of a trial is flooded.

        A flow whose first packet finds its destination unknown is flooded until Open vSwitch revalidates it, up to half a second.
        """
        names = list(self.hosts)
        for name, following in zip(names, [*names[1:], names[0]], strict=True):
            self.read(name, ["ping", "-n", "-q", "-c", "1", "-W", "5", self.hosts[following].address])
        for switch in self.switches:
            # Longer than any trial; Open vSwitch's default is 300 s.
            self._shell(f"ovs-vsctl set bridge {switch} other_config:mac-aging-time=86400")
        self._shell("ovs-appctl revalidator/purge")

    def _read_offloads(self, name: str | None, devices: list[str]) -> str:
        return self.read(name, ["sh", "-c", "; ".join(f"echo 'Device {device}:'; ethtool -k {device}" for device in devices)])

    def _refuse_foreign(self) -> None:
        """A bridge or interface with a name of ours belongs to somebody else: say so, touch nothing."""
        for name in (*self.network.switches, *(f"{switch}-eth1" for switch in self.network.switches)):
            if Path(f"/sys/class/net/{name}").exists():
                raise MachineError(
                    f"an interface {name!r} exists already, of another network on this machine: take that down first (mn -c)"
                )

    def _static_arp(self) -> None:
        for host in self.hosts.values():
            others = (other for other in self.hosts.values() if other is not host)
            lines = [f"neigh replace {other.address} lladdr {other.MAC()} dev {host.tagged} nud permanent" for other in others]
            self._batch("ip", lines, host)

    def switch_devices(self) -> list[str]:
        """Every switch port's interface."""
        return [device for switch in self.switches.values() for device in switch.devices]

    def shape(self, network: Network) -> None:
        """Make every interface an end of a link of ``network``, whose skeleton is this one's, when :meth:`apply` is called."""
        if self._shaped:
            self._unshape()
        self.network = network
        self._shaped = True
        links = network.by_device()
        for node in (None, *self.hosts.values()):
            interfaces = [node.defaultIntf()] if node else [i for s in self.switches.values() for i in s.intfList() if s.ports.get(i)]
            for interface in interfaces:
                if node or network.model != "htb":
                    interface.shape(links[interface.name])
                    self._later("ip", _taken(interface.pending_ip), node)
                    self._later("tc", _taken(interface.pending), node)
        for switch in self.switches.values():
            if isinstance(switch, OVSHtbQosSwitch):
                switch.enable_qos(network)

    def apply(self) -> None:
        """Do what has been asked for since the last time: one ip, one sysctl and one tc process a namespace."""
        for (program, node), lines in sorted(self._waiting.items(), key=lambda item: item[0][0]):
            self._batch(program, lines, node)
        self._waiting.clear()

    def _unshape(self) -> None:
        for node in (None, *self.hosts.values()):
            devices = [node.device] if node else self.switch_devices()
            if node is None and self.network.model == "htb":
                self._shell("ovs-vsctl " + " ".join(f"-- clear port {device} qos" for device in devices))
                self._shell("ovs-vsctl -- --all destroy qos -- --all destroy queue")
                continue
            self._batch("tc", [f"qdisc del dev {device} root" for device in devices], node)
            if self.network.model == "tbf":
                self._batch("tc", [f"qdisc del dev {device} ingress" for device in devices], node)
                self._batch("ip", [f"link del {commands.ifb_name(device)}" for device in devices], node)
        for name in self._marked:
            self._batch("tc", [f"qdisc del dev {self.hosts[name].tagged} clsact"], self.hosts[name])
        self._marked.clear()
        for host in self.hosts.values() if self._transport else ():
            self._batch("sysctl", self._transport, host)
        self._transport = []

    def adopt(self, scheme: SchemePlan) -> None:
        """Do what a scheme asks of hosts' TCP, interfaces and switch ports, when :meth:`apply` is called; so for the next three."""
        for lines in commands.port_queues(scheme, self.network).values():
            self._later("tc", lines, None)
        asked = commands.transport(scheme)
        for host in self.hosts.values():
            self._later("tc", commands.placed(scheme.host, host.device), host)
            self._later("sysctl", asked, host)
        if asked:
            self._transport = self._before(scheme, asked)

    def _before(self, scheme: SchemePlan, asked: list[str]) -> list[str]:
        """What TCP is like before it is told otherwise; the machine may then use the scheme's congestion control in every namespace."""
        if scheme.congestion_control is not None:
            key = "net.ipv4.tcp_allowed_congestion_control"
            self._run(["modprobe", f"tcp_{scheme.congestion_control}"], None, None)
            allowed = self.read(None, ["sysctl", "-n", key]).split()
            if scheme.congestion_control not in allowed:
                # Kernels since 4.15 let a namespace choose only from this list.
                self._batch("sysctl", [f"{key} = {' '.join([*allowed, scheme.congestion_control])}"], None)
                self._exits.callback(self._batch, "sysctl", [f"{key} = {' '.join(allowed)}"], None)
        return self.read(next(iter(self.hosts)), ["sysctl", *(line.partition(" = ")[0] for line in asked)]).splitlines()

    def limit(self, plan: QJumpPlan) -> None:
        """Limit the levels of every host, below Mininet's TC."""
        for host in self.hosts.values():
            self._later("tc", commands.limiter(plan, host.device, self.network), host)

    def prioritise_hosts(self) -> None:
        """Strict priority by level at the hosts, for an arm with levels and without QJump."""
        if self.network.model == "wire":
            return  # sch_wire serves the levels itself
        for host in self.hosts.values():
            self._later("tc", commands.host_priorities(host.device, self.network), host)

    def mark_echo_replies(self, name: str, level: int) -> None:
        """Give the echo replies of host ``name`` their level."""
        if name not in self._marked:
            self._marked.add(name)
            self._later("tc", commands.mark_echo_replies(self.hosts[name].tagged, level), self.hosts[name])

    def popen(self, name: str, argv: list[str], *, stdout: IO[Any], stderr: IO[Any], folder: Path) -> subprocess.Popen[bytes]:
        """Start a program on a host, in ``folder``; standard input is empty."""
        process: subprocess.Popen[bytes] = self.hosts[name].popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, cwd=folder)
        return process

    def read(self, name: str | None, argv: list[str]) -> str:
        """What a program prints on a host, or on the machine itself for None; raise :class:`MachineError` if it fails."""
        return self._run(argv, None, self.hosts[name] if name else None)

    def _later(self, program: str, lines: list[str], node: VLANHost | None) -> None:
        self._waiting.setdefault((program, node), []).extend(lines)

    def _batch(self, program: str, lines: Iterable[str], node: VLANHost | None) -> None:
        text = "".join(f"{line}\n" for line in lines)
        if text:
            self._run([program, *(("-qp", "-") if program == "sysctl" else ("-batch", "-"))], text, node)

    def _shell(self, line: str) -> None:
        self._run(["sh", "-c", line], None, None)

    def _run(self, argv: list[str], text: str | None, node: VLANHost | None) -> str:
        prefix = ["mnexec", "-a", str(node.pid)] if node else []
        done = subprocess.run([*prefix, *argv], input=text, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            where = node.name if node else "this machine"
            raise MachineError(f"{' '.join(argv)} failed on {where}: {done.stderr.strip()[:400]}")
        return done.stdout


def _taken(lines: list[str]) -> list[str]:
    taken = list(lines)
    lines.clear()
    return taken
