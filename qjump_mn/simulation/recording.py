"""Record the frames of a simulated trial, as the guest does, from the simulator's trace of packets.

The trace begins with the trial, and results are of a run without one. So a second run of the same
scenario has the trace; it ends with the recording.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import qjump_sim
from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model import graph
from qjump_mn.model.topology import Network
from qjump_mn.model.watch import MAX_FRAMES
from qjump_mn.programs.simulated_api import full_buffer
from qjump_mn.results import frames
from qjump_mn.results.frames import Frames, Numbers
from qjump_mn.results.packets import Ends
from qjump_mn.simulation.heads import Heads, Packet
from qjump_mn.simulation.scenario import Staged, node_names, numbers
from qjump_mn.simulation.scheme import cable
from qjump_sim.trace import DATA, DATAGRAM

MAX_TRACED = 4_000_000
"""The longest trace before a recording: about 600 MB."""

_SHARE = 8
"""Of the time before a recording, the part that is simulated to estimate its trace."""

_HOPS = 8
"""Full queues through which a packet may have come before the recording."""

_AFTER = 1
"""Full queues that are sent after the recording, so that the waits of most frames are known."""


def check(staged: Staged) -> None:
    """Raise :class:`UsageError` if the trace before the recording would be too long."""
    if staged.trial.watch is None:
        return
    early = _part(staged)[0] // _SHARE
    outcome = qjump_sim.run(dataclasses.replace(staged.scenario, stop=early))
    crossed = outcome.counters["hops"] * _SHARE
    if crossed > MAX_TRACED:
        raise UsageError(
            f"--watch: the simulator's trace begins with the trial, and before this part about "
            f"{crossed / 1e6:.0f} million frames cross links in arm {staged.trial.arm.name}, more "
            f"than {MAX_TRACED / 1e6:.0f} million: choose an earlier part, or a shorter warmup"
        )


def record(staged: Staged, outcome: qjump_sim.Outcome) -> bytes:
    """Return the file of the recorded frames; ``outcome`` is that of the whole trial."""
    first, last = _part(staged)
    drained = _AFTER * full_buffer(staged.trial.network)
    end = min(last + drained, outcome.end)
    # In this time about as many frames cross links as there is room for.
    span = MAX_FRAMES * outcome.end // max(1, outcome.counters["hops"])
    while True:
        stop = min(end, first + span + drained)
        traced = _traced(staged, stop)
        found = _frames(staged, traced, first, last)
        is_full = len(found.device) >= MAX_FRAMES or traced.counters["hops"] > MAX_TRACED
        if stop == end or is_full:
            return frames.encode(found)
        span *= 2


def _part(staged: Staged) -> tuple[int, int]:
    """Return the begin and the end of the recording, in ps."""
    watch = staged.trial.watch
    assert watch is not None
    first_ns = staged.began_ns + watch.start_ns
    return first_ns * qjump_sim.NS, (first_ns + watch.length_ns) * qjump_sim.NS


def _traced(staged: Staged, stop: int) -> qjump_sim.Outcome:
    # The series is there for the names of its ports.
    watch = qjump_sim.Watch(trace="all", every_ps=max(1, stop))
    return qjump_sim.run(dataclasses.replace(staged.scenario, stop=stop), watch=watch)


class _Rows(NamedTuple):
    """Frames in the order of their starts and drops; times in ps.

    What the frame is says the row ``place`` of the trace; ``packet`` is that of its packet's first.
    It came to the port ``link`` at ``arrival``, was sent or dropped at ``start``, and was at the
    other end at ``end``. What still waits has the trace's end for ``start``, and no ``end``: -1.
    """

    place: Numbers
    packet: Numbers
    link: Numbers
    dropped: Numbers
    arrival: Numbers
    start: Numbers
    end: Numbers

    def of(self, chosen: Any) -> _Rows:
        """Return the chosen rows."""
        return _Rows(*(column[chosen] for column in self))


def _frames(staged: Staged, traced: qjump_sim.Outcome, first: int, last: int) -> Frames:
    """Return the frames from ``first`` to ``last``, or until there is no room for more."""
    network, trace = staged.trial.network, traced.trace
    assert trace is not None and traced.series is not None
    names = node_names(network)
    ports = [(names[begin], names[end]) for begin, end in traced.series.ports]
    crossing = _crossing(network, ports, trace)
    start = trace.at - np.where(trace.dropped, 0, crossing)
    place = np.flatnonzero(start >= first - _HOPS * full_buffer(network))
    place = place[np.argsort(start[place], kind="stable")]
    rows = _follow(staged, trace, ports, place, start[place], traced.end)
    if traced.counters["in_flight"]:  # some may have been sent whose arrival is not in the trace
        last = max(first, min(last, traced.end - int(crossing.max(initial=0))))
    rows = rows.of(((rows.end >= first) | (rows.end < 0)) & (rows.arrival < last))
    if len(rows.start) > MAX_FRAMES:
        last = int(rows.start[MAX_FRAMES])
        rows = rows.of(rows.arrival < last)
    return _recorded(staged, trace, ports, rows, first, last)


def _crossing(network: Network, ports: Sequence[Ends], trace: qjump_sim.Trace) -> Numbers:
    """Return the time from a packet's first bit to its arrival, of each row, in ps."""
    by_ends = {frozenset(ends): cable(link) for ends, link in network.wiring()}
    cables = [by_ends[frozenset(port)] for port in ports]
    byte = np.array([round(8 * theory.PS_PER_S / one.rate) for one in cables])
    delay = np.array([one.delay for one in cables])
    crossing: Numbers = delay[trace.link] + trace.bytes * byte[trace.link]
    return crossing


