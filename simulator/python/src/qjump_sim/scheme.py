"""Schemes: what queues, hosts and limiters do. Those of QJump's Figure 9 have names; others are made of them by `dataclasses.replace`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from qjump_sim import _native
from qjump_sim.network import Cable, Topology


@dataclass(frozen=True)
class DropTail:
    """First come, first served; what does not fit is dropped. The limit is in `bytes` (of the packet being sent those still to go count) or in
    `packets` (with the one being sent); with neither, the queue is as long as it becomes."""

    bytes: int | None = None
    packets: int | None = None


@dataclass(frozen=True)
class Marking:
    """Drop tail of `limit` bytes that marks data which finds more than `threshold` bytes, but not the first that does since the queue was
    shorter: what ns-2's RED does without averaging, with which DCTCP was published."""

    limit: int
    threshold: int


@dataclass(frozen=True)
class Packets:
    """So many packets, with the one being sent."""

    count: int


@dataclass(frozen=True)
class Time:
    """As many bytes as the link sends in `ps`: other ones for links of other rates."""

    ps: int


Limit = int | Packets | Time
"""How long a queue may be, or is when something is done about it; a number is of bytes."""

Protection = Literal["default", "ece-bit", "ack+syn", "nodrop"]
"""Which packets that are not ECN-capable active queue management queues where it would drop them: none; those with the ECE bit (ACKs that echo a
mark, SYNs and SYN-ACKs of ECN-capable flows); all SYNs, SYN-ACKs, ACKs and probes; all (Linux's `nodrop`). What is ECN-capable is marked."""


@dataclass(frozen=True)
class Threshold:
    """First come, first served; marks every ECN-capable packet that finds `threshold` or more, as hardware and Linux do."""

    limit: Limit | None
    threshold: Limit


@dataclass(frozen=True)
class Profile:
    """Thresholds of random early detection: the probability goes from 0 at `min` to `max_p` (rounded to millionths) at `max`. Both in bytes, packets
    (mean ones) or time."""

    min: Limit
    max: Limit
    max_p: float


@dataclass(frozen=True)
class Red:
    """Random early detection (Floyd and Jacobson, 1993) on the average queue, which counts the packet being sent, before a drop tail of `limit`.

    The defaults are ns-2.35's, whose mean packet has 500 bytes; `Red.linux` has those of `tc qdisc add ... red ... ecn`.
    """

    limit: Limit | None
    min: Limit
    max: Limit
    max_p: float = 0.1
    not_ect: Profile | None = None
    """Other thresholds for packets that are not ECN-capable, on the same average (WRED with two classes); None: the same."""
    gentle: bool = True
    """Above `max` the probability goes from `max_p` to 1 at twice `max`, instead of at once."""
    weight: int = 9
    """A packet that comes moves the average by 2**-weight of the difference; 0: the queue itself. At most 16."""
    in_packets: bool = False
    """Every packet counts as a mean one; else its bytes."""
    mean_packet: int = 500
    """Bytes of a mean packet."""
    reading: Literal["ns-2", "linux"] = "ns-2"
    """ns-2's `RED` with `wait_`: 1/p to 2/p packets from one action to the next, and by size where bytes are counted; or Linux's: 1 to 1/p."""
    mark_p: float | None = 0.1
    """Where the probability is as large or larger, ECN-capable packets are dropped too; None: never. 1.0 is Linux's `harddrop`."""
    protection: Protection = "default"

    @classmethod
    def linux(
        cls,
        limit: Limit | None,
        min: Limit,
        max: Limit,
        max_p: float = 0.02,
        weight: int = 9,
        mean_packet: int = 1000,
        protection: Protection = "default",
    ) -> Red:
        """Linux's `sch_red` with ECN."""
        how: Literal["linux"] = "linux"
        return cls(limit, min, max, max_p, None, False, weight, False, mean_packet, how, None, protection)


@dataclass(frozen=True)
class CoDel:
    """Controlled delay (RFC 8289): drops from the head, or marks, while packets wait `target` ps or longer throughout an `interval` (ps), after the
    n-th after interval / sqrt(n) again. `limit`: without the packet being sent."""

    limit: Limit | None
    target: int
    interval: int
    protection: Protection = "default"


