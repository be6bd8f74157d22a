"""Hosts that send and receive on a VLAN, whose tags carry a packet's priority through the
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
    """A host with a VLAN device on each of its interfaces, which has the address.

    The priority of a packet (``SO_PRIORITY``, or the class of its TOS) becomes the PCP of its tag,
    and the reverse on receipt. Shapers stay on the interface itself: ``intfList()`` and
    ``intf(NAME)`` return it; ``defaultIntf()`` and ``IP()`` are those of the VLAN.
    """

    def __init__(
        self,
        name: str,
        vlan: int = 2,
        egress: Mapping[int, int] = IDENTITY,
        ingress: Mapping[int, int] = IDENTITY,
        **params: Any,
    ) -> None:
        """Check the settings. ``vlan``: its number, the same for all hosts; ``egress``: the PCP of
        each priority; ``ingress``: the priority of each PCP; others are 0. Raises QosError."""
        commands.vlan(f"{name}-eth0", vlan, egress, ingress)
        self._vlan, self._egress, self._ingress = vlan, egress, ingress
        self._tagged: dict[Any, Any] = {}
        super().__init__(name, **params)

    def defaultIntf(self) -> Any:
        """Return the VLAN device on the interface of the lowest port."""
        interface = super().defaultIntf()
        return self._tagged.get(interface, interface)

    def config(self, mac: str | None = None, **params: Any) -> dict[str, Any]:
        """Give new interfaces their VLAN device, then set Mininet's parameters of a host."""
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
