"""Queues: which packet a link sends next, and which packets are dropped or marked; and pauses,
which keep queues from dropping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from qjump_sim import _native
from qjump_sim.network import Cable
from qjump_sim.units import Bytes, Limit, Size


@dataclass(frozen=True)
class DropTail:
    """FIFO; packets that do not fit are dropped. `DropTail(9000)` has a limit in bytes, including
    those of the packet being sent that are still to go. `DropTail(Packets(6))` or
    `DropTail(packets=6)` has one in packets, including the one being sent, and `DropTail(us(7))`
    one in time. Without a limit the queue grows as needed.

    >>> queue = DropTail(Packets(150))
    """

    bytes: Limit | None = None
    packets: int | None = None


@dataclass(frozen=True)
class Marking:
    """FIFO of `limit` bytes that marks ECN-capable data which finds more than `threshold` bytes,
    except the first packet since the queue was shorter: ns-2's RED without averaging, with which
    DCTCP was published. A threshold above the limit is refused.

    >>> queue = Marking(limit=225_000, threshold=Packets(65))
    """

    limit: Size
    threshold: Size


Protection = Literal["default", "ece-bit", "ack+syn", "nodrop"]
"""Which packets that are not ECN-capable are queued where active queue management would drop them:
none; those with the ECE bit (ACKs that echo a mark, SYNs and SYN-ACKs of ECN-capable flows); all
SYNs, SYN-ACKs, ACKs and probes; all (Linux's `nodrop`). ECN-capable packets are marked instead."""


@dataclass(frozen=True)
class Threshold:
    """FIFO that marks every ECN-capable packet which finds `threshold` or more, as hardware and
    Linux do. A threshold above the limit is refused.

    >>> queue = Threshold(limit=us(300), threshold=us(50))
    """

    limit: Limit | None
    threshold: Limit


@dataclass(frozen=True)
class Profile:
    """RED's thresholds: the probability rises from 0 at `min` to `max_p` (rounded to millionths) at
    `max`. Both in bytes, (mean) packets or time.

    >>> queue = Red(Packets(200), us(50), us(150), not_ect=Profile(us(20), us(60), max_p=0.2))
    """

    min: Limit
    max: Limit
    max_p: float


@dataclass(frozen=True)
class Red:
    """Random early detection (Floyd and Jacobson, 1993) on the average queue, which includes the
    packet being sent, in front of a FIFO of `limit`.

    The defaults are ns-2.35's, whose mean packet has 500 bytes; `Red.linux` has those of `tc qdisc add ... red ... ecn`.

    >>> queue = Red.linux(limit=Packets(200), min=us(50), max=us(150))
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
    """Each arriving packet moves the average by 2**-weight of the difference; 0: the current queue.
    At most 16."""
    in_packets: bool = False
    """Count every packet as a mean one; otherwise count bytes."""
    mean_packet: int = 500
    """Bytes of a mean packet."""
    reading: Literal["ns-2", "linux", "each"] = "ns-2"
    """Spacing: ns-2's `RED` with `wait_`, 1/p to 2/p packets from one action to the next, and by
    size if bytes are counted; Linux's, 1 to 1/p; or each packet independently, as switches mark
    for DCQCN."""
    mark_p: float | None = 0.1
    """At this probability or above, ECN-capable packets are dropped too; None: never. 1.0 is
    Linux's `harddrop`."""
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
    """Controlled delay (RFC 8289): drops from the head, or marks, while packets wait `target` ps or
    longer throughout an `interval` (ps); after the n-th drop again after interval / sqrt(n).
    `limit`: without the packet being sent.

    >>> queue = CoDel(limit=Packets(1000), target=us(50), interval=ms(1))
    """

    limit: Limit | None
    target: int
    interval: int
    protection: Protection = "default"


@dataclass(frozen=True)
class Priority:
    """Strict priority in eight levels, with ACKs above; evicts the newest packet of the least
    urgent level. `limit` in bytes, without the packet being sent.

    >>> queue = Priority(limit=Packets(150))
    """

    limit: Size


@dataclass(frozen=True)
class PFabric:
    """pFabric's: least remaining first, flows in order, most remaining dropped. `limit` in bytes,
    without the packet being sent.

    >>> queue = PFabric(limit=Packets(24))
    """

    limit: Size


@dataclass(frozen=True)
class RoundRobin:
    """Deficit round robin (Shreedhar and Varghese, SIGCOMM'95): waiting flows take turns of
    `quantum` bytes; if a packet does not fit, the longest flow drops its newest. A source of
    datagrams is a flow. `limit` in bytes, without the packet being sent.

    >>> queue = RoundRobin(limit=Packets(150))
    """

    limit: Size
    quantum: Size = 1_500


@dataclass(frozen=True)
class Wfq:
    """Weighted fair queueing (Parekh and Gallager's PGPS) among eight levels, 0 first; ACKs are in
    level 0. `limit`: bytes of each level, without the packet being sent; what does not fit is
    dropped.

    >>> queue = Wfq(limit=Packets(150), weights=[8, 4, 2, 1, 1, 1, 1, 1])
    """

    limit: Size
    weights: Sequence[int]
    """Weights of the 8 levels, 1 to 2**20 each: a waiting level's share of the link is its weight
    over the sum of the waiting levels' weights."""


@dataclass(frozen=True)
class LevelRed:
    """Eight levels, 0 first; ACKs are in level 0. Each marks by its own waiting bytes, without the
    packet being sent, as DCQCN needs of switches: ECN-capable packets with a probability from 0
    at `min` to `max_p` (rounded to millionths) at `max`, and always above. Nothing is dropped
    early. `limit`: bytes of each level; what does not fit is dropped.

    >>> queue = LevelRed(limit=10**6, min=5_000, max=50_000, max_p=0.01)
    """

    limit: Size
    min: Size
    max: Size
    max_p: float
    weights: Sequence[int] | None = None
    """Weights of the 8 levels, as in `Wfq`; None: strict priority."""


@dataclass(frozen=True)
class TimeAware:
    """Eight levels with gates that open by the clock (802.1Qbv): the most urgent level is served
    whose gate stays open for the packet's duration. ACKs are in level 0. `limit`: bytes of each
    level; a packet that does not fit, or is longer than its gate ever stays open, is dropped.

    >>> queue = TimeAware(limit=150_000, entries=[(us(20), [0]), (us(80), range(1, 8))])
    """

    limit: Size
    entries: Sequence[tuple[int, Sequence[int]]]
    """Duration of each entry (ps), and the levels with open gates; the list repeats after its last
    entry. At most 16 entries; each level at least once."""
    base: int = 0
    """When a cycle begins, in ps."""


@dataclass(frozen=True)
class Pie:
    """PIE (RFC 8033), with the RFC's constants, for the Internet: ECN-capable packets are marked up
    to a probability of `mark_p`. Times in ps; gains in 1/s, rounded to thousandths.

    >>> queue = Pie(limit=Packets(150), target=us(50), update=us(50), alpha=40, beta=400)
    """

    limit: Limit | None
    target: int = 15_000_000_000
    update: int = 15_000_000_000
    alpha: float = 0.125
    beta: float = 1.25
    burst: int = 150_000_000_000
    """After a time of short delays nothing is dropped for this long."""
    mark_p: float = 0.1
    protection: Protection = "default"


@dataclass(frozen=True)
class DualPi2:
    """DualPI2 (RFC 9332), with Linux's constants, for the Internet: ECN-capable data of `Dctcp` has
    a queue of its own with little delay; the other queue is held at `target`. Times in ps; gains
    in 1/s, rounded to thousandths. `limit`: bytes of both.

    >>> queue = DualPi2(Packets(150), target=us(50), update=us(50), alpha=40, beta=400, least=us(10), range=us(5))
    """

    limit: Size
    target: int = 15_000_000_000
    update: int = 16_000_000_000
    alpha: float = 0.16
    beta: float = 3.2
    coupling: int = 2
    """L4S packets are marked with this times the base probability; classic ones are dropped with
    its square."""
    least: int = 800_000_000
    """A wait of the L4S queue that is marked with probability 0; one longer by `range` is marked
    with 1."""
    range: int = 400_000_000
    classic_share: int = 10
    """Least share of the link for the classic queue, in per cent."""


@dataclass(frozen=True)
class Trim:
    """A FIFO that trims what does not fit, and forwards the headers before all data, as NDP's
    switches do (Handley et al., SIGCOMM 2017).

    >>> scheme = replace(Scheme.named("ndp", FIG9), queue=Trim(limit=Packets(12)))
    """

    limit: Size = 12_000
    """Of data."""
    headers: Size = 72_000
    """Of headers and control packets."""
    header: int | Bytes = 64
    """Bytes of a trimmed packet."""


Queue = DropTail | Marking | Threshold | Red | CoDel | Priority | PFabric | RoundRobin | Wfq | LevelRed | TimeAware | Pie | DualPi2 | Trim
"""A link's queue."""

QUEUES: dict[str, type[Any]] = {name: globals()[kind] for name, kind in _native.queues()}
"""The queues by their names in scheme files, as the simulator has them."""


@dataclass(frozen=True)
class Pause:
    """802.3x flow control: a switch that holds `xoff` bytes received by a port asks the other end
    of the cable to stop after the frame being sent, and to resume once it holds at most `xon`;
    beyond `buffer` bytes of a port, packets are dropped.

    >>> pause = Pause(xoff=9_000, xon=3_000, buffer=9_000 + Pause.headroom(FIG9.edge, 1_500))
    """

    xoff: Size
    xon: Size
    buffer: Size

    @staticmethod
    def headroom(cable: Cable, packet: int | Bytes) -> int:
        """The most bytes above `xoff` that a switch comes to hold of a port, with packets of at
        most this size: 3 packets, 64 bytes of a pause frame, and what is sent while the cable is
        crossed twice. With a `buffer` of `xoff` + headroom, and queues without limit, nothing is
        lost."""
        return _native.headroom(cable, packet)


@dataclass(frozen=True)
class SharedBuffer:
    """A buffer of each switch that its ports share, with dynamic thresholds (Choudhury and Hahne,
    1998): a port takes a packet while it holds less than `alpha` times what is free.

    `n` ports that are overloaded for long hold alpha * bytes / (1 + n * alpha) each, alpha as a number.

    >>> scheme = replace(Scheme.named("tcp", FIG9), queue=DropTail(None), shared_buffer=SharedBuffer(1_000_000, alpha=500))
    """

    bytes: Size
    alpha: int = 1_000
    """In thousandths."""
    per_level: bool = False
    """The threshold is that of each level of a port."""


@dataclass(frozen=True)
class Pfc:
    """Priority flow control (802.1Qbb): like `Pause`, but for each of the eight levels, with
    `xoff`, `xon` and `buffer` of one level of a port; so is `Pause.headroom`. It needs a queue
    that serves by level: `Priority`, `Wfq`, `LevelRed` or `TimeAware`.

    >>> pause = Pfc(xoff=9_000, xon=3_000, buffer=9_000 + Pause.headroom(FIG9.edge, 1_500))
    """

    xoff: Size
    xon: Size
    buffer: Size
