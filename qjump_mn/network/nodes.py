"""Mininet's nodes and links as this project needs them: VLAN hosts, veths with eight queues, interfaces shaped in batches."""

from __future__ import annotations

from typing import Any

from mininet.link import Link, TCIntf
from mininet.node import Host, OVSBridge
from mininet.util import errRun, quietRun

from qjump_mn.model.topology import Network
from qjump_mn.network import commands


class MultiqueueLink(Link):  # type: ignore[misc]
    """A veth pair with eight transmit and receive queues at both ends (Mininet issue 976: it has no option for that)."""

    @classmethod
    def makeIntfPair(
        cls,
        intfname1: str,
        intfname2: str,
        addr1: str | None = None,
        addr2: str | None = None,
        node1: Any = None,
        node2: Any = None,
        deleteIntfs: bool = True,
    ) -> None:
        """Make the pair in one command, ends in their namespaces; the namespaces are new, so there is nothing to delete."""
        ends = [
            commands.veth_end(name, mac=address, netns=node.pid if node and node.inNamespace else 1)
            for name, address, node in ((intfname1, addr1, node1), (intfname2, addr2, node2))
        ]
        output = quietRun(f"ip {commands.veth(*ends)}")
        if output:
            raise RuntimeError(f"the veth pair {intfname1} – {intfname2} cannot be made: {output.strip()}")


class ShapedIntf(TCIntf):  # type: ignore[misc]
    """An interface whose TC commands are collected, for ``tc -batch``, instead of run one by one by a shell each."""

    def __init__(self, *args: Any, **params: Any) -> None:
        self.pending: list[str] = []
        self.pending_ip: list[str] = []
        super().__init__(*args, **params)

    def tc(self, cmd: str, tc: str = "tc") -> str:
        """Keep ``cmd``; Mininet asks what is there before it adds anything, and nothing is."""
        if "qdisc show" in cmd:
            return "noqueue"
        self.pending.append((cmd % ("", self)).strip())
        return ""

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command in the node; not Mininet's ethtool calls, for offloads are set once, when the network is built."""
        if str(args[0]).startswith("ethtool"):
            return ""
        return super().cmd(*args, **kwargs)

    def shape(self, network: Network) -> None:
        """Collect what makes this interface an end of a link of ``network``."""
        self.config(bw=network.rate_bps / 1e6, **({"delay": f"{network.delay_ns}ns"} if network.delay_ns else {}))


class WireIntf(ShapedIntf):
    """Mininet's ``bw`` made by sch_wire; its ``delay`` and ``loss`` (netem) still go below ``5:1``."""

    network: Network

    def shape(self, network: Network) -> None:
        """The wire delays by itself, with several frames on their way, so netem is not asked to."""
        self.network = network
        self.config(bw=network.rate_bps / 1e6)

    def bwCmds(self, bw: float | None = None, **params: Any) -> tuple[list[str], str]:
        """TC commands for a rate of ``bw`` Mb/s, and the parent for what is to come below."""
        if bw is None:
            return [], " root "
        line = commands.wire(self.network, "%s", on_switch=isinstance(self.node, OVSBridge))
        return [f"%s {line}"], f" parent {commands.HOST_PARENT} "


class HTBIntf(ShapedIntf):
    """Mininet's own TC link, unchanged: ``htb`` with a burst of 15k. It has no serialisation delay."""


class TBFIntf(ShapedIntf):
    """The wire made of tbf, prio, flower and, at the receiver, netem behind an ifb."""

    def shape(self, network: Network) -> None:
        """Collect the ip and tc lines of the tbf model."""
        shaping = commands.tbf(network, self.name, on_switch=isinstance(self.node, OVSBridge))
        self.pending_ip = shaping.ip
        self.pending += shaping.tc


INTERFACES: dict[str, type[ShapedIntf]] = {"wire": WireIntf, "htb": HTBIntf, "tbf": TBFIntf}


class VLANHost(Host):  # type: ignore[misc]
    """A host that sends and receives everything tagged, priority p as PCP p and PCP p as priority p."""

    def config(self, network: Network, ip: str, **params: Any) -> Any:
        """Configure the interface, and a VLAN device above it, which has the address (``ip``, with its prefix length)."""
        result = super().config(**params)
        interface = self.defaultIntf()
        self.device: str = interface.name
        self.tagged: str = f"{interface.name}.{network.vlan}"
        self.address, prefix = ip.split("/")
        output = self.cmd(" && ".join(commands.vlan_host(self.device, network, ip)))
        if output.strip():
            raise RuntimeError(f"host {self.name}: VLAN {network.vlan} cannot be set up: {output.strip()}")
        interface.ip, interface.prefixLen = self.address, prefix
        return result


class PrioritySwitch(OVSBridge):  # type: ignore[misc]
    """A learning switch on OVS's kernel datapath; its ports' qdiscs serve the levels by the frame's PCP."""

    @staticmethod
    def TCReapply(intf: Any) -> None:
        """Ports are shaped after the network is up, all at once: there is nothing to apply again."""

    @property
    def devices(self) -> list[str]:
        """The names of the ports' interfaces, in the order of their ports."""
        return [interface.name for interface in self.intfList() if self.ports.get(interface)]


class OVSHtbQosSwitch(PrioritySwitch):
    """A switch with OVS's own linux-htb QoS: eight queues a port, chosen by PCP. Absent from Mininet 2.3 (its PR 132)."""

    def enable_qos(self, network: Network) -> None:
        """Give every port eight queues below the link's rate, and every frame the queue of its PCP."""
        links = network.by_device()
        calls = [["ovs-vsctl", *commands.htb_qos({device: links[device].rate_bps for device in self.devices})]]
        calls += [["ovs-ofctl", "add-flow", self.name, rule] for rule in commands.htb_flows()]
        for call in calls:
            output, error, status = errRun(call)
            if status:
                raise RuntimeError(f"switch {self.name}: {call[0]} refuses: {(error or output).strip()}")
