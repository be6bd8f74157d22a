"""Draw a list of flows, and send them over TCP between all hosts: a program for the guest.

One process has the sockets of all hosts: each is made in its host's network namespace. As code
takes no time in the guest, this delays nothing. The only argument is JSON, see :func:`main`.

Every flow has a connection, made before the first flow starts. From its start the sender writes
the flow's bytes. The receiver closes the connection when it has read them, and the flow ends when
the sender sees that. The output has a line for each flow, as the simulator writes it.

The hosts get this text. It uses the standard library alone, and draws without a logarithm, so that
every machine draws the same list.
"""

from __future__ import annotations

import bisect
import json
import os
import random
import resource
import select
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

NAMESPACES = "/run/netns"
LEAD_NS = 1_000_000
PART_BYTES = 1 << 20
WAKE_BYTES = 1 << 14
"""A receiver wakes up for as much as this, not for every packet."""
BUFFER = bytearray(PART_BYTES)
ZEROS = memoryview(bytes(PART_BYTES))


class Flow(NamedTuple):
    """A flow: its start in ns after the first possible one, the numbers of its hosts, its size."""

    start_ns: int
    source: int
    destination: int
    packets: int


def draw(
    seed: str, count: int, ns_per_packet: float, hosts: int, points: Sequence[Sequence[float]]
) -> list[Flow]:
    """Return ``count`` flows in the order of their starts, one packet every ``ns_per_packet``.

    Given their number, the arrivals of a Poisson process are independent and uniform; so are the
    pairs of hosts. ``points`` have packets, and the share of flows that are not larger: linear in
    between, rounded up.
    """
    generator = random.Random(seed)
    sizes = [_size(points, generator.random()) for _ in range(count)]
    span_ns = max(1, round(sum(sizes) * ns_per_packet))
    flows = []
    for size in sizes:
        start_ns, source = generator.randrange(span_ns), generator.randrange(hosts)
        destination = generator.randrange(hosts - 1)
        flows.append(Flow(start_ns, source, destination + (destination >= source), size))
    return sorted(flows)


def _size(points: Sequence[Sequence[float]], share: float) -> int:
    upper = bisect.bisect_right([below for _, below in points], share)
    (small, low), (large, high) = points[upper - 1], points[upper]
    size = small + (large - small) * (share - low) / (high - low)
    return int(size) + (int(size) < size)


class Ends:
    """Makes connections between hosts, at levels that both ends have from the first packet on."""

    def __init__(self, hosts: Sequence[str], addresses: Sequence[str], port: int) -> None:
        self.hosts, self.addresses, self.port = hosts, addresses, port
        self.listeners: dict[tuple[int, int], socket.socket] = {}
        self.inside = -1

    def connect(self, flow: Flow, level: int) -> tuple[socket.socket, socket.socket]:
        """Return the sender's and the receiver's end of a new connection."""
        where = flow.destination, level
        if where not in self.listeners:
            self.listeners[where] = self._socket(*where)
            self.listeners[where].bind(("", self.port + level))
            self.listeners[where].listen()
        sender = self._socket(flow.source, level)
        sender.connect((self.addresses[flow.destination], self.port + level))
        receiver, _ = self.listeners[where].accept()
        # Linux gives an accepted socket level 0, whatever its listener's.
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, level)
        return sender, receiver

    def _socket(self, host: int, level: int) -> socket.socket:
        """Return a new socket of a host."""
        if host != self.inside:
            descriptor = os.open(f"{NAMESPACES}/{self.hosts[host]}", os.O_RDONLY)
            os.setns(descriptor, os.CLONE_NEWNET)  # type: ignore[attr-defined]  # Python 3.12
            os.close(descriptor)
            self.inside = host
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, level)
        return made


