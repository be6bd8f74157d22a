"""Schemes: queues, transports and limiters. Those of QJump's Figure 9 have names; make others from
them with `dataclasses.replace`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from qjump_sim import _native
from qjump_sim.law import Custom
from qjump_sim.network import Topology
from qjump_sim.queues import Pause, Pfc, Queue, SharedBuffer
from qjump_sim.units import Size


@dataclass(frozen=True)
class Reno:
    """Reno (RFC 5681); ignores marks.

    >>> scheme = replace(Scheme.named("tcp", FIG9), transport=Transport.linux(Reno()))
    """


@dataclass(frozen=True)
class Ecn:
    """Reno with ECN: a mark halves the window (RFC 3168).

    >>> scheme = replace(Scheme.named("tcp", FIG9), transport=Transport.linux(Ecn()))
    """


@dataclass(frozen=True)
class Cubic:
    """CUBIC (RFC 9438); ignores marks.

    >>> scheme = replace(Scheme.named("tcp", FIG9), transport=Transport.linux(Cubic()))
    """


@dataclass(frozen=True)
class Dctcp:
    """DCTCP (RFC 8257) with g = 2**-shift; alpha begins at 0, as published.

    >>> scheme = replace(Scheme.named("dctcp", FIG9), transport=Transport.linux(Dctcp(shift=5)))
    """

    shift: int = 4


@dataclass(frozen=True)
class Swift:
    """Swift (Kumar et al., SIGCOMM 2020): a target delay; after its Algorithm 1 and Equation 1.
    Times in ps, shares in thousandths.

    >>> swift = Scheme.named("swift", FIG9)
    >>> scheme = replace(swift, transport=replace(swift.transport, congestion=Swift(base=us(40))))
    """

    base: int = 30_000_000
    """Target delay of a large window: the base target plus the part for hops."""
    scaling: int = 30_000_000
    """The most that flow scaling adds to the target (`fs_range`)."""
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
    """BBR, version 1 (Cardwell et al., 2017): a model of the path, from its rate and least round
    trip.

    >>> scheme = Scheme.named("bbr", FIG9)
    >>> scheme.transport.congestion
    Bbr()
    """


@dataclass(frozen=True)
class Dcqcn:
    """DCQCN (Zhu et al., SIGCOMM 2015): a rate, cut for marks and raised by a timer and a byte
    counter; the paper's values. Times in ps, rates in bit/s.

    >>> dcqcn = Scheme.named("dcqcn", FIG9)
    >>> scheme = replace(dcqcn, transport=replace(dcqcn.transport, congestion=Dcqcn(timer=us(300))))
    """

    report: int = 50_000_000
    """Least time between two congestion notifications of a flow."""
    alpha_timer: int = 55_000_000
    timer: int = 55_000_000
    """Interval of rate increases by the timer."""
    counter: int = 10_000_000
    """Bytes between rate increases by the counter."""
    shift: int = 8
    """g is 2**-shift."""
    increase: int = 40_000_000
    hyper_increase: int = 400_000_000
    least: int = 10_000_000
    """Least rate."""


@dataclass(frozen=True)
class Homa:
    """Homa (Montazeri et al., SIGCOMM 2018): receivers grant. The transport's `initial_window` is
    what a round trip holds: this many packets leave unscheduled, on their flow's level, and as
    many are granted at a time.

    >>> homa = Scheme.named("homa", FIG9)
    >>> scheme = replace(homa, transport=replace(homa.transport, congestion=Homa(scheduled=4)))
    """

    scheduled: int = 6
    """Levels of scheduled packets, the lowest of 8, and messages granted at a time; 1 to 7."""


@dataclass(frozen=True)
class Hpcc:
    """HPCC (Li et al., SIGCOMM 2019): a window after the most loaded port of the path, which ports
    report (INT). Each packet needs an ACK (`delayed_ack` None), each flow one path
    (`routing="per-flow"`), and the transport's `initial_window` is what a base round trip holds.

    >>> hpcc = Scheme.named("hpcc", FIG9)
    >>> scheme = replace(hpcc, transport=replace(hpcc.transport, congestion=replace(hpcc.transport.congestion, utilisation=0.9)))
    """

    base: int = 13_000_000
    """T: the longest round trip without queues, in ps."""
    utilisation: float = 0.95
    """Eta: the share of a port's rate that is used."""
    stages: int = 5
    """`maxStage`: round trips of additive increase between two of multiplicative increase."""
    increase: int = 80
    """`W_AI`: the additive increase in bytes."""


