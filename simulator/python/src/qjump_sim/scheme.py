"""Schemes: what queues, hosts and limiters do. Those of QJump's Figure 9 have names; others are made of them by `dataclasses.replace`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from qjump_sim import _native
from qjump_sim.network import Topology
from qjump_sim.queues import Pause, Pfc, Queue


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
    pause: Pause | Pfc | None = None
    """Flow control of all links, or of each of their levels; None: no pauses."""

    @classmethod
    def named(cls, name: str, topology: Topology) -> Scheme:
        """A scheme of Figure 9 for a network: `tcp`, `dctcp`, `pfabric`, `qjump-script` (as the published scripts have it) or `qjump-paper`
        (as the text has it; its epoch, 2nP/R, depends on the network). Raises ValueError for another name, or a network that cannot be."""
        return _native.scheme(name, topology)
