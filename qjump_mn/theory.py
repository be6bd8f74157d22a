"""QJump's equations and the arithmetic of Ethernet, as pure functions.

Equation numbers are those of the NSDI'15 paper, as its authors repeat them in ;login: (April
2015). Times are in ns, rates in bit/s, lengths in bytes. Results are exact integers, rounded up
where a bound must hold.
"""

from __future__ import annotations

from collections.abc import Sequence

NS_PER_S = 1_000_000_000
PS_PER_S = 1_000_000_000_000
PS_PER_NS = 1_000

PREAMBLE_BYTES = 8
INTERFRAME_GAP_BYTES = 12
ETHERNET_HEADER_BYTES = 14
VLAN_TAG_BYTES = 4
FCS_BYTES = 4
MINIMUM_FRAME_BYTES = 64
IP_HEADER_BYTES = 20
ICMP_HEADER_BYTES = 8
UDP_HEADER_BYTES = 8
TCP_HEADER_BYTES = 32
"""A TCP header with the timestamp option, which Linux sends by default."""

TCP_LONGEST_HEADER_BYTES = 60
"""A TCP header full of options: a timestamp and three SACK blocks (RFC 2018)."""

PING_HEADERS_BYTES = IP_HEADER_BYTES + ICMP_HEADER_BYTES
UDP_HEADERS_BYTES = IP_HEADER_BYTES + UDP_HEADER_BYTES
TCP_HEADERS_BYTES = IP_HEADER_BYTES + TCP_HEADER_BYTES
"""Headers of an IP packet: everything but the payload of its transport protocol."""
ACK_BYTES = IP_HEADER_BYTES + TCP_LONGEST_HEADER_BYTES
"""The longest IP packet that carries nothing but an acknowledgement."""
AROUND_FRAME_BYTES = PREAMBLE_BYTES + INTERFRAME_GAP_BYTES
"""Bytes on the wire around each frame."""
TAG_TO_GAP_BYTES = VLAN_TAG_BYTES + FCS_BYTES + AROUND_FRAME_BYTES
"""Bytes on the wire of a tagged frame that the kernel's counters leave out."""
LEAST_WIRE_BYTES = AROUND_FRAME_BYTES + MINIMUM_FRAME_BYTES
"""Bytes on the wire of the smallest frame."""

LEVELS = range(8)
"""802.1Q priorities; 7 is the most urgent."""
PRIOMAP = (*LEVELS, *[0] * 8)
"""The default level of each socket priority from 0 to 15."""

PING_UNANSWERED_NS = 10_000_000
"""How long iputils' ping waits before its next request while a reply is outstanding."""

PING_SHORTEST_NS = 2_000_000
"""The shortest interval that iputils' ping allows an ordinary user.

A simulated ping may be faster, and does not wait for replies.
"""