class Transfers:
    """All flows, with what is left to write and missing to be read, in bytes."""

    def __init__(self, flows: Sequence[Flow], payload_bytes: int) -> None:
        self.flows = flows
        self.left = [flow.packets * payload_bytes for flow in flows]
        self.missing = list(self.left)
        self.finish_ns: dict[int, int] = {}
        self.sockets: dict[int, tuple[socket.socket, socket.socket]] = {}
        self.senders: dict[int, int] = {}
        self.receivers: dict[int, int] = {}
        self.poll = select.epoll()

    def connect(self, ends: Ends, largest: Sequence[int]) -> None:
        """Make all connections, source by source. Flows of as many packets as the first of
        ``largest`` have the highest level, and so on; without them all have level 0."""
        for number in sorted(range(len(self.flows)), key=lambda at: self.flows[at].source):
            flow = self.flows[number]
            level = sum(flow.packets <= packets for packets in largest)
            sender, receiver = self.sockets[number] = ends.connect(flow, level)
            sender.setblocking(False)
            self.receivers[receiver.fileno()] = number
            self._wake_at(receiver, self.missing[number])
            self.poll.register(receiver, select.EPOLLIN)

    def run(self) -> int:
        """Start every flow at its time, to the last one's end; return when the list began, in
        ns."""
        began_ns, following = time.monotonic_ns() + LEAD_NS, 0
        timer = os.timerfd_create(time.CLOCK_MONOTONIC)  # type: ignore[attr-defined]  # 3.13
        self.poll.register(timer, select.EPOLLIN)
        self._set(timer, began_ns + self.flows[0].start_ns)
        while len(self.finish_ns) < len(self.flows):
            for descriptor, event in self.poll.poll():
                if descriptor in self.receivers:
                    self._read(self.receivers[descriptor])
                elif descriptor in self.senders:
                    self._go_on(self.senders[descriptor], event)
                elif descriptor == timer:
                    os.read(timer, 8)
                    following = self._start(following, time.monotonic_ns() - began_ns)
                    if following < len(self.flows):
                        self._set(timer, began_ns + self.flows[following].start_ns)
        return began_ns

    def _set(self, timer: int, at_ns: int) -> None:
        flags = os.TFD_TIMER_ABSTIME  # type: ignore[attr-defined]  # Python 3.13
        os.timerfd_settime_ns(timer, flags=flags, initial=at_ns)  # type: ignore[attr-defined]

    def _start(self, following: int, now_ns: int) -> int:
        """Start all flows that are due; return the number of the first one that is not."""
        while following < len(self.flows) and self.flows[following].start_ns <= now_ns:
            sender = self.sockets[following][0]
            self.senders[sender.fileno()] = following
            self._write(following)
            wanted = select.EPOLLOUT if self.left[following] else 0
            self.poll.register(sender, select.EPOLLIN | wanted)
            following += 1
        return following

    def _go_on(self, number: int, event: int) -> None:
        """Write more of a flow, or end it when its receiver has closed the connection."""
        sender, _ = self.sockets[number]
        if not event & select.EPOLLIN:
            self._write(number)
            if not self.left[number]:
                self.poll.modify(sender, select.EPOLLIN)
            return
        self.finish_ns[number] = time.monotonic_ns()
        if sender.recv(1) or self.left[number]:
            sys.exit(f"flow {number}: its receiver ended it early")
        self.poll.unregister(sender)
        del self.senders[sender.fileno()], self.sockets[number]
        sender.close()

    def _write(self, number: int) -> None:
        """Write as much of a flow as its socket takes."""
        sender, _ = self.sockets[number]
        while self.left[number]:
            part = ZEROS[: self.left[number]]
            written = sender.send(part)
            self.left[number] -= written
            if written < len(part):
                return

    def _read(self, number: int) -> None:
        """Read what has arrived of a flow, and close the connection when that was all."""
        _, receiver = self.sockets[number]
        arrived = receiver.recv_into(BUFFER, 0, socket.MSG_TRUNC)  # discards the bytes
        self.missing[number] -= arrived
        if not arrived:
            sys.exit(f"flow {number}: its sender ended it early")
        if not self.missing[number]:
            self.poll.unregister(receiver)
            del self.receivers[receiver.fileno()]
            receiver.close()
        elif self.missing[number] < WAKE_BYTES:
            self._wake_at(receiver, self.missing[number])

    def _wake_at(self, receiver: socket.socket, size: int) -> None:
        enough = min(size, WAKE_BYTES)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, enough)


def main(task: dict[str, Any]) -> None:
    """Run all flows and print them.

    ``task`` has the arguments of :func:`draw`, ``hosts`` and their ``addresses``, the ``port`` of
    level 0, the ``payload_bytes`` of a packet, the ``largest`` flows of levels, and the ``header``.
    """
    flows, hosts = draw(**task["draw"]), task["hosts"]
    enough = 2 * len(flows) + 8 * len(hosts) + 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (enough, enough))
    transfers = Transfers(flows, task["payload_bytes"])
    transfers.connect(Ends(hosts, task["addresses"], task["port"]), task["largest"])
    began_ns = transfers.run()
    print(",".join(task["header"]))
    for number, flow in enumerate(flows):
        start_ps, finish_ps = (
            1000 * at_ns for at_ns in (began_ns + flow.start_ns, transfers.finish_ns[number])
        )
        ends = hosts[flow.source], hosts[flow.destination]
        print(*ends, flow.packets, start_ps, finish_ps, sep=",")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