@dataclass(frozen=True)
class PowerTcp:
    """PowerTCP (Addanki, Michel and Schmid, NSDI 2022): a window after the power of the path's
    ports, arrival rate times queue. It needs what `Hpcc` needs.

    >>> scheme = Scheme.named("powertcp", FIG9)
    >>> scheme.transport.congestion.gamma
    0.9
    """

    base: int = 13_000_000
    """Tau: the longest round trip without queues, in ps."""
    gamma: float = 0.9
    """The weight of a new window; the paper's is 0.9."""
    increase: int = 160
    """Beta: the additive increase in bytes, which is what each flow leaves in a queue."""


@dataclass(frozen=True)
class Ndp:
    """NDP (Handley et al., SIGCOMM 2017): receivers pull. The transport's `initial_window` leaves
    at once; then each packet that arrives, whole or trimmed (`Trim`), pulls another.

    >>> scheme = Scheme.named("ndp", FIG9)
    >>> scheme.transport.congestion
    Ndp()
    """


@dataclass(frozen=True)
class Eqds:
    """EQDS (Olteanu et al., NSDI 2022): receivers credit senders in turns. The transport's
    `initial_window` leaves without credit; a packet that a switch trimmed (`Trim`) is credited
    before all turns.

    >>> eqds = Scheme.named("eqds", FIG9)
    >>> scheme = replace(eqds, transport=replace(eqds.transport, congestion=Eqds(ahead=48)))
    """

    ahead: int = 24
    """Packets that a receiver credits beyond those that have come."""


@dataclass(frozen=True)
class Nscc:
    """NSCC, the sender's congestion control of Ultra Ethernet 1.0: marks say whether, and the
    queueing delay by how much, the window changes. The transport's `initial_window` is 1.5 times
    what a base round trip holds. Times in ps.

    >>> nscc = Scheme.named("nscc", FIG9)
    >>> scheme = replace(nscc, transport=replace(nscc.transport, congestion=Nscc(base=us(14), target=us(11))))
    """

    base: int = 12_000_000
    """`config_base_rtt`: the longest round trip without queues."""
    target: int = 12_000_000
    """`target_qdelay`: the queueing delay that it aims at."""


@dataclass(frozen=True)
class Bbr3:
    """BBR, version 3 (draft-ietf-ccwg-bbr): the model of `Bbr`, with limits of what may be under
    way, by losses above 2 % and by marks.

    >>> scheme = Scheme.named("bbr3", FIG9)
    >>> scheme.transport.rack_tlp
    True
    """


Congestion: TypeAlias = Reno | Ecn | Cubic | Dctcp | Swift | Bbr | Dcqcn | Homa | Ndp | Hpcc | PowerTcp | Bbr3 | Eqds | Nscc | Custom

LAWS: dict[str, type[Congestion]] = {name: globals()[law] for name, law in _native.laws()}
"""The laws of congestion control by their names in scheme files, as the simulator has them."""