def _follow(
    staged: Staged,
    trace: qjump_sim.Trace,
    ports: Sequence[Ends],
    place: Numbers,
    start: Numbers,
    end: int,
) -> _Rows:
    """Follow packets through the rows ``place``, in the order of ``start``, to the trace's ``end``.

    Queues are taken to keep the order of packets that the trace cannot distinguish. What waits in a
    host is not in the trace, and left out is what still waits at an unknown port of a switch.
    """
    hosts, failing = set(staged.trial.network.hosts), bool(staged.trial.network.failures)
    # A switch may cut data, and a packet of data has its number.
    sizes = np.where(trace.kind == DATA, 0, trace.bytes)
    kinds = (trace.flow, trace.kind, trace.seq, trace.src, trace.dst, sizes)
    keys = zip(*(column[place].tolist() for column in kinds), strict=True)
    columns = (place, start, trace.at[place], trace.link[place], trace.dropped[place])
    waiting: dict[Any, list[tuple[int, int, int]]] = defaultdict(list)
    rows: list[tuple[int, ...]] = []
    for key, row, at, arrived, link, dropped in zip(
        keys, *(column.tolist() for column in columns), strict=True
    ):
        near, far = ports[link]
        came, packet, arrival = waiting[near, key], row, at
        if failing and dropped and not came:  # at the link's end, which has no further one
            came = waiting[far, key]
        if came and dropped and came[-1][0] <= at:  # usually the one that came last
            _, packet, _ = came.pop()
        elif came and came[0][0] <= at:
            arrival, packet, _ = came.pop(0)
        rows.append((row, packet, link, dropped, arrival, at, arrived))
        if not dropped and far not in hosts:
            bisect.insort(waiting[far, key], (arrived, packet, row))  # by another link, maybe later
    ways = _ways(staged.trial.network, ports)
    for (node, key), came in waiting.items():
        if came and (link := ways(node, key[4])) is not None:
            rows += [(row, packet, link, 0, at, end, -1) for at, packet, row in came]
    return _Rows(*np.array(rows, dtype=np.int64).reshape(-1, len(_Rows._fields)).T)


def _ways(network: Network, ports: Sequence[Ends]) -> Callable[[str, int], int | None]:
    """Return a function that returns the link from a switch to a host; None if it may be one of
    several.
    """
    pairs = tuple(ends for ends, _ in network.wiring())
    host_of = {number: host for host, number in numbers(network).items()}
    numbered = {port: number for number, port in enumerate(ports)}
    paths_vary = bool(network.cables and network.failures)

    @functools.cache
    def way(node: str, host: int) -> int | None:
        found = graph.next_nodes(pairs, node, host_of[host])
        varies = len(found) > 1 or (paths_vary and found[0] != host_of[host])
        return None if varies else numbered[node, found[0]]

    return way


def _recorded(
    staged: Staged,
    trace: qjump_sim.Trace,
    ports: Sequence[Ends],
    rows: _Rows,
    first: int,
    last: int,
) -> Frames:
    """Return rows as the guest records them; times are cut to ns."""
    arm, network = staged.trial.arm, staged.trial.network
    devices, dropped = network.interfaces(), rows.dropped == 1
    level = 7 - trace.level[rows.place] if arm.uses_levels else np.zeros(len(rows.place), int)
    arrival, start, end = (
        column // qjump_sim.NS for column in (rows.arrival, rows.start, rows.end)
    )
    arrival = np.where(dropped, start, arrival)
    packets, head = np.unique(rows.packet, return_inverse=True)
    return Frames(
        from_ns=first // qjump_sim.NS,
        to_ns=last // qjump_sim.NS,
        lost=0,
        devices=[devices[port] for port in ports],
        device=rows.link,
        level=level,
        length=np.maximum(1, trace.bytes[rows.place] - theory.AROUND_FRAME_BYTES),
        tag=level << 13 | network.vlan if arm.uses_levels else np.full(len(level), -1),
        arrival=arrival,
        waited=np.where(dropped, -1, start - arrival),
        crossed=np.where(dropped, 0, np.where(rows.end < 0, -1, end - start)),
        head=head,
        heads=_heads(staged, trace, packets),
    )


def _heads(staged: Staged, trace: qjump_sim.Trace, packets: Numbers) -> list[bytes]:
    """Return the first bytes of the packets that begin in these rows."""
    trial, heads = staged.trial, Heads(staged.trial.arm)
    hosts = {number: host for host, number in numbers(trial.network).items()}
    number = np.where(trace.kind == DATAGRAM, _counted(trace, len(hosts)), trace.seq)
    level = 7 - trace.level if trial.arm.uses_levels else np.zeros(len(trace), int)
    columns = (trace.src, trace.dst, trace.flow, trace.kind, level, trace.bytes, number)
    return [
        heads.head(
            Packet(hosts[src], hosts[dst], flow, kind, level, size - theory.AROUND_FRAME_BYTES, no),
            row,
        )
        for row, src, dst, flow, kind, level, size, no in zip(
            packets.tolist(), *(column[packets].tolist() for column in columns), strict=True
        )
    ]


def _counted(trace: qjump_sim.Trace, hosts: int) -> Numbers:
    """Return the number of each datagram of a flow at its first link, from 1; 0 elsewhere."""
    first = np.flatnonzero((trace.kind == DATAGRAM) & (trace.link < hosts))
    flows = np.stack([trace.flow[first], trace.src[first]])
    order = np.lexsort(flows)
    begins = np.any(np.diff(flows[:, order], prepend=-1), axis=0)
    places = np.arange(len(order))
    number = np.zeros(len(trace), int)
    number[first[order]] = 1 + places - np.maximum.accumulate(np.where(begins, places, 0))
    return number
