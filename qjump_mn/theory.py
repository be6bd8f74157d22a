"""QJump's equations and the arithmetic of Ethernet, as pure functions.

Equation numbers are those of the NSDI'15 paper as its authors repeat them in ;login: (April 2015). Times are
in ns, rates in bit/s, lengths in bytes; results are exact integers, rounded up where a bound must hold.
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
"""With the timestamp option, which Linux sends by default."""

TCP_LONGEST_HEADER_BYTES = 60
"""With all options that fit: the timestamp and three blocks of selective acknowledgement (RFC 2018)."""

PING_HEADERS_BYTES = IP_HEADER_BYTES + ICMP_HEADER_BYTES
UDP_HEADERS_BYTES = IP_HEADER_BYTES + UDP_HEADER_BYTES
TCP_HEADERS_BYTES = IP_HEADER_BYTES + TCP_HEADER_BYTES
"""What an IP packet has beside the payload."""
ACK_BYTES = IP_HEADER_BYTES + TCP_LONGEST_HEADER_BYTES
"""The longest IP packet that only acknowledges."""
AROUND_FRAME_BYTES = PREAMBLE_BYTES + INTERFRAME_GAP_BYTES
"""What a frame keeps a link busy with beside itself."""
TAG_TO_GAP_BYTES = VLAN_TAG_BYTES + FCS_BYTES + AROUND_FRAME_BYTES
"""What the kernel does not count of a tagged frame on a link."""
LEAST_WIRE_BYTES = AROUND_FRAME_BYTES + MINIMUM_FRAME_BYTES
"""What the smallest frame keeps a link for."""

LEVELS = range(8)
"""802.1Q priorities, 7 the most urgent."""
PRIOMAP = (*LEVELS, *[0] * 8)
"""The level of each socket priority from 0 to 15, where nobody says another."""

PING_UNANSWERED_NS = 10_000_000
"""How long iputils' ping waits before the next request while a reply is due."""

PING_SHORTEST_NS = 2_000_000
"""The shortest interval of iputils' ping for a user; what is simulated may be shorter, and waits for no
reply."""


