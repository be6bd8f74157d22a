"""QJump's equations and the arithmetic of Ethernet, as pure functions.

Equation numbers are those of the NSDI'15 paper as its authors repeat them in ;login: (April 2015). Times are in ns, rates in bit/s,
lengths in bytes; results are exact integers, rounded up where a bound must hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NS_PER_S = 1_000_000_000

PREAMBLE_BYTES = 8
INTERFRAME_GAP_BYTES = 12
ETHERNET_HEADER_BYTES = 14
VLAN_TAG_BYTES = 4
FCS_BYTES = 4
MINIMUM_FRAME_BYTES = 64
IP_HEADER_BYTES = 20
ICMP_HEADER_BYTES = 8
TCP_HEADER_BYTES = 32
"""With the timestamp option, which Linux sends by default."""


def _ceil_div(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def worst_case_delay_ns(
    hosts: int, packet_bytes: int, rate_bps: int, processing_ns: int = 0
) -> int:
    """Eq. 1: n·P/R + ε, the longest a packet may take when each of n hosts has sent one packet of P bytes."""
    return _ceil_div(hosts * packet_bytes * 8 * NS_PER_S, rate_bps) + processing_ns


def network_epoch_ns(
    hosts: int,
    packet_bytes: int,
    rate_bps: int,
    processing_ns: int = 0,
    factor: float = 1,
) -> int:
    """Eq. 2 and 4: (2n/f)·P/R + ε; the factor 2 pays for hosts whose epochs have one length but unknown phases."""
    return (
        _ceil_div(2 * hosts * packet_bytes * 8 * NS_PER_S, int(rate_bps * factor))
        + processing_ns
    )


def host_rate_bps(packet_bytes: int, epoch_ns: int) -> int:
    """Eq. 3: P/epoch, what each host may send at a level of factor 1."""
    return packet_bytes * 8 * NS_PER_S // epoch_ns


def frame_bytes(ip_bytes: int) -> int:
    """Length of the tagged frame, with frame check sequence, that carries an IP packet of ``ip_bytes``."""
    return max(
        MINIMUM_FRAME_BYTES,
        ETHERNET_HEADER_BYTES + VLAN_TAG_BYTES + ip_bytes + FCS_BYTES,
    )


def delivery_ns(frame: int, rate_bps: int) -> int:
    """From the first bit of the preamble to the last bit of a frame of ``frame`` bytes."""
    return (PREAMBLE_BYTES + frame) * 8 * NS_PER_S // rate_bps


def occupancy_ns(frame: int, rate_bps: int) -> int:
    """How long a frame keeps a link busy: preamble, frame and inter-frame gap."""
    return (PREAMBLE_BYTES + frame + INTERFRAME_GAP_BYTES) * 8 * NS_PER_S // rate_bps


def ping_rtt_ns(
    payload_bytes: int, links: int, rate_bps: int, delay_ns: int = 0
) -> int:
    """Store-and-forward round trip of an otherwise idle network: ``links`` links there and back, no processing time."""
    frame = frame_bytes(IP_HEADER_BYTES + ICMP_HEADER_BYTES + payload_bytes)
    return 2 * links * (delivery_ns(frame, rate_bps) + delay_ns)


def tcp_goodput_bps(mtu_bytes: int, rate_bps: int) -> float:
    """Payload rate of full-size TCP segments that fill a link."""
    payload = mtu_bytes - IP_HEADER_BYTES - TCP_HEADER_BYTES
    wire = PREAMBLE_BYTES + frame_bytes(mtu_bytes) + INTERFRAME_GAP_BYTES
    return rate_bps * payload / wire


def limiter_departures_ns(
    arrivals_ns: Iterable[int],
    epoch_ns: int,
    packets_per_epoch: int,
    limit_packets: int | None,
) -> list[int | None]:
    """When the rolling-epoch limiter lets each of a train of equal packets go; None for a packet that it drops.

    ``limit_packets`` is how many may wait (delay mode); ``None`` means drop mode, in which a packet beyond the budget is lost at once.
    An epoch begins with the first packet sent after the last one ended, as in sch_qjump's rolling mode: a budget may be spent again
    one epoch after the last packet of the previous budget.
    """
    departures: list[int | None] = []
    sent: list[int] = []
    waiting: list[int] = []
    for arrival in arrivals_ns:
        free_at = _next_departure(sent, epoch_ns, packets_per_epoch)
        earliest = max(arrival, free_at)
        if limit_packets is None:
            if earliest > arrival:
                departures.append(None)
                continue
        else:
            waiting = [departure for departure in waiting if departure > arrival]
            if earliest > arrival and len(waiting) >= limit_packets:
                departures.append(None)
                continue
            waiting.append(earliest)
        sent.append(earliest)
        departures.append(earliest)
    return departures


def _next_departure(sent: Sequence[int], epoch_ns: int, packets_per_epoch: int) -> int:
    if len(sent) < packets_per_epoch:
        return 0
    return sent[-packets_per_epoch] + epoch_ns
