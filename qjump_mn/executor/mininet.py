"""Hosts, switches and cables, by Mininet: the only module that imports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mininet.link import Intf, Link
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import OVSBridge

from .errors import MachineError
from .shell import Shell
from .steps import MACHINE, OWNER, Cable, Host, Switch

DEADLINE_S = 60.0


class _Cable(Link):  # type: ignore[misc]
    """A link whose interfaces are there already."""

    @classmethod
    def makeIntfPair(cls, *args: Any, **kwargs: Any) -> None:
        """Nothing is left to make."""


class _Bridge(OVSBridge):  # type: ignore[misc]
    """A bridge that is known to be ours from its first instant on."""

    def bridgeOpts(self) -> str:
        return f"{super().bridgeOpts()} {OWNER}"


class Emulation:
    """A network of Mininet's, made step by step; ``later`` registers what takes each step back."""

    def __init__(self, shell: Shell, later: Callable[..., Any]) -> None:
        self._shell, self._later = shell, later
        setLogLevel("warning")
        Mininet.inited = True  # its limits, which it would set now and never take back, are a step of ours
        self.net: Any = Mininet(
            topo=None, link=_Cable, intf=Intf, controller=None, build=False, waitConnected=False
        )
        later(self.net.stop)

    def host(self, step: Host) -> None:
        """A shell of Mininet's in a namespace of its own, which gets its name for ``ip netns exec``."""
        host = self.net.addHost(step.name, ip=None)
        self._run(["ip", "netns", "attach", step.name, str(host.pid)])
        self._later(self._run, ["ip", "netns", "delete", step.name])

    def switch(self, step: Switch) -> None:
        """A bridge without ports yet."""
        switch = self.net.addSwitch(step.name, cls=_Bridge, dpid=step.dpid)
        switch.start([])

    def cable(self, step: Cable) -> None:
        """The pair, Mininet's interfaces around it, and ports where it ends at switches."""
        hosts = {host.name for host in self.net.hosts}
        self._run(list(step.argv))
        first, second = step.ends
        names = {
            "intfName1": first.device,
            "intfName2": second.device,
            "addr1": first.mac,
            "addr2": second.mac,
        }
        link = self.net.addLink(first.node, second.node, **names)
        for end, interface in zip(step.ends, (link.intf1, link.intf2), strict=True):
            if end.node not in hosts:
                self._run(
                    [
                        "ovs-vsctl",
                        "add-port",
                        end.node,
                        end.device,
                        *interface.node.intfOpts(interface).split(),
                    ]
                )

    def _run(self, argv: list[str]) -> None:
        done = self._shell.run(MACHINE, argv, deadline_s=DEADLINE_S)
        if done.returncode:
            raise MachineError(f"{' '.join(argv)} failed: {done.stderr.strip()[:400]}")
