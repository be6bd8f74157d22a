"""Give each traced packet the first bytes that its frame would have in the emulation."""

from __future__ import annotations

import struct
from typing import NamedTuple

from qjump_mn import theory
from qjump_mn.model import hooks
from qjump_mn.model.plan import ArmPlan
from qjump_mn.model.workload import WorkloadPlan
from qjump_mn.programs import registry
from qjump_mn.results import packets
from qjump_sim.trace import ACK, DATA, DATAGRAM, SYN, SYN_ACK

_SYN, _PSH, _ACK = 0x02, 0x08, 0x10
_FLAGS = {DATA: _PSH | _ACK, SYN: _SYN, SYN_ACK: _SYN | _ACK}
_FIRST_PORT, _PORTS, _SERVICE = 10_000, 50_000, 5_001
"""Ports of senders, of which a flow has one, and of a receiver whose workload is not known."""


class Packet(NamedTuple):
    """What the trace says of a packet: ``length`` in bytes with FCS, ``level`` as in 802.1Q, and
    ``number``, which counts a flow's datagrams, or its full packets."""

    source: str
    destination: str
    flow: int
    kind: int
    level: int
    length: int
    number: int


class Heads:
    """The first bytes of an arm's packets: Ethernet, IPv4, and TCP, UDP or ICMP."""

    def __init__(self, arm: ArmPlan) -> None:
        self._addresses = {
            host: bytes(map(int, address.split(".")))
            for host, address in arm.network.addresses.items()
        }
        self._payload = arm.network.mtu_bytes - theory.TCP_HEADERS_BYTES
        self._by_pair: dict[frozenset[str], list[WorkloadPlan]] = {}
        for workload in filter(hooks.sends, arm.workloads):
            for pair in map(frozenset, hooks.conversations(workload)):
                self._by_pair.setdefault(pair, []).append(workload)

    def head(self, packet: Packet, identification: int) -> bytes:
        """Return a frame's first bytes, without a tag; ``identification`` is that of its IP
        header."""
        workload = self._workload(packet)
        if packet.kind != DATAGRAM:
            protocol, transport = packets.TCP, self._tcp(packet, workload)
        elif workload is not None and registry.of(workload).name == "ping":
            echo = (packet.source, packet.destination) in hooks.conversations(workload)
            protocol = packets.ICMP
            transport = struct.pack(
                ">BBHHH", 8 if echo else 0, 0, 0, packet.flow & 0xFFFF, packet.number & 0xFFFF
            )
        else:
            size = max(packet.length - theory.FCS_BYTES - theory.ETHERNET_HEADER_BYTES, 28) - 20
            protocol = packets.UDP
            transport = struct.pack(">HHHH", *self._ports(packet, workload), size & 0xFFFF, 0)
        return self._network(packet, protocol, identification, len(transport)) + transport

    def _workload(self, packet: Packet) -> WorkloadPlan | None:
        """Return the workload of a packet: among those of the two hosts that of its kind and
        level."""
        between = self._by_pair.get(frozenset((packet.source, packet.destination)), [])
        pings = [one for one in between if registry.of(one).name == "ping"]
        fit = pings if packet.kind == DATAGRAM and pings else [
            one for one in between if one not in pings
        ]  # fmt: skip
        return next(
            (one for one in fit if packet.level in hooks.levels(one)), next(iter(fit), None)
        )

    def _ports(self, packet: Packet, workload: WorkloadPlan | None) -> tuple[int, int]:
        ways = hooks.conversations(workload) if workload else ()
        there = (packet.source, packet.destination) in ways
        back = (packet.destination, packet.source) in ways
        is_answer = packet.kind in (ACK, SYN_ACK) if there == back else back
        ports = (
            _FIRST_PORT + packet.flow % _PORTS, (workload and workload.port) or _SERVICE
        )  # fmt: skip
        return ports[::-1] if is_answer else ports

    def _tcp(self, packet: Packet, workload: WorkloadPlan | None) -> bytes:
        byte = (1 + packet.number * self._payload) & 0xFFFFFFFF
        sequence = byte if packet.kind == DATA else 0 if packet.kind in (SYN, SYN_ACK) else 1
        acknowledged = byte if packet.kind == ACK else 0 if packet.kind == SYN else 1
        flags = _FLAGS.get(packet.kind, _ACK)
        ports = self._ports(packet, workload)
        return struct.pack(">HHIIBBHHH", *ports, sequence, acknowledged, 0x50, flags, 0xFFFF, 0, 0)

    def _network(self, packet: Packet, protocol: int, identification: int, transport: int) -> bytes:
        """Return the headers of Ethernet and IPv4."""
        around = theory.ETHERNET_HEADER_BYTES + theory.FCS_BYTES
        size = max(packet.length - around, theory.IP_HEADER_BYTES + transport) & 0xFFFF
        ends = self._addresses[packet.source] + self._addresses[packet.destination]
        before = struct.pack(
            ">BBHHHBB", 0x45, packet.level << 5, size, identification & 0xFFFF, 0x4000, 64, protocol
        )
        total = sum(struct.unpack(">9H", before + ends))
        total = (total & 0xFFFF) + (total >> 16)
        checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
        macs = b"".join(b"\x02\0" + end for end in (ends[4:], ends[:4]))
        return macs + b"\x08\0" + before + struct.pack(">H", checksum) + ends