def _ceil_div(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def worst_case_delay_ns(hosts: int, packet_bytes: int, rate_bps: int, processing_ns: int = 0) -> int:
    """Eq. 1: n·P/R + ε, the longest a packet may take when each of n hosts has sent one packet of P bytes."""
    return _ceil_div(hosts * packet_bytes * 8 * NS_PER_S, rate_bps) + processing_ns


def network_epoch_ns(
    hosts: int, packet_bytes: int, rate_bps: int, processing_ns: int = 0, factor: float = 1
) -> int:
    """Eq. 2 and 4: (2n/f)·P/R + ε; the factor 2 pays for hosts whose epochs have one length but unknown
    phases."""
    return _ceil_div(2 * hosts * packet_bytes * 8 * NS_PER_S, int(rate_bps * factor)) + processing_ns


def host_rate_bps(packet_bytes: int, epoch_ns: int) -> int:
    """Eq. 3: P/epoch, what each host may send at a level of factor 1."""
    return packet_bytes * 8 * NS_PER_S // epoch_ns


def frame_bytes(ip_bytes: int) -> int:
    """Length of the tagged frame, with frame check sequence, that carries an IP packet of ``ip_bytes``."""
    return max(MINIMUM_FRAME_BYTES, ETHERNET_HEADER_BYTES + VLAN_TAG_BYTES + ip_bytes + FCS_BYTES)


def wire_bytes(ip_bytes: int) -> int:
    """What the tagged frame of an IP packet of ``ip_bytes`` keeps a link for, in bytes: with preamble and
    inter-frame gap."""
    return AROUND_FRAME_BYTES + frame_bytes(ip_bytes)


def delivery_ns(frame: int, rate_bps: int) -> int:
    """From the first bit of the preamble to the last bit of a frame of ``frame`` bytes."""
    return (PREAMBLE_BYTES + frame) * 8 * NS_PER_S // rate_bps


def occupancy_ns(frame: int, rate_bps: int) -> int:
    """How long a frame keeps a link busy: preamble, frame and inter-frame gap."""
    return (AROUND_FRAME_BYTES + frame) * 8 * NS_PER_S // rate_bps


Links = Sequence[tuple[int, int]]
"""Rate (bit/s) and propagation delay (ns) of each link on a way."""


def one_way_ns(frame: int, links: Links) -> int:
    """A frame's way over ``links`` of an otherwise idle network that stores and forwards, no processing
    time."""
    return sum(delivery_ns(frame, rate_bps) + delay_ns for rate_bps, delay_ns in links)


def ping_rtt_ns(payload_bytes: int, links: Links) -> int:
    """An echo's way over ``links``, and its reply's back."""
    return 2 * one_way_ns(frame_bytes(PING_HEADERS_BYTES + payload_bytes), links)


def tcp_goodput_bps(mtu_bytes: int, rate_bps: int) -> float:
    """Payload rate of full-size TCP segments that fill a link."""
    payload = mtu_bytes - TCP_HEADERS_BYTES
    return rate_bps * payload / wire_bytes(mtu_bytes)


def full_queue_delay_ns(packets: int, epoch_ns: int, packets_per_epoch: int = 1) -> int:
    """How long a packet waits that takes the last of ``packets`` places before a limiter of
    ``packets_per_epoch``."""
    return packets * epoch_ns // packets_per_epoch


def ping_loss(interval_ns: int, epoch_ns: int) -> float:
    """Share of echoes that a limiter of one per epoch drops (drop mode), when ping is told of none of its
    losses.

    ping sends ``interval_ns`` after a request that was answered, but 10 ms after one that was not (iputils'
    MININTERVAL, for intervals below 10 ms), and each is lost until an epoch has passed since the one that was
    answered.
    """
    lost = _ceil_div(max(0, epoch_ns - interval_ns), PING_UNANSWERED_NS)
    return lost / (lost + 1)


def fan_in_bound_ns(hosts: int, streams: int, frame: int, full: int, links: Links) -> int:
    """The longest that a frame of an urgent level takes from ``hosts`` senders with ``streams`` each to one
    receiver, Eq. 1 made exact.

    Holds while every stream sends one frame of ``frame`` bytes in an epoch no shorter than the result, at any
    phase, and everything else is of lower levels, in frames of up to ``full`` bytes, 0 if there is nothing
    else. At its own host a frame waits for the other streams' and for one frame in transmission: that jitter
    lets as much more arrive at the receiver's port, where all streams meet (n·P/R, of which the last is the
    frame itself) and one frame may be in transmission too. Ports in between, if there are any, carry no more
    than that: each adds a frame in transmission. Where ``links``
    differ the frames wait for each other at the slowest.
    """
    slowest = min(rate_bps for rate_bps, _ in links)
    own, first = occupancy_ns(frame, slowest), links[0][0]
    others = [occupancy_ns(full, rate_bps) if full else 0 for rate_bps, _ in links]
    jitter = (streams - 1) * occupancy_ns(frame, first) + others[0]
    return (hosts * streams - 1) * own + 2 * jitter + sum(others[1:]) + one_way_ns(frame, links)


def transfer_ps(links: Links, data_bytes: int, ack_bytes: int) -> tuple[int, int]:
    """What a transfer takes in an empty network until the sender has the last acknowledgement: with one
    packet, and for each one more, in ps.

    ``links`` are those of the way there, and back; bytes are on the wire, switches store and forward.
    """
    both = data_bytes + ack_bytes
    first = sum(
        _ceil_div(both * 8 * PS_PER_S, rate_bps) + 2 * delay_ns * PS_PER_NS for rate_bps, delay_ns in links
    )
    return first, max(_ceil_div(data_bytes * 8 * PS_PER_S, rate_bps) for rate_bps, _ in links)