@dataclass(frozen=True)
class Transport:
    """A reliable transport. Bytes on the wire, windows in packets, times in ps. For today's hosts
    use `Transport.linux(Cubic())`.

    >>> transport = replace(Transport.linux(Cubic()), min_rto=ms(5))
    >>> transport.initial_window
    10
    """

    data_bytes: int
    """Bytes of a data packet."""
    ack_bytes: int
    """Bytes of an ACK, probe, SYN or SYN-ACK."""
    initial_window: int
    """Window of a new connection and after idle time."""
    max_window: int
    """Largest window, at most 32,767."""
    min_rto: int
    """Smallest retransmission timeout."""
    max_rto: int
    """Largest retransmission timeout."""
    fixed_rto: bool
    """The timeout is always `min_rto`, without back-off; also that of a SYN."""
    dupacks: int | None
    """Packets above a hole that indicate loss; None: only timeouts do."""
    probe_after: int | None
    """After this many timeouts in a row a sender only sends probes, until one gets through
    (pFabric)."""
    congestion: Congestion
    """The law of congestion control."""
    rank: Literal["level", "remaining", "deadline"]
    """The rank of its data in priority queues: the flow's level, its unacknowledged packets, or its
    deadline."""
    connections: int
    """Connections of an ordered pair of hosts that stay open between flows, and keep their path
    state."""
    sack: bool = True
    """Selective acknowledgements; without them duplicate ACKs are counted (RFC 6582), and after a
    timeout everything is retransmitted."""
    delayed_ack: int | None = None
    """How long a packet in order waits for a second one, to be acknowledged with it (RFC 5681);
    None: each packet has its own ACK."""
    handshake: int | None = None
    """A new connection starts with a SYN, which is retransmitted after this time, then twice that
    and so on (RFC 6298); None: it starts with data. The handshake is part of the flow's time."""
    initial_rto: int | None = None
    """Timeout before a round trip has been measured: 1 s by RFC 6298, or `min_rto` if that is
    larger; None: `min_rto`, as in the published scripts. A handshake measures one."""
    ect_again: bool = False
    """Retransmissions are ECN-capable, as in ns-2; RFC 3168 (section 6.1.5) forbids it."""
    least_window: int = 1
    """DCTCP's least window after marks, in packets; Linux has 2, because the ACK of a single packet
    is delayed."""
    sack_after_rto: bool = True
    """Selective acknowledgements also count after a timeout, and what they cover is not
    retransmitted; False: everything from the first hole on is, as by ns-2's Sack1."""
    ect_acks: bool = False
    """ACKs and probes of ECN-capable flows are ECN-capable, as in Linux's DCTCP: queues that mark
    do not drop them early. Nobody reacts to their marks."""
    ect_syn: bool = False
    """The same for SYNs and SYN-ACKs."""
    rto_above_rtt: bool = False
    """As in Linux, `min_rto` is the least margin above the smoothed round trip, not the least
    timeout (RFC 6298)."""
    rack_tlp: bool = False
    """RACK-TLP (RFC 8985): losses are found by the time since a packet left, and a lost tail by a
    probe after two round trips. It needs `sack` and `sack_after_rto`."""
    recovery: Literal["tcp", "go-back-n", "selective"] = "tcp"
    """How losses are made good. "go-back-n", as RoCE's cards: the receiver drops what is above a gap
    and tells of it once, and everything from there on is sent again; it needs `sack` False and
    `dupacks` None. "selective", as IRN (Mittal et al., SIGCOMM 2018): only what is missing below a
    packet that has arrived, and after a timeout the first missing packet; it needs `sack`,
    `sack_after_rto` and `dupacks`, 1 in the paper."""
    low_rto: int | None = None
    """The smallest timeout while fewer than 3 packets are under way (IRN's RTO_low; `min_rto` is
    RTO_high); None: `min_rto`. Only with "selective" recovery."""

    @classmethod
    def linux(cls, congestion: Congestion) -> Transport:
        """TCP as in Linux with default settings, and a new connection for each flow: an initial
        window of 10 packets, selective acknowledgements, fast retransmit, ACKs delayed by at
        most 40 ms, timeouts from 200 ms to 120 s, 1 s for a SYN and before the first round trip
        is known."""
        return _native.linux(congestion)

    @classmethod
    def hadoop(cls, congestion: Congestion) -> Transport:
        """The transports of the study of ECN under Hadoop: TCP-ECN with `Ecn()`, DCTCP with
        `Dctcp()`. ACKs have 150 bytes, and timeouts follow RFC 6298, as in its simulator, ns-2;
        everything else is as in `linux`."""
        return replace(cls.linux(congestion), ack_bytes=150, rto_above_rtt=False)


@dataclass(frozen=True)
class PerFlow:
    """The published scripts' token bucket: one a flow, full at its start and refilled every `epoch`
    (ps); the excess is dropped.

    `budgets`: bytes an epoch of each of the 8 levels; None is unlimited.

    >>> limiter = PerFlow(epoch=us(1050), budgets=[9000] * 7 + [None])
    """

    epoch: int
    budgets: Sequence[Size | None]


