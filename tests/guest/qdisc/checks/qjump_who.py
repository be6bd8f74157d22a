"""Which traffic enters which level, for each priority map in the arguments: p0,p1,...,p15.

Sent on a device with qjump as root: a group join by IPv4 (IGMP) and by IPv6 (MLD), an ARP request,
an echo request, datagrams with IP_TOS, and datagrams with SO_PRIORITY, by root and by a user
without capabilities (`forbidden`: those that the user may not set). Reported: the levels whose
counters grew. Assert: as docs/qdisc.md says.
"""
import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable
from functools import partial

import rig

TOS = {"lowdelay": 0x10, "throughput": 0x08, "both": 0x18, "af21": 0x48, "ef": 0xB8, "cs6": 0xC0, "cs7": 0xE0}
PEER = ("10.9.0.2", 9)
NOBODY = 65534


def datagram(option: tuple[int, int, int] | None = None) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        if option:
            one.setsockopt(*option)
        with contextlib.suppress(ConnectionRefusedError):
            one.sendto(bytes(18), PEER)


def joined(family: int) -> None:
    """Join and leave a group; the kernel reports both."""
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        if family == socket.AF_INET:
            one.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.1.2.3") + socket.inet_aton("10.9.0.1"))
        else:
            group = socket.inet_pton(family, "ff15::9") + socket.if_nametoindex("a0").to_bytes(4, sys.byteorder)
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
        time.sleep(1)


def arp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"", ("10.9.0.77", 9))


def by_nobody(priority: int) -> bool:
    """True if a user without capabilities may set the priority."""
    os.seteuid(NOBODY)
    try:
        datagram((socket.SOL_SOCKET, socket.SO_PRIORITY, priority))
    except PermissionError:
        return False
    finally:
        os.seteuid(0)
    return True


def settled() -> list[int]:
    """Return packets by level once they are stable: reports and ARP requests are repeated."""
    last: list[int] = []
    while last != (last := [level["packets"] for level in rig.qdisc("qjump")["levels"]][::-1]):
        time.sleep(2)
    return last


def levels(act: Callable[[], object]) -> list[int]:
    """Return the levels whose packet counters grow when act() is called."""
    before = settled()
    rig.enter("a")
    act()
    return [p for p, packets in enumerate(settled()) if packets > before[p]]


def measure(priomap: str) -> dict[str, list[int]]:
    rig.tc(f"qdisc replace dev a0 root qjump priomap {priomap}")
    acts: dict[str, Callable[[], object]] = {
        "igmp": partial(joined, socket.AF_INET),
        "mld": partial(joined, socket.AF_INET6),
        "arp": arp,
        "ping": partial(rig.run, "ip netns exec a ping -c 1 -W 1 10.9.0.2"),
        "none": datagram,
    }
    acts |= {name: partial(datagram, (socket.IPPROTO_IP, socket.IP_TOS, tos)) for name, tos in TOS.items()}
    acts |= {str(p): partial(datagram, (socket.SOL_SOCKET, socket.SO_PRIORITY, p)) for p in range(17)}
    found = {name: levels(act) for name, act in acts.items()}
    rig.tc("qdisc del dev a0 root")
    return found


rig.build()
for n in "ab":
    rig.run(f"ip netns exec {n} sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.{n}0.disable_ipv6=0")
    rig.run(f"ip -n {n} addr add fd00::{1 if n == 'a' else 2}/64 dev {n}0 nodad")
found = [measure(priomap.replace(",", " ")) for priomap in sys.argv[1:]]
rig.report(found=found, forbidden=[p for p in range(17) if not by_nobody(p)])
