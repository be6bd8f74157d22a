"""Create hosts, switches and cables with Mininet; the only module that imports it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mininet.link import Intf, Link
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, OVSBridge

from .errors import MachineError
from .shell import NAMESPACES, Shell
from .steps import MACHINE, OWNER, Topology

DEADLINE_S = 60.0


class _Host(Host):  # type: ignore[misc]
    """A host whose namespace already exists, and which needs no shell."""

    def startShell(self, mnopts: str | None = None) -> None:
        """Do nothing: commands run by ``ip netns``, not by a shell."""


class _Cable(Link):  # type: ignore[misc]
    """A link whose interfaces already exist."""

    @classmethod
    def makeIntfPair(cls, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the interfaces exist."""


class _Bridge(OVSBridge):  # type: ignore[misc]
    """A bridge that is created with the mark of ours, and needs no shell."""

    startShell = _Host.startShell

    def bridgeOpts(self) -> str:
        return f"{super().bridgeOpts()} {OWNER}"


def build(step: Topology, shell: Shell, later: Callable[..., Any]) -> None:
    """Create a network; ``later`` registers the undo of each part.

    Raises MachineError if a name is taken or a command fails.
    """
    ports = [
        end.device for cable in step.cables for end in cable.ends if end.node not in step.hosts
    ]
    _check_names(step, ports)

    def undo(argv: list[str], stdin: str = "") -> None:
        later(shell.run, MACHINE, argv, stdin=stdin, deadline_s=DEADLINE_S)

    def run(argv: list[str], stdin: str = "") -> None:
        done = shell.run(MACHINE, argv, stdin=stdin, deadline_s=DEADLINE_S)
        if done.returncode:
            raise MachineError(f"{' '.join(argv)[:80]} failed: {done.stderr.strip()[:400]}")

    setLogLevel("error")  # it would warn that nodes without a shell set no interface up
    Mininet.inited = True  # else it sets limits and never restores them; a step of ours does both
    net = Mininet(
        topo=None, link=_Cable, intf=Intf, controller=None, build=False, waitConnected=False
    )
    for name in step.hosts:
        shell.make_namespace(name)
        undo(["ip", "netns", "delete", name])
        net.addHost(name, cls=_Host, ip=None)
    for switch in step.switches:
        net.addSwitch(switch.name, cls=_Bridge, dpid=switch.dpid, batch=True)
    undo(["ip", "-force", "-batch", "-"], "".join(f"link delete {port}\n" for port in ports))
    run(["ip", "-batch", "-"], "".join(f"{cable.line}\n" for cable in step.cables))
    for end1, end2 in (cable.ends for cable in step.cables):
        names = {"intfName1": end1.device, "intfName2": end2.device}
        net.addLink(end1.node, end2.node, **names, addr1=end1.mac, addr2=end2.mac, up=None)
    for bridge in net.switches:
        bridge.start([])
        undo(["ovs-vsctl", "del-br", bridge.name])
    _Bridge.batchStartup(net.switches, run=lambda commands, shell: run(["sh", "-c", commands]))


def _check_names(step: Topology, ports: list[str]) -> None:
    """Raise MachineError if a namespace or an interface to be created already exists."""
    names = (*(switch.name for switch in step.switches), *ports)
    interfaces = (Path("/sys/class/net", name) for name in names)
    for path in (*(NAMESPACES / host for host in step.hosts), *interfaces):
        if path.exists():
            problem = f"{path} belongs to another network on this machine"
            raise MachineError(f"{problem}: take that down first (mn -c)")
