"""Hosts, switches and cables, by Mininet: the only module that imports it."""

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
    """A host whose namespace is there already; no shell waits in it."""

    def startShell(self, mnopts: str | None = None) -> None:
        """Nothing is left to start."""


class _Cable(Link):  # type: ignore[misc]
    """A link whose interfaces are there already."""

    @classmethod
    def makeIntfPair(cls, *args: Any, **kwargs: Any) -> None:
        """Nothing is left to make."""


class _Bridge(OVSBridge):  # type: ignore[misc]
    """A bridge that is known to be ours from its first instant on; no shell waits for it either."""

    startShell = _Host.startShell

    def bridgeOpts(self) -> str:
        return f"{super().bridgeOpts()} {OWNER}"


def build(step: Topology, shell: Shell, later: Callable[..., Any]) -> None:
    """Make a network; ``later`` registers what takes each part of it back."""
    ports = [end.device for cable in step.cables for end in cable.ends if end.node not in step.hosts]
    interfaces = (Path("/sys/class/net", name) for name in (*(one.name for one in step.switches), *ports))
    for path in (*(NAMESPACES / host for host in step.hosts), *interfaces):
        if path.exists():
            raise MachineError(f"{path} is another network's on this machine: take that down first (mn -c)")

    def undo(argv: list[str], stdin: str = "") -> None:
        later(shell.run, MACHINE, argv, stdin=stdin, deadline_s=DEADLINE_S)

    def run(argv: list[str], stdin: str = "") -> None:
        done = shell.run(MACHINE, argv, stdin=stdin, deadline_s=DEADLINE_S)
        if done.returncode:
            raise MachineError(f"{' '.join(argv)[:80]} failed: {done.stderr.strip()[:400]}")

    setLogLevel("error")  # it would warn that nodes without a shell set no interface up
    Mininet.inited = True  # its limits, which it would set now and never take back, are a step of ours
    net = Mininet(topo=None, link=_Cable, intf=Intf, controller=None, build=False, waitConnected=False)
    for name in step.hosts:
        shell.make_namespace(name)
        undo(["ip", "netns", "delete", name])
        net.addHost(name, cls=_Host, ip=None)
    for switch in step.switches:
        net.addSwitch(switch.name, cls=_Bridge, dpid=switch.dpid, batch=True)
    undo(["ip", "-force", "-batch", "-"], "".join(f"link delete {port}\n" for port in ports))
    run(["ip", "-batch", "-"], "".join(f"{cable.line}\n" for cable in step.cables))
    for first, second in (cable.ends for cable in step.cables):
        names = {"intfName1": first.device, "intfName2": second.device}
        net.addLink(first.node, second.node, **names, addr1=first.mac, addr2=second.mac, up=None)
    for bridge in net.switches:
        bridge.start([])
        undo(["ovs-vsctl", "del-br", bridge.name])
    _Bridge.batchStartup(net.switches, run=lambda commands, shell: run(["sh", "-c", commands]))