def _ceil_div(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def worst_case_delay_ns(
    hosts: int, packet_bytes: int, rate_bps: int, processing_ns: int = 0
) -> int:
    """Eq. 1: n·P/R + ε, a packet's longest delay when each of n hosts sends one of P bytes."""
    return _ceil_div(hosts * packet_bytes * 8 * NS_PER_S, rate_bps) + processing_ns


def network_epoch_ns(
    hosts: int, packet_bytes: int, rate_bps: int, processing_ns: int = 0, factor: float = 1
) -> int:
    """Eq. 2 and 4: (2n/f)·P/R + ε, the network epoch at throughput factor f.

    The factor 2 covers hosts whose epochs have the same length but unknown phases.
    """
    return (
        _ceil_div(2 * hosts * packet_bytes * 8 * NS_PER_S, int(rate_bps * factor)) + processing_ns
    )


def host_rate_bps(packet_bytes: int, epoch_ns: int) -> int:
    """Eq. 3: P/epoch, the rate that each host may send at, at a level of factor 1."""
    return packet_bytes * 8 * NS_PER_S // epoch_ns


def frame_bytes(ip_bytes: int) -> int:
    """Return the length of the tagged frame, FCS included, of an IP packet of ``ip_bytes``."""
    return max(MINIMUM_FRAME_BYTES, ETHERNET_HEADER_BYTES + VLAN_TAG_BYTES + ip_bytes + FCS_BYTES)


def wire_bytes(ip_bytes: int) -> int:
    """Return the bytes on the wire of an IP packet's tagged frame, with preamble and gap."""
    return AROUND_FRAME_BYTES + frame_bytes(ip_bytes)


def delivery_ns(frame: int, rate_bps: int) -> int:
    """Return the time from the first bit of the preamble to the last bit of a frame."""
    return (PREAMBLE_BYTES + frame) * 8 * NS_PER_S // rate_bps


def occupancy_ns(frame: int, rate_bps: int) -> int:
    """Return how long a frame occupies a link: preamble, frame and inter-frame gap."""
    return (AROUND_FRAME_BYTES + frame) * 8 * NS_PER_S // rate_bps


Links = Sequence[tuple[int, int]]
"""Rate (bit/s) and propagation delay (ns) of each link on a path."""


def one_way_ns(frame: int, links: Links) -> int:
    """Return a frame's one-way delay over ``links``, in an idle store-and-forward network.

    Processing time is not included.
    """
    return sum(delivery_ns(frame, rate_bps) + delay_ns for rate_bps, delay_ns in links)


def ping_rtt_ns(payload_bytes: int, links: Links) -> int:
    """Return the round-trip time of an echo over ``links`` and its reply over the same links."""
    return 2 * one_way_ns(frame_bytes(PING_HEADERS_BYTES + payload_bytes), links)


def tcp_goodput_bps(mtu_bytes: int, rate_bps: int) -> float:
    """Return the payload rate of full-size TCP segments that saturate a link."""
    payload = mtu_bytes - TCP_HEADERS_BYTES
    return rate_bps * payload / wire_bytes(mtu_bytes)


def full_queue_delay_ns(packets: int, epoch_ns: int, packets_per_epoch: int = 1) -> int:
    """Return how long the last packet waits in a full queue of ``packets`` before a limiter.

    The limiter lets ``packets_per_epoch`` pass in each epoch.
    """
    return packets * epoch_ns // packets_per_epoch


def ping_loss(interval_ns: int, epoch_ns: int) -> float:
    """Return the share of echoes that a limiter of one per epoch drops (mode ``drop``).

    ping does not learn of its losses. It sends ``interval_ns`` after a request that was answered,
    but 10 ms after one that was not (iputils' MININTERVAL, for intervals below 10 ms). Each is
    lost until an epoch has passed since the one that was answered.
    """
    lost = _ceil_div(max(0, epoch_ns - interval_ns), PING_UNANSWERED_NS)
    return lost / (lost + 1)


def fan_in_bound_ns(hosts: int, streams: int, frame: int, full: int, links: Links) -> int:
    """Return the longest delay of an urgent frame under fan-in: Eq. 1 made exact.

    ``hosts`` senders, with ``streams`` each, send to one receiver. The bound holds while every
    stream sends one frame of ``frame`` bytes in an epoch no shorter than the result, at any
    phase, and all other traffic has lower levels and frames of up to ``full`` bytes (0 if there
    is none).

    At its own host a frame waits for the frames of the other streams and for one frame in
    transmission. That jitter lets as much more arrive at the receiver's port, where all streams
    meet (n·P/R, of which the last is the frame itself) and one more frame may be in transmission.
    Ports in between carry no more than that, and each adds one frame in transmission. If the
    rates of ``links`` differ, frames queue at the slowest. Each part is rounded up: at 400 Gb/s a
    frame of 1542 B takes 30.84 ns, and a link hands a frame over at its time rounded up.
    """
    slowest_bps, first_bps = min(rate_bps for rate_bps, _ in links), links[0][0]
    own, other = AROUND_FRAME_BYTES + frame, AROUND_FRAME_BYTES + full if full else 0
    jitter = _sent_ns((streams - 1) * own + other, first_bps)
    queueing = _sent_ns((hosts * streams - 1) * own, slowest_bps)
    blocking = sum(_sent_ns(other, rate_bps) for rate_bps, _ in links[1:])
    way = sum(_sent_ns(PREAMBLE_BYTES + frame, rate_bps) + delay_ns for rate_bps, delay_ns in links)
    return queueing + 2 * jitter + blocking + way


def _sent_ns(size: int, rate_bps: int) -> int:
    return _ceil_div(size * 8 * NS_PER_S, rate_bps)


def transfer_ps(links: Links, data_bytes: int, ack_bytes: int) -> tuple[int, int]:
    """Return a transfer's time in an idle network: of its first packet, and of each further one.

    Times are in ps, until the sender has the last acknowledgement. ``links`` are those of the
    path, in both directions. Lengths are bytes on the wire. Switches store and forward.
    """
    round_trip_bytes = data_bytes + ack_bytes
    first = sum(
        _ceil_div(round_trip_bytes * 8 * PS_PER_S, rate_bps) + 2 * delay_ns * PS_PER_NS
        for rate_bps, delay_ns in links
    )
    return first, max(_ceil_div(data_bytes * 8 * PS_PER_S, rate_bps) for rate_bps, _ in links)
