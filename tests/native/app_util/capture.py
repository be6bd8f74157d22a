"""Runs in a namespace, as a program of its own: tells what leaves a device, by the priority that its queueing
discipline and a VLAN's egress map see.

The device's packets are taken where they are handed to it, by a packet socket for each priority with a filter
of eBPF, for classic BPF cannot read a packet's priority. Until standard input ends; then a list of [priority,
protocol, TCP flags] as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import sys

SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
PROG_LOAD, SOCKET_FILTER = 5, 1  # include/uapi/linux/bpf.h
SO_ATTACH_BPF = 50
ETH_P_ALL, ETH_P_IP, ETH_P_IPV6 = 3, 0x0800, 0x86DD
PRIORITY = 32  # its place in struct __sk_buff
ALL = 0xFFFF


def instruction(code: int, to: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, source << 4 | to, offset, value)


def filter_of(priority: int) -> int:
    """The descriptor of a filter that lets packets of a priority through."""
    program = (
        instruction(0x61, to=2, source=1, offset=PRIORITY)  # r2 = skb->priority
        + instruction(0xB7, to=0, value=0)
        + instruction(0x55, to=2, offset=1, value=priority)  # if r2 != priority: over the next
        + instruction(0xB7, to=0, value=ALL)
        + instruction(0x95)
    )
    text, license_ = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"GPL")
    places = (ctypes.addressof(text), ctypes.addressof(license_))
    attributes = struct.pack("<IIQQ", SOCKET_FILTER, len(program) // 8, *places)
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = int(libc.syscall(SYS_BPF, PROG_LOAD, attributes.ljust(128, b"\0"), 128))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return descriptor


def tap(device: str, priority: int) -> socket.socket:
    # Of protocol 0 it hears nothing before it is bound, and so nothing that its filter has not seen.
    made = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    made.setsockopt(socket.SOL_SOCKET, SO_ATTACH_BPF, filter_of(priority))
    made.bind((device, ETH_P_ALL))
    made.setblocking(False)
    return made


def seen(heard: socket.socket) -> list[tuple[int, int]]:
    """Protocol and TCP flags of each IP packet that went out."""
    found: list[tuple[int, int]] = []
    while True:
        try:
            packet, (_, ethertype, direction, *_) = heard.recvfrom(256)
        except BlockingIOError:
            return found
        if direction != socket.PACKET_OUTGOING or ethertype not in (ETH_P_IP, ETH_P_IPV6):
            continue
        of_ip = ethertype == ETH_P_IP
        protocol, header = (packet[9], (packet[0] & 15) * 4) if of_ip else (packet[6], 40)
        found.append((protocol, packet[header + 13] if protocol == socket.IPPROTO_TCP else 0))


def main() -> None:
    taps = {priority: tap(sys.argv[1], priority) for priority in range(8)}
    print("ready", flush=True)
    sys.stdin.read()
    heard = {priority: seen(one) for priority, one in taps.items()}
    print(json.dumps([[priority, *packet] for priority in heard for packet in heard[priority]]))


if __name__ == "__main__":
    main()
