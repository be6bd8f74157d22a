"""Schemes: what queues, hosts and limiters do. Those of QJump's Figure 9 have names; others are made of them by `dataclasses.replace`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from qjump_sim import _native
from qjump_sim.network import Topology
from qjump_sim.queues import Pause, Pfc, Queue
from qjump_sim.units import Size


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


@dataclass(frozen=True)
class Swift:
    """Swift (Kumar et al., SIGCOMM 2020): a target of delay; names as in its Algorithm 1 and Equation 1. Times in ps, shares in thousandths."""

    base: int = 30_000_000
    """Target of a large window: the base target and what the hops add."""
    scaling: int = 30_000_000
    """What a small window adds to the target at most (`fs_range`)."""
    scaling_least: int = 100
    """In thousandths of a packet: smaller windows add no more."""
    scaling_most: int = 100
    """In packets: larger windows add nothing."""
    increase: int = 1_000
    """`ai`, in thousandths of a packet a round trip."""
    decrease: int = 800
    """Beta."""
    most_decrease: int = 500
    """`max_mdf`."""


@dataclass(frozen=True)
class Bbr:
    """BBR, the first version (Cardwell et al., 2017): a model of the path, of its rate and least round trip."""


@dataclass(frozen=True)
class Dcqcn:
    """DCQCN (Zhu et al., SIGCOMM 2015): a rate, cut for marks and raised by a timer and a counter; the paper's values. Times in ps, rates in
    bit/s."""

    report: int = 50_000_000
    """Least time between two reports of a flow's marks."""
    alpha_timer: int = 55_000_000
    timer: int = 55_000_000
    """So often the rate is raised."""
    counter: int = 10_000_000
    """And after so many bytes."""
    shift: int = 8
    """g is 2**-shift."""
    increase: int = 40_000_000
    hyper_increase: int = 400_000_000
    least: int = 10_000_000
    """Least rate."""


@dataclass(frozen=True)
class Homa:
    """Homa (Montazeri et al., SIGCOMM 2018): receivers grant. The transport's `initial_window` is what a round trip holds: so many packets leave
    unasked, on the level of their flow, and so many are granted at a time."""

    scheduled: int = 6
    """Levels of what is granted, the lowest of 8, and so many messages at a time; 1 to 7."""


Congestion: TypeAlias = Reno | Ecn | Cubic | Dctcp | Swift | Bbr | Dcqcn | Homa


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
    rank: Literal["level", "remaining", "deadline"]
    """By what queues with priorities tell its data apart: the flow's level, packets not acknowledged yet, or when it should end."""
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
    rto_above_rtt: bool = False
    """`min_rto` is of what is added to the smoothed round trip, as Linux has it, not of the whole (RFC 6298)."""

    @classmethod
    def linux(cls, congestion: Congestion) -> Transport:
        """TCP as Linux has it unless it is told otherwise, with a new connection for each flow: a first window of 10 packets, selective
        acknowledgements, fast retransmit, ACKs delayed by 40 ms at most, timeouts from 200 ms to 120 s, 1 s for a SYN and before there is a round-trip
        time."""
        return _native.linux(congestion)

    @classmethod
    def hadoop(cls, congestion: Congestion) -> Transport:
        """The transports of the study of ECN under Hadoop: TCP-ECN with `Ecn()`, DCTCP with
        `Dctcp()`. ACKs have 150 bytes, and timeouts follow RFC 6298, as in its simulator, ns-2;
        everything else is as in `linux`."""
        return replace(cls.linux(congestion), ack_bytes=150, rto_above_rtt=False)


@dataclass(frozen=True)
class PerFlow:
    """The published scripts' token bucket: one a flow, full at its start and every `epoch` (ps) later; the rest is dropped.

    `budgets`: bytes an epoch of each of the 8 levels; None is unlimited.
    """

    epoch: int
    budgets: Sequence[Size | None]


@dataclass(frozen=True)
class PerHost:
    """QJump as the paper's text (section 3) and the kernel module have it: a budget for each host and level, renewed every `epoch` (ps). ACKs are
    not held back.

    `budgets`: bytes an epoch of each of the 8 levels; None is unlimited.
    """

    epoch: int
    budgets: Sequence[Size | None]
    mode: Literal["delay", "drop"] = "delay"
    """What exceeds a budget waits for the next epoch, or is dropped and counted as `limited`: transports see a loss."""
    epochs: Literal["first-packet", "rolling", "aligned"] = "first-packet"
    """An epoch begins when the last has passed and there is something to send; with every packet, so that no more than a budget leaves in any epoch's
    time; or at multiples of the epoch, on all hosts at once. With the first and the last two budgets may leave back to back across an edge."""
    limit: int | None = None
    """Packets of a level that may wait; more are dropped. None: as many as there are. Nothing waits in mode "drop"."""
    uncounted: int = 0
    """Bytes of each packet that its budget is not charged, such as preamble and gap."""


@dataclass(frozen=True)
class Aequitas:
    """Admission to levels (Zhang et al., SIGCOMM 2022): a flow runs on the lowest level, 7, with a probability that grows as flows of its level
    miss their target. Shares in millionths, that of flows that shall meet it in thousandths."""

    targets: Sequence[int | None]
    """Of each of the 8 levels: most time in ps for each packet of a flow; None: everything is admitted. Level 7 has none."""
    share: int = 999
    """Of flows that shall meet it."""
    increase: int = 10_000
    """Alpha: once in a target times 1 / (1 - share)."""
    decrease: int = 10_000
    """Beta: for each packet of a flow that misses it."""
    floor: int = 10_000
    """Least probability."""


@dataclass(frozen=True)
class Scheme:
    """Everything but network and traffic.

    `routing`: every packet takes the next of equal paths in turn, or all of a flow take one (ECMP). `queue`: at every link of a switch.
    `levels`: largest flow of levels 0 to 6 in packets, increasing; larger ones have level 7.
    """

    routing: Literal["spray", "per-flow"]
    queue: Queue
    transport: Transport
    limiter: PerFlow | PerHost | Aequitas | None
    levels: Sequence[int]
    host_queue: Queue | None = None
    """At the hosts' own links; None: as at switches."""
    trunk_queue: Queue | None = None
    """At links between switches; None: as at those to hosts."""
    pause: Pause | Pfc | None = None
    """Flow control of all links, or of each of their levels; None: no pauses."""
    others: Sequence[Transport] = ()
    """At most three other transports, which flows may have instead: numbers 1 to 3 (`Flows`)."""

    @classmethod
    def named(cls, name: str, topology: Topology) -> Scheme:
        """A scheme of Figure 9 for a network: `tcp`, `dctcp`, `pfabric`, `qjump-script` (as the published scripts have it) or `qjump-paper`
        (as the text has it; its epoch, 2nP/R, depends on the network); or what came after: `swift`, `bbr`, `dcqcn`, `dcqcn-pfc`,
        `homa`, `aequitas`. Raises ValueError for another name, or a network that cannot be."""
        return _native.scheme(name, topology)

    @classmethod
    def from_json(cls, text: str) -> Scheme:
        """From what `to_json` gives. Raises ValueError for what is no scheme."""
        return _native.scheme_from_json(text)

    def to_json(self) -> str:
        """As `qjump-sim run` reads it: a variant by the name of its class, sizes in bytes, times in ps. Raises ValueError for what cannot be."""
        return _native.scheme_to_json(self)
