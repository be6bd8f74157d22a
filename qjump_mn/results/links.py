"""Compute each link's load, waits and frames from readings of its qdiscs' counters.

A link's qdiscs are those of the interface that sends into it. The model wire counts by level,
preamble and gap included. tbf and htb count all levels together, and packets only, so Ethernet's
overhead is added here; their greatest backlog is not known. Where a scheme replaces the levels by a
queue of its own, the wire knows neither the backlog nor the levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from qjump_mn import theory
from qjump_mn.errors import LostError
from qjump_mn.links import commands, registry
from qjump_mn.links.base import EDT, HANDLE, HOOKS, Count, Qdisc, Wait, root_of
from qjump_mn.model import filenames
from qjump_mn.model.topology import SWITCHES, Network
from qjump_mn.programs.text import transposed

NAME = "links"
SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("destination", pa.string()),
        ("level", pa.int8()),
        ("bytes", pa.int64()),
        ("share", pa.float64()),
        ("drops", pa.int64()),
        ("marks", pa.int64()),
        ("most_bytes", pa.int64()),
    ]
)
"""One row for each directed link and level; ``level`` is null if all count together. ``share`` is
the fraction of the time between the readings for which the link was busy, ``drops`` are packets,
the limiter's among them, ``marks`` those that were marked (ECN) and sent. ``most_bytes`` is the
most that ever waited, since the link was set up; null where that is not counted: the qdisc that a
limited host waits in has no such counter."""


def table(
    network: Network,
    trial: Path,
    read_ns: Mapping[str, int],
    began: str = "began",
    ended: str = "ended",
) -> pa.Table:
    """Return the loads between two readings in the folder of a ``trial``, in the columns of SCHEMA.

    ``read_ns`` is when each file was read. Raises :class:`LostError` that names a missing or
    damaged file.
    """
    switches, shapes, devices = set(network.switches), network.by_device(), network.interfaces()
    rows = []
    for (source, destination), levels in carried(network, trial, began, ended).items():
        node, device = SWITCHES if source in switches else source, devices[source, destination]
        first, last = (filenames.counters(when, node) for when in (began, ended))
        try:
            seconds = (read_ns[last] - read_ns[first]) / 1e9
            for level, count in levels.items():
                share = count.bytes * 8 / shapes[device].rate_bps / seconds
                counted = count.bytes, share, count.drops, count.marks, count.most_bytes
                rows.append((source, destination, level, *counted))
        except (KeyError, ZeroDivisionError):
            raise LostError(f"{last} does not tell what {device} has sent") from None
    return pa.table(transposed(rows, dict.fromkeys(SCHEMA.names, "")), schema=SCHEMA)


def carried(
    network: Network, trial: Path, began: str, ended: str
) -> dict[tuple[str, str], dict[int | None, Count]]:
    """Return what each directed link carried between two readings, by level.

    The key is None if all levels count together. Raises LostError like :func:`table`.
    """
    switches, model = set(network.switches), registry.of(network.model)
    readings: dict[str, tuple[list[Qdisc], list[Qdisc]]] = {}
    found = {}
    for (source, destination), device in network.interfaces().items():
        node = SWITCHES if source in switches else source
        names = [filenames.counters(when, node) for when in (began, ended)]
        if node not in readings:
            readings[node] = _reading(trial, began, node), _reading(trial, ended, node)
        try:
            first, last = (model.counts(_of(device, reading)) for reading in readings[node])
            found[source, destination] = {
                level: count.since(first[level]) for level, count in last.items()
            }
        except (KeyError, ValueError):
            raise LostError(f"{names[1]} does not tell what {device} has sent") from None
    return found


def waits(
    network: Network, trial: Path, ended: str = "ended"
) -> dict[tuple[str, str], dict[int, Wait]]:
    """Return how long frames waited at each switch port, by (switch, neighbour) and level.

    Waits count from the port's set-up to the reading ``ended``. Raises LostError like
    :func:`table`.
    """
    model, name = registry.of(network.model), filenames.counters(ended, SWITCHES)
    reading, switches, found = _reading(trial, ended, SWITCHES), set(network.switches), {}
    for link, device in network.interfaces().items():
        if link[0] not in switches:
            continue
        if not (qdiscs := _of(device, reading)):
            raise LostError(f"{name} does not mention {device}")
        try:
            found[link] = model.waits(qdiscs)
        except KeyError:
            raise LostError(f"{name} does not tell how long frames waited at {device}") from None
    return found


class Handed(NamedTuple):
    """Frames at one end of a link since its set-up.

    ``sent`` were handed over; ``all`` includes those dropped and still waiting. ``mean_bytes`` is
    the mean size of a sent frame on the link, 0 without any. ``lost`` of the sent ones had not
    arrived when the other end was read, because of the link's loss and reordering.
    """

    sent: int
    all: int
    mean_bytes: float
    lost: int = 0


def handed_over(network: Network, trial: Path, when: str) -> dict[tuple[str, str], Handed]:
    """Return the frames of each directed link in one reading. Raises LostError like
    :func:`table`."""
    found, missing = {}, lost(network, trial, when)
    for link, qdiscs in ends(network, trial, when):
        root = root_of(qdiscs) or {}
        try:
            sent = root["packets"]
            # The root counts what waits below it, and what a limiter dropped.
            mean_bytes = root["bytes"] / sent + theory.TAG_TO_GAP_BYTES if sent else 0.0
            every = sent + root["drops"] + root["qlen"]
            found[link] = Handed(sent, every, mean_bytes, missing.get(link, 0))
        except KeyError:
            raise LostError(
                f"the reading {when!r} does not tell what {'>'.join(link)} has sent"
            ) from None
    return found


def lost(network: Network, trial: Path, when: str) -> dict[tuple[str, str], int]:
    """Return the frames that each impaired link carried, and its end had not passed on.

    Raises LostError like :func:`table`.
    """
    switches, devices, found = set(network.switches), network.interfaces(), {}
    for source, destination in devices if network.impaired else ():
        device = devices[destination, source]
        impairment = network.by_device()[device].impairment
        if impairment is None or not impairment.at_receiver:
            continue
        node = SWITCHES if destination in switches else destination
        root = root_of(_of(commands.ifb(device), _reading(trial, when, node)))
        if root is None:
            raise LostError(f"the reading {when!r} does not tell what {device} has lost")
        found[source, destination] = int(root["drops"] + root["qlen"])
    return found


def every_wait(network: Network, trial: Path, when: str) -> dict[tuple[str, str], dict[int, Wait]]:
    """Return how long frames waited at each end of each link, by (from, to) and level.

    Waits count from the set-up; empty where they are not counted. Raises LostError like
    :func:`table`.
    """
    model = registry.of(network.model)
    try:
        return {
            link: {} if _replaced(qdiscs) else model.waits(qdiscs)
            for link, qdiscs in ends(network, trial, when)
        }
    except KeyError:
        raise LostError(f"the reading {when!r} does not tell how long frames waited") from None


def _replaced(qdiscs: list[Qdisc]) -> bool:
    """Whether a scheme's queue replaces the levels, so that the wire does not know the waits."""
    return any(not qdisc.get("root") and qdisc["kind"] != "qjump" for qdisc in qdiscs)


