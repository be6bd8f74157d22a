#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Tests for the qjump qdisc: packets between two namespaces joined by a veth pair.
The sender has qjump as its root qdisc; the receiver time-stamps what arrives.
"""

import socket
import struct
import time

from lib.py import ksft_run, ksft_exit, ksft_eq, ksft_ge, ksft_lt, ksft_true
from lib.py import KsftSkipEx, NetNS, NetNSEnter, CmdExitFailure, defer, ip, tc

EPOCH_NS = 20_000_000
LATE_NS = 1_000_000     # most by which a frame may leave after its dequeue
PAYLOAD = 958           # bytes, which makes frames of 1000
FRAME = PAYLOAD + 42
SO_TIMESTAMPNS = 35
UDP_SEGMENT = 103
PORT = 9


def _link():
    """ Make two namespaces, v0 <-> v1, and a receiving socket. """
    names = []
    for addr in ("192.0.2.1", "192.0.2.2"):
        netns = NetNS()
        defer(netns.__exit__, None, None, None)
        names.append((str(netns), addr))
    (here, _), (there, addr) = names
    ip(f"link add v0 netns {here} type veth peer name v1 netns {there}")
    for i, (name, own) in enumerate(names):
        ip(f"addr add {own}/24 dev v{i}", ns=name)
        ip(f"link set v{i} addrgenmode none up", ns=name)
    mac = ip("link show dev v1", ns=there, json=True)[0]["address"]
    ip(f"neigh replace {addr} lladdr {mac} dev v0 nud permanent", ns=here)
    with NetNSEnter(there):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    defer(receiver.close)
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    receiver.bind((addr, PORT))
    receiver.settimeout(0.5)
    return here, receiver, (addr, PORT)


def _qjump(netns, options):
    try:
        tc(f"qdisc replace dev v0 root handle 1: qjump {options}", ns=netns)
    except CmdExitFailure as error:
        if "nknown" in error.cmd.stderr:
            raise KsftSkipEx("tc or the kernel does not know qjump") from error
        raise


def _sender(netns, level, to):
    with NetNSEnter(netns):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    defer(sender.close)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, level)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    sender.connect(to)
    return sender


def _send(sender, level, count):
    for _ in range(count):
        sender.send(bytes([level]) * PAYLOAD)


def _received(receiver, expected):
    """ Return (ns, level) of each frame, in order of arrival. """
    frames = []
    while len(frames) < expected:
        try:
            data, cmsgs, _, _ = receiver.recvmsg(PAYLOAD, 128)
        except TimeoutError:
            break
        sec, nsec = struct.unpack("qq", cmsgs[0][2][:16])
        frames.append((sec * 10**9 + nsec, data[0]))
    return frames


def _most_in_window(stamps, length):
    """ Return the most frames that arrived in any window of length ns. """
    most = first = 0
    for i, stamp in enumerate(stamps):
        while stamps[first] <= stamp - length:
            first += 1
        most = max(most, i - first + 1)
    return most


def _stats(netns, level):
    (qdisc,) = tc("-s qdisc show dev v0 root", ns=netns, json=True)
    return next(one for one in qdisc["levels"] if one["level"] == level)


def bound_in_any_epoch() -> None:
    """ No more than a budget leaves in any window of T, and no frame is lost. """
    netns, receiver, to = _link()
    _qjump(netns, f"epoch {EPOCH_NS}ns level 4 {4 * FRAME}")
    sender = _sender(netns, 4, to)
    for _ in range(4):
        _send(sender, 4, 6)
        time.sleep(0.015)
    stamps = [stamp for stamp, _ in _received(receiver, 24)]
    ksft_eq(len(stamps), 24)
    ksft_eq(_most_in_window(stamps, EPOCH_NS - LATE_NS), 4)
    ksft_ge(stamps[-1] - stamps[0], 5 * EPOCH_NS - LATE_NS)
    stats = _stats(netns, 4)
    ksft_eq((stats["packets"], stats["bytes"], stats["drops"]), (24, 24 * FRAME, 0))
    ksft_ge(stats["throttled"], 5)


def urgent_goes_first() -> None:
    """ Waiting frames leave in order of urgency. """
    netns, receiver, to = _link()
    _qjump(netns, "epoch 1s " + " ".join(f"level {p} {FRAME}" for p in (1, 3, 7)))
    senders = {level: _sender(netns, level, to) for level in (1, 3, 7)}
    for level, sender in senders.items():
        _send(sender, level, 1)     # the budget
    for level, sender in senders.items():
        _send(sender, level, 2)
    ksft_eq([level for _, level in _received(receiver, 3)], [1, 3, 7])
    tc("qdisc change dev v0 root qjump level 1 unlimited level 3 unlimited level 7 unlimited",
       ns=netns)
    ksft_eq([level for _, level in _received(receiver, 6)], [7, 7, 3, 3, 1, 1])


def unlimited_passes_what_waits() -> None:
    """ An unlimited level is not held back by one that is out of budget. """
    netns, receiver, to = _link()
    _qjump(netns, f"epoch 1s level 7 {FRAME}")
    _send(_sender(netns, 7, to), 7, 3)
    start = time.monotonic()
    _send(_sender(netns, 0, to), 0, 5)
    frames = _received(receiver, 6)
    ksft_lt(time.monotonic() - start, 0.5)
    ksft_eq(sorted(level for _, level in frames), [0, 0, 0, 0, 0, 7])
    ksft_eq(_stats(netns, 7)["qlen"], 2)


def limit_drops_what_comes() -> None:
    """ Packets beyond the limit are dropped. """
    netns, receiver, to = _link()
    _qjump(netns, f"epoch 1s level 4 {2 * FRAME} limit 2")
    _send(_sender(netns, 4, to), 4, 5)
    ksft_eq(len(_received(receiver, 5)), 2)
    stats = _stats(netns, 4)
    ksft_eq((stats["packets"], stats["drops"], stats["qlen"]), (2, 1, 2))


def gso_is_split() -> None:
    """ Segments of a GSO packet leave within the budget and are counted singly. """
    netns, receiver, to = _link()
    _qjump(netns, f"epoch 1s level 4 {2 * FRAME}")
    sender = _sender(netns, 4, to)
    sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, PAYLOAD)
    sender.send(bytes([4]) * 5 * PAYLOAD)
    ksft_eq(len(_received(receiver, 5)), 2)
    stats = _stats(netns, 4)
    ksft_eq((stats["packets"], stats["drops"], stats["qlen"]), (2, 0, 3))


def oversize_is_counted() -> None:
    """ A frame larger than the budget is dropped and counted as oversize. """
    netns, receiver, to = _link()
    _qjump(netns, f"epoch 1s level 4 {FRAME - 1}")
    _send(_sender(netns, 4, to), 4, 1)
    ksft_eq(len(_received(receiver, 1)), 0)
    stats = _stats(netns, 4)
    ksft_eq((stats["packets"], stats["drops"], stats["oversize"]), (0, 1, 1))


def change_gives_no_fresh_budget() -> None:
    """ Frames sent stay charged when parameters change. """
    netns, receiver, to = _link()
    _qjump(netns, f"epoch 1s level 4 {2 * FRAME}")
    sender = _sender(netns, 4, to)
    _send(sender, 4, 2)
    ksft_eq(len(_received(receiver, 2)), 2)
    tc(f"qdisc change dev v0 root qjump epoch 2s level 4 {3 * FRAME}", ns=netns)
    _send(sender, 4, 2)
    ksft_eq(len(_received(receiver, 2)), 1)
    ksft_true(_stats(netns, 4)["backlog"] == FRAME)


def going_down_gives_no_fresh_budget() -> None:
    """ Frames sent stay charged when the device goes down; waiting ones are lost. """
    netns, receiver, to = _link()
    _qjump(netns, f"epoch 2s level 4 {2 * FRAME}")
    sender = _sender(netns, 4, to)
    _send(sender, 4, 3)
    ksft_eq(len(_received(receiver, 2)), 2)
    (entry,) = ip("neigh show dev v0 nud permanent", ns=netns, json=True)
    ip("link set v0 down", ns=netns)
    ip("link set v0 up", ns=netns)
    ip(f"neigh replace {entry['dst']} lladdr {entry['lladdr']} dev v0 nud permanent", ns=netns)
    ksft_eq(_stats(netns, 4)["qlen"], 0)
    _send(sender, 4, 1)
    ksft_eq((len(_received(receiver, 1)), _stats(netns, 4)["qlen"]), (0, 1))


def main() -> None:
    """ Ksft boiler plate main """
    ksft_run([bound_in_any_epoch,
              urgent_goes_first,
              unlimited_passes_what_waits,
              limit_drops_what_comes,
              gso_is_split,
              oversize_is_counted,
              change_gives_no_fresh_budget,
              going_down_gives_no_fresh_budget])
    ksft_exit()


if __name__ == "__main__":
    main()