@dataclass(frozen=True)
class PerHost:
    """QJump as in the paper's text (section 3) and the kernel module: a budget for each host and
    level, renewed every `epoch` (ps). ACKs are not limited.

    `budgets`: bytes an epoch of each of the 8 levels; None is unlimited.

    >>> limiter = PerHost(epoch=us(100), budgets=[Packets(6)] * 7 + [None], mode="drop")
    """

    epoch: int
    budgets: Sequence[Size | None]
    mode: Literal["delay", "drop"] = "delay"
    """The excess waits for the next epoch, or is dropped and counted as `limited`: transports see a
    loss."""
    epochs: Literal["first-packet", "rolling", "aligned"] = "first-packet"
    """An epoch begins when the last has passed and there is something to send; with every packet,
    so that no more than a budget leaves in any period of an epoch's length; or at multiples of
    the epoch, on all hosts at once. With the first and the last, two budgets may leave back to
    back across an edge."""
    limit: int | None = None
    """Most packets of a level that may wait; more are dropped. None: no limit. Nothing waits in
    mode "drop"."""
    uncounted: int = 0
    """Bytes of each packet that are not charged, such as preamble and gap."""


@dataclass(frozen=True)
class Aequitas:
    """Admission to levels (Zhang et al., SIGCOMM 2022): a flow runs on the lowest level, 7, with a
    probability that grows as flows of its level miss their target. Shares in millionths; that of
    flows that should meet the target in thousandths.

    >>> limiter = Aequitas(targets=[us(20), us(5)] + [None] * 6)
    """

    targets: Sequence[int | None]
    """Target of each of the 8 levels: ps for each packet of a flow; None: everything is admitted.
    Level 7 cannot have one."""
    share: int = 999
    """Share of flows that should meet the target."""
    increase: int = 10_000
    """Alpha: once in a target times 1 / (1 - share)."""
    decrease: int = 10_000
    """Beta: for each packet of a flow that misses it."""
    floor: int = 10_000
    """Least probability."""


@dataclass(frozen=True)
class Flowlets:
    """Packets of a flow that follow each other within `gap` take one path; after a longer pause
    the least loaded (Sinha, Kandula and Katabi, HotNets 2004).

    >>> scheme = replace(Scheme.named("tcp", FIG9), routing=Flowlets(gap=us(25)))
    """

    gap: int


@dataclass(frozen=True)
class Scheme:
    """Everything except network and traffic.

    `routing`: every packet takes the next of equal paths in turn, or the least loaded link (adaptive); or all of a flow take one (ECMP), or all of a flowlet. `queue`: at every link of a switch.
    `levels`: largest flow of levels 0 to 6 in packets, increasing; larger ones have level 7.

    >>> scheme = replace(Scheme.named("dctcp", FIG9), queue=DropTail(Packets(100)), routing="per-flow")
    """

    routing: Literal["spray", "per-flow", "adaptive"] | Flowlets
    queue: Queue
    transport: Transport
    limiter: PerFlow | PerHost | Aequitas | None
    levels: Sequence[int]
    host_queue: Queue | None = None
    """Queue of the hosts' own links; None: as at switches."""
    trunk_queue: Queue | None = None
    """Queue of links between switches; None: as at links to hosts."""
    pause: Pause | Pfc | None = None
    """Flow control of all links, or of each of their levels; None: no pauses."""
    shared_buffer: SharedBuffer | None = None
    """Buffers that each switch's ports share; None: queues have limits of their own only."""
    others: Sequence[Transport] = ()
    """At most three other transports, which single flows may use: numbers 1 to 3 (`Flows`)."""

    @classmethod
    def named(cls, name: str, topology: Topology) -> Scheme:
        """A named scheme for a network. Figure 9's: `tcp`, `dctcp`, `pfabric`, `qjump-script` (as
        in the published scripts) or `qjump-paper` (as in the text, with an epoch of 2nP/R). Later
        ones: `swift`, `bbr`, `dcqcn`, `dcqcn-pfc`, `homa`, `aequitas`, `ndp`, `roce`, `irn`,
        `eqds`, `nscc`, `hpcc`, `powertcp`, `bbr3`. Settings are fitted to the base path of this network: windows, targets, thresholds, buffers
        and timeouts (docs/simulator.md).
        Raises ValueError for another name or an invalid network."""
        return _native.scheme(name, topology)

    @classmethod
    def from_json(cls, text: str) -> Scheme:
        """The inverse of `to_json`. Raises ValueError if the text is not a scheme."""
        return _native.scheme_from_json(text)

    def to_json(self) -> str:
        """JSON as `qjump-sim run` reads it: a variant by the name of its class, sizes in bytes,
        times in ps. Raises ValueError for an invalid scheme."""
        return _native.scheme_to_json(self)