def ends(network: Network, trial: Path, when: str) -> Iterator[tuple[tuple[str, str], list[Qdisc]]]:
    """Yield the qdiscs of each end of each link in one reading. Raises LostError if it is
    missing."""
    switches, readings = set(network.switches), dict[str, list[Qdisc]]()
    for link, device in network.interfaces().items():
        node = SWITCHES if link[0] in switches else link[0]
        if node not in readings:
            readings[node] = _reading(trial, when, node)
        yield link, _of(device, readings[node])


def _reading(trial: Path, when: str, node: str) -> list[Qdisc]:
    """Return a node's qdiscs, and an entry of kind EDT for a program that gives departure times."""
    name, times = filenames.counters(when, node), filenames.departure_times(when, node)
    try:
        qdiscs = [
            qdisc
            for qdisc in msgspec.json.decode((trial / name).read_bytes(), type=list[Qdisc])
            if "dev" in qdisc
        ]
        if not (trial / times).exists():
            return qdiscs
        name = times
        shown = msgspec.json.decode((trial / times).read_bytes(), type=dict[str, Any])
        return [*qdiscs, _departure_times(shown["levels"], qdiscs, f"{node}-eth0")]
    except (OSError, KeyError, TypeError, msgspec.DecodeError) as error:
        raise LostError(f"{name} cannot be read: {error}") from None


def _departure_times(
    levels: list[dict[str, int]], qdiscs: list[Qdisc], device: str
) -> dict[str, Any]:
    """Return what qjump-edt counts, with what each level's qdisc below it drops and holds.

    ``drops`` are the program's own, which no qdisc sees; those of a level include its qdisc's.
    """
    below = {qdisc.get("parent"): qdisc for qdisc in qdiscs if qdisc["dev"] == device}
    parts = []
    for level in levels:
        qdisc = below.get(f"{HANDLE}{8 - level['level']}", {})
        parts.append(
            {
                "level": level["level"],
                "drops": level["drops"] + qdisc.get("drops", 0),
                "backlog": qdisc.get("backlog", 0),
            }
        )
    drops = sum(level["drops"] for level in levels)
    return {"kind": EDT, "dev": device, "drops": drops, "levels": parts}


def _of(device: str, reading: list[Qdisc]) -> list[Qdisc]:
    return [qdisc for qdisc in reading if qdisc["dev"] == device and qdisc["kind"] not in HOOKS]