@dataclass(frozen=True)
class Pause:
    """802.3x flow control: a switch that holds `xoff` bytes of what came in by a port asks the other end of the cable to stop after the frame being
    sent, and to go on when it holds no more than `xon`; what exceeds `buffer` bytes of a port is dropped."""

    xoff: int
    xon: int
    buffer: int

    @staticmethod
    def headroom(cable: Cable, packet: int) -> int:
        """Most bytes above `xoff` that a switch comes to hold of a port, with packets of at most so many bytes: 3 packets, 64 bytes of a pause frame
        and what is sent while the cable is crossed twice. With a `buffer` of `xoff` + headroom, and queues without limit, nothing is lost."""
        return _native.headroom(cable, packet)


@dataclass(frozen=True)
class Priority:
    """Strict priority in eight levels, ACKs before them; pushes out the newest packet of the last level. `limit` in bytes, without the packet
    being sent."""

    limit: int


@dataclass(frozen=True)
class PFabric:
    """pFabric's: least remaining first, a flow in order, most remaining dropped. `limit` in bytes, without the packet being sent."""

    limit: int


@dataclass(frozen=True)
class RoundRobin:
    """Deficit round robin (Shreedhar and Varghese, SIGCOMM'95): flows that wait have turns, of `quantum` bytes each; where packets do not
    fit, the longest flow gives up its newest. A source of datagrams is a flow. `limit` in bytes, without the packet being sent."""

    limit: int
    quantum: int = 1_500


Queue = DropTail | Marking | Threshold | Red | CoDel | Priority | PFabric | RoundRobin
"""A link's queue."""


@dataclass(frozen=True)
class Reno:
    """Marks say nothing: Reno's window (RFC 5681)."""


@dataclass(frozen=True)
class Ecn:
    """A window with marks is halved (RFC 3168)."""


@dataclass(frozen=True)
class Cubic:
    """CUBIC (RFC 9438); marks say nothing."""


@dataclass(frozen=True)
class Dctcp:
    """DCTCP (RFC 8257) with g = 2**-shift; alpha begins at 0, as published."""

    shift: int = 4


Congestion: TypeAlias = Reno | Ecn | Cubic | Dctcp


@dataclass(frozen=True)
class Transport:
    """Reliable transport. Bytes on the wire, windows in packets, times in ps. Hosts of today have `Transport.linux(Cubic())`."""

    data_bytes: int
    """Of a data packet."""
    ack_bytes: int
    """Of an ACK, and of a probe, SYN or SYN-ACK."""
    initial_window: int
    """Of a new connection and after idleness."""
    max_window: int
    """At most 32,767."""
    min_rto: int
    """Smallest retransmission timeout."""
    max_rto: int
    """Largest one."""
    fixed_rto: bool
    """The timeout is always `min_rto` and does not double; that of a SYN does not either."""
    dupacks: int | None
    """Packets above a hole that mean loss; None: only the timeout does."""
    probe_after: int | None
    """After so many timeouts in a row a sender sends probes only, until one comes through (pFabric)."""
    congestion: Congestion
    """What a sender does about marks."""
    rank: Literal["level", "remaining"]
    """By what queues with priorities tell its data apart: the flow's level, or packets not acknowledged yet."""
    connections: int
    """How many connections of an ordered pair of hosts stay open between flows, with what they know of the path."""
    sack: bool = True
    """Selective acknowledgements; without them ACKs that tell of nothing new are counted (RFC 6582), and after a timeout all is sent again."""
    delayed_ack: int | None = None
    """How long a packet in order waits for a second, to be acknowledged with it (RFC 5681); None: each is acknowledged alone."""
    handshake: int | None = None
    """A new connection begins with a SYN, which is sent again after this time, then after twice it and so on (RFC 6298); None: with data.
    The setup is part of the flow's time."""
    initial_rto: int | None = None
    """The timeout before a round-trip time was measured, 1 s by RFC 6298, or `min_rto` if that is larger; None: `min_rto`, as in the published
    scripts. A connection's setup measures one."""
    ect_again: bool = False
    """Data sent again is ECN-capable too, as in ns-2; RFC 3168 (section 6.1.5) has it not be."""
    least_window: int = 1
    """Packets that DCTCP's window has at least after marks; Linux has 2, for the ACK of a single packet is delayed."""
    sack_after_rto: bool = True
    """Selective acknowledgements are heeded after a timeout too, and what they told of is not sent again; False: what was sent before the timeout is
    sent again from the first hole on, as ns-2's Sack1 does."""
    ect_acks: bool = False
    """ACKs and probes of ECN-capable flows are ECN-capable too, as those of Linux's DCTCP: queues that mark do not drop them early. That they were
    marked says nothing to anybody."""
    ect_syn: bool = False
    """The same of SYNs and SYN-ACKs."""

    @classmethod
    def linux(cls, congestion: Congestion) -> Transport:
        """TCP as Linux has it unless it is told otherwise, with a new connection for each flow: a first window of 10 packets, selective
        acknowledgements, fast retransmit, ACKs delayed by 40 ms at most, timeouts from 200 ms to 120 s, 1 s for a SYN and before there is a round-trip
        time."""
        return _native.linux(congestion)

    @classmethod
    def hadoop(cls, congestion: Congestion) -> Transport:
        """The transports of the study of ECN under Hadoop, TCP-ECN with `Ecn()` and DCTCP with `Dctcp()`: ACKs of 150 bytes; what it does not say
        is as in `linux`."""
        return _native.hadoop(congestion)


