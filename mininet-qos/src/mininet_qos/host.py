"""Hosts that send and receive everything on a VLAN, so that a packet's priority crosses the
network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mininet.link import Intf
from mininet.node import Host

from mininet_qos import commands
from mininet_qos.commands import IDENTITY
from mininet_qos.shell import batch, run


class VLANHost(Host):  # type: ignore[misc]
    """A host with a VLAN's device on each of its interfaces, which has the address.

    The priority of a packet (``SO_PRIORITY``, or the class of its TOS) is the PCP of its tag, and
    back. What shapes stays on the interface itself: ``intfList()`` and ``intf(NAME)`` are as
    always, ``defaultIntf()`` and ``IP()`` are the VLAN's.
    """

    def __init__(
        self,
        name: str,
        vlan: int = 2,
        egress: Mapping[int, int] = IDENTITY,
        ingress: Mapping[int, int] = IDENTITY,
        **params: Any,
    ) -> None:
        """``vlan``: its number, the same for all; ``egress``: the PCP of each priority;
        ``ingress``: the priority of each PCP; what they do not name is 0. Raises QosError before
        anything is made."""
        commands.vlan(f"{name}-eth0", vlan, egress, ingress)
        self._vlan, self._egress, self._ingress = vlan, egress, ingress
        self._tagged: dict[Any, Any] = {}
        super().__init__(name, **params)

    def defaultIntf(self) -> Any:
        """The VLAN's device on the interface of the lowest port."""
        interface = super().defaultIntf()
        return self._tagged.get(interface, interface)

    def config(self, mac: str | None = None, **params: Any) -> dict[str, Any]:
        """Mininet's parameters of a host; interfaces that are new get their VLAN's device first."""
        for interface in self.intfList():
            if interface not in self._tagged:
                if mac and interface is super().defaultIntf():
                    interface.setMAC(mac)
                self._tagged[interface] = self._tag(interface)
        result: dict[str, Any] = super().config(**params)
        return result

    def _tag(self, interface: Any) -> Any:
        name = commands.vlan_name(interface.name, self._vlan)
        batch("ip", commands.vlan(interface.name, self._vlan, self._egress, self._ingress), self)
        for device in (interface.name, name):
            run(commands.offloads(device), self)
        tagged = Intf(name, link=interface.link, mac=interface.mac, up=None)
        tagged.node = self
        self.nameToIntf[name] = tagged
        if interface.ip:
            batch("ip", [f"addr flush dev {interface.name}"], self)
            tagged.setIP(interface.ip, interface.prefixLen)
            interface.ip = None
        return tagged
