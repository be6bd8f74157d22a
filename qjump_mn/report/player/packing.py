"""Pack an arm's frames for the page: rows by port and level, in the order of their arrivals."""

from __future__ import annotations

import bisect
from typing import Any, NamedTuple

import numpy as np

from qjump_mn.model.plan import ArmPlan
from qjump_mn.model.topology import Network
from qjump_mn.report.player.flows import Namer
from qjump_mn.report.player.layout import layout
from qjump_mn.report.timelines.packing import Store
from qjump_mn.results import packets
from qjump_mn.results.frames import Frames, Numbers

_BITS = 30
"""Of a time in the page, whose numbers have 32 bits and a sign."""


class Watched(NamedTuple):
    """The frames of an arm, and the zero of the page's clock on the guest's, in ns."""

    arm: ArmPlan
    network: Network
    frames: Frames
    zero_ns: int


def tick_ns(watched: list[Watched]) -> int:
    """Return the unit of times in the page: a whole number of ns."""
    times = (each for one in watched for each in (one.frames.arrival, one.frames.handover))
    zeros = (one.zero_ns for one in watched for _ in range(2))
    spans = (np.abs(each - zero).max(initial=1) for each, zero in zip(times, zeros, strict=True))
    return 1 + (int(max(spans, default=1)) >> _BITS)


def pack(one: Watched, tick: int, first: str) -> tuple[dict[str, Any], str]:
    """Return what the page says of an arm, and its numbers; flows of workload ``first`` come
    first."""
    frames, store, interfaces = one.frames, Store(), one.network.interfaces()
    packet = packets.follow(frames, one.network.ways())
    placed = layout(one.network)
    ways = [
        (way, index)
        for index, link in enumerate(placed.links)
        for way in ((link.above, link.below), (link.below, link.above))
    ]
    links = one.network.by_device()
    flows, flow, number = _flows(one, packet, first)
    place = {interfaces[way]: number for number, (way, _) in enumerate(ways)}
    port = np.array([place.get(device, -1) for device in frames.devices] or [0])[frames.device]
    content = {
        "name": one.arm.name,
        "label": one.arm.label,
        "until": (frames.to_ns - one.zero_ns) // tick,
        "layout": placed,
        "ports": [
            {"from": source, "to": destination, "link": index, "right": number % 2 == 0,
             "rate": links[interfaces[source, destination]].rate_bps}
            for number, ((source, destination), index) in enumerate(ways)
        ],
        **_rows(one, port, packet, tick, store),
        "flows": flows,
        "flow": _add(store, flow),
        "number": _add(store, number),
    }  # fmt: skip
    return content, store.text()


def _rows(one: Watched, port: Numbers, packet: Numbers, tick: int, store: Store) -> dict[str, Any]:
    """Store the frames that were sent, by port and level, and the drops, by port."""
    frames = one.frames
    sent, dropped = (
        np.flatnonzero(kind & (port >= 0)) for kind in (~frames.dropped, frames.dropped)
    )
    sent = sent[np.lexsort((sent, frames.arrival[sent], frames.level[sent], port[sent]))]
    lane = _without_overtaking(port[sent] * 8 + frames.level[sent], frames.start[sent])
    order = np.argsort(lane, kind="stable")
    sent, lane = sent[order], lane[order]
    dropped = dropped[np.argsort(frames.arrival[dropped], kind="stable")]
    came, start, handover = (
        (times - one.zero_ns) // tick for times in (frames.arrival, frames.start, frames.handover)
    )
    columns = {
        "rows": {
            "came": np.diff(came[sent], prepend=0),
            "waited": (start - came)[sent],
            "crossed": (handover - start)[sent],
            "bytes": frames.length[sent],
            "packet": packet[sent],
        },
        "drops": {
            "came": np.diff(came[dropped], prepend=0),
            "port": port[dropped],
            "level": frames.level[dropped],
            "packet": packet[dropped],
        },
    }
    stored = {
        kind: {name: _add(store, column) for name, column in each.items()}
        for kind, each in columns.items()
    }
    return {"lanes": _lanes(lane, port[sent], frames.level[sent]), **stored}


def _without_overtaking(group: Numbers, start: Numbers) -> Numbers:
    """Return the lane of each row, of as few as possible, such that starts ascend in a lane.

    Rows are in the order of their groups, and in each of their arrivals; so are lanes. Only queues
    that serve some frames of a level first need more than one lane a group.
    """
    lane = np.zeros(len(group), dtype=np.int64)
    first = 0
    for rows in np.split(np.arange(len(group)), np.flatnonzero(np.diff(group)) + 1):
        last: list[int] = []  # the negative last start of each lane, ascending
        for row, at in zip(rows.tolist(), start[rows].tolist(), strict=True):
            place = bisect.bisect_left(last, -at)
            last[place : place + 1] = [-at]
            lane[row] = first + place
        first += len(last)
    return lane


def _lanes(lane: Numbers, port: Numbers, level: Numbers) -> list[list[int]]:
    """Return port, level, first row and number of rows of each lane."""
    starts = np.flatnonzero(np.diff(lane, prepend=-1))
    counts = np.diff(starts, append=len(port))
    rows = zip(port[starts], level[starts], starts, counts, strict=True)
    return [[int(value) for value in row] for row in rows]


def _flows(one: Watched, packet: Numbers, first: str) -> tuple[list[str], Numbers, Numbers]:
    """Return the labels of flows, and each packet's flow and number."""
    namer = Namer(one.arm, first)
    headers = [packets.header(head) for head in one.frames.heads]
    by_head = [namer.flow(header) for header in headers]
    order = sorted(set(by_head), key=namer.rank)
    places = {flow: place for place, flow in enumerate(order)}
    count = int(packet.max(initial=-1)) + 1
    flow, number = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    known = packet >= 0
    heads = one.frames.head[known]
    flow[packet[known]] = np.array([places[each] for each in by_head] or [0])[heads]
    number[packet[known]] = np.array([header.number for header in headers] or [0])[heads]
    return [each.label for each in order], flow, number


def _add(store: Store, numbers: Numbers) -> tuple[int, int]:
    return store.add(numbers.astype(np.uint32).view(np.int32))
