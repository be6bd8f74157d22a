"""Queues: which packet a link sends next, and which are dropped or marked; and pauses, which keep queues from dropping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from qjump_sim import _native
from qjump_sim.network import Cable
from qjump_sim.units import Bytes, Limit, Size


@dataclass(frozen=True)
class DropTail:
    """First come, first served; what does not fit is dropped. `DropTail(9000)` has a limit in bytes (of the packet being sent those still to go count),
    `DropTail(Packets(6))`, or `DropTail(packets=6)`, in packets (with the one being sent), `DropTail(us(7))` in time; with none, the queue is as long as
    it becomes."""

    bytes: Limit | None = None
    packets: int | None = None


@dataclass(frozen=True)
class Marking:
    """Drop tail of `limit` bytes that marks ECN-capable data which finds more than `threshold` bytes, but not the first that does since
    the queue was shorter: what ns-2's RED does without averaging, with which DCTCP was published."""

    limit: Size
    threshold: Size


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
    reading: Literal["ns-2", "linux", "each"] = "ns-2"
    """ns-2's `RED` with `wait_`: 1/p to 2/p packets from one action to the next, and by size where bytes are counted; or Linux's: 1 to 1/p; or
    each packet by itself, as switches mark for DCQCN."""
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
class Priority:
    """Strict priority in eight levels, ACKs before them; pushes out the newest packet of the last level. `limit` in bytes, without the packet
    being sent."""

    limit: Size


@dataclass(frozen=True)
class PFabric:
    """pFabric's: least remaining first, a flow in order, most remaining dropped. `limit` in bytes, without the packet being sent."""

    limit: Size


@dataclass(frozen=True)
class RoundRobin:
    """Deficit round robin (Shreedhar and Varghese, SIGCOMM'95): flows that wait have turns, of `quantum` bytes each; where packets do not
    fit, the longest flow gives up its newest. A source of datagrams is a flow. `limit` in bytes, without the packet being sent."""

    limit: Size
    quantum: Size = 1_500


@dataclass(frozen=True)
class Wfq:
    """Weighted fair queueing (Parekh and Gallager's PGPS) among eight levels, 0 the first; ACKs are of the first. `limit`: bytes of each level,
    without the packet being sent; what does not fit is dropped."""

    limit: Size
    weights: Sequence[int]
    """Of the 8 levels, 1 to 2**20 each: shares of the link of those that wait."""


@dataclass(frozen=True)
class LevelRed:
    """Eight levels, 0 the first, of which ACKs are; each marks by the bytes that wait of it, without the packet being sent, as DCQCN asks of switches: what
    is ECN-capable with a probability from 0 at `min` to `max_p` (rounded to millionths) at `max`, and always from there on. Nothing is dropped early.
    `limit`: bytes of each level; what does not fit is dropped."""

    limit: Size
    min: Size
    max: Size
    max_p: float
    weights: Sequence[int] | None = None
    """Of the 8 levels, as `Wfq` has them; None: the most urgent level is served."""


@dataclass(frozen=True)
class TimeAware:
    """Eight levels with gates that open by the clock (802.1Qbv): the most urgent level is served whose gate is open for as long as its packet takes.
    ACKs are of level 0, the first. `limit`: bytes of each level; what does not fit, or is longer than its gate is ever open, is dropped."""

    limit: Size
    entries: Sequence[tuple[int, Sequence[int]]]
    """How long each lasts (ps), and the levels whose gates are open then; the list begins anew after its last entry. At most 16; each level at
    least once."""
    base: int = 0
    """When (ps) a cycle begins."""


@dataclass(frozen=True)
class Pie:
    """PIE (RFC 8033), with the RFC's constants, which are the Internet's: ECN-capable packets are marked up to a probability of `mark_p`. Times in ps,
    gains in 1/s, rounded to thousandths."""

    limit: Limit | None
    target: int = 15_000_000_000
    update: int = 15_000_000_000
    alpha: float = 0.125
    beta: float = 1.25
    burst: int = 150_000_000_000
    """Nothing is dropped for so long after a time of short delays."""
    mark_p: float = 0.1
    protection: Protection = "default"


@dataclass(frozen=True)
class DualPi2:
    """DualPI2 (RFC 9332), with Linux's constants, which are the Internet's: data of `Dctcp` that may be marked is in a queue of its own, with
    little delay; what waits in the other is `target`. Times in ps, gains in 1/s, rounded to thousandths. `limit`: bytes of both."""

    limit: Size
    target: int = 15_000_000_000
    update: int = 16_000_000_000
    alpha: float = 0.16
    beta: float = 3.2
    coupling: int = 2
    """Marks of the first queue have this times the probability of which classic drops are the square."""
    least: int = 800_000_000
    """A wait in the first queue that is marked with probability 0; one that is longer by `range` is with 1."""
    range: int = 400_000_000
    classic_share: int = 10
    """Hundredths of the link that the other queue has at least."""


Queue = DropTail | Marking | Threshold | Red | CoDel | Priority | PFabric | RoundRobin | Wfq | LevelRed | TimeAware | Pie | DualPi2
"""A link's queue."""


@dataclass(frozen=True)
class Pause:
    """802.3x flow control: a switch that holds `xoff` bytes of what came in by a port asks the other end of the cable to stop after the frame being
    sent, and to go on when it holds no more than `xon`; what exceeds `buffer` bytes of a port is dropped."""

    xoff: Size
    xon: Size
    buffer: Size

    @staticmethod
    def headroom(cable: Cable, packet: int | Bytes) -> int:
        """Most bytes above `xoff` that a switch comes to hold of a port, with packets of at most so many bytes: 3 packets, 64 bytes of a pause frame
        and what is sent while the cable is crossed twice. With a `buffer` of `xoff` + headroom, and queues without limit, nothing is lost."""
        return _native.headroom(cable, packet)


@dataclass(frozen=True)
class Pfc:
    """Priority flow control (802.1Qbb): as `Pause`, but for each of the eight levels by itself, with `xoff`, `xon` and `buffer` of one level of a port;
    `Pause.headroom` is that of a level too. Queues are those that serve by level: `Priority`, `Wfq`, `LevelRed` or `TimeAware`."""

    xoff: Size
    xon: Size
    buffer: Size