@dataclass(frozen=True)
class PerFlow:
    """The published scripts' token bucket: one a flow, full at its start and every `epoch` (ps) later; the rest is dropped.

    `budgets`: bytes an epoch of each of the 8 levels; None is unlimited.
    """

    epoch: int
    budgets: Sequence[int | None]


@dataclass(frozen=True)
class PerHost:
    """QJump as the paper's text (section 3) and the kernel module have it: a budget for each host and level, renewed every `epoch` (ps). ACKs are
    not held back.

    `budgets`: bytes an epoch of each of the 8 levels; None is unlimited.
    """

    epoch: int
    budgets: Sequence[int | None]
    mode: Literal["delay", "drop"] = "delay"
    """What exceeds a budget waits for the next epoch, or is dropped and counted as `limited`: transports see a loss."""
    epochs: Literal["first-packet", "rolling", "aligned"] = "first-packet"
    """An epoch begins when the last has passed and there is something to send; with every packet, so that no more than a budget leaves in any epoch's
    time; or at multiples of the epoch, on all hosts at once. With the first and the last two budgets may leave back to back across an edge."""
    limit: int | None = None
    """Packets of a level that may wait; more are dropped. None: as many as there are. Nothing waits in mode "drop"."""


@dataclass(frozen=True)
class Scheme:
    """Everything but network and traffic.

    `routing`: every packet takes the next of equal paths in turn, or all of a flow take one (ECMP). `queue`: at every link of a switch.
    `levels`: largest flow of levels 0 to 6 in packets, increasing; larger ones have level 7.
    """

    routing: Literal["spray", "per-flow"]
    queue: Queue
    transport: Transport
    limiter: PerFlow | PerHost | None
    levels: Sequence[int]
    host_queue: Queue | None = None
    """At the hosts' own links; None: as at switches."""
    trunk_queue: Queue | None = None
    """At links between switches; None: as at those to hosts."""
    pause: Pause | None = None
    """802.3x flow control of all links; None: no pauses."""

    @classmethod
    def named(cls, name: str, topology: Topology) -> Scheme:
        """A scheme of Figure 9 for a network: `tcp`, `dctcp`, `pfabric`, `qjump-script` (as the published scripts have it) or `qjump-paper`
        (as the text has it; its epoch, 2nP/R, depends on the network). Raises ValueError for another name, or a network that cannot be."""
        return _native.scheme(name, topology)
