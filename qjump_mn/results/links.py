"""The load of every link between two readings of the qdiscs' counters: ``data/links.parquet``.

A link's qdiscs are those of the interface that sends into it. Model wire counts by level, preamble and gap
included. tbf and htb count all levels together, the packets only: what Ethernet adds to each is added here,
and how much ever waited is not known. Nor does a wire know it, nor what became of each level, where a scheme
has put a queue of its own in the place of the levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pyarrow as pa

from qjump_mn.errors import LostError
from qjump_mn.links import registry
from qjump_mn.links.base import Qdisc, Wait
from qjump_mn.model.topology import SWITCHES, Network
from qjump_mn.programs.text import transposed
from qjump_mn.steps.readback import counters_name

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
"""A row for each directed link and level; ``level`` is null where all count together. ``share`` is the
fraction of the time between the readings for which the link was busy, ``drops`` are packets, the limiter's
among them, ``marks`` those that were marked (ECN) and sent. ``most_bytes`` is the most that ever waited,
since the link was set up; null where that is not counted: the qdisc that a limited host waits in has no such
counter."""


def table(
    network: Network, trial: Path, read_ns: Mapping[str, int], began: str = "began", ended: str = "ended"
) -> pa.Table:
    """The loads between the readings ``began`` and ``ended`` in the folder of a ``trial``; ``read_ns`` is
    when each file was read.

    Raises :class:`LostError` naming the file that is missing or damaged.
    """
    switches, shapes, model = set(network.switches), network.by_device(), registry.of(network.model)
    readings: dict[str, tuple[list[Qdisc], list[Qdisc]]] = {}
    rows = []
    for (source, destination), device in network.interfaces().items():
        node = SWITCHES if source in switches else source
        names = [counters_name(when, node) for when in (began, ended)]
        if node not in readings:
            readings[node] = (_reading(trial, names[0]), _reading(trial, names[1]))
        try:
            seconds = (read_ns[names[1]] - read_ns[names[0]]) / 1e9
            first, last = (model.counts(_of(device, reading)) for reading in readings[node])
            for level, count in last.items():
                carried = count.bytes - first[level].bytes
                share = carried * 8 / shapes[device].rate_bps / seconds
                lost, marked = count.drops - first[level].drops, count.marks - first[level].marks
                rows.append((source, destination, level, carried, share, lost, marked, count.most_bytes))
        except (KeyError, ValueError, ZeroDivisionError):
            raise LostError(f"{names[1]} does not tell what {device} has sent") from None
    return pa.table(transposed(rows, dict.fromkeys(SCHEMA.names, "")), schema=SCHEMA)


def waits(network: Network, trial: Path, ended: str = "ended") -> dict[tuple[str, str], dict[int, Wait]]:
    """How long frames waited at each switch port, by (switch, neighbour) and level, from when it was set up
    to the reading ``ended``; :class:`LostError` as :func:`table`."""
    model, name = registry.of(network.model), counters_name(ended, SWITCHES)
    reading, switches, found = _reading(trial, name), set(network.switches), {}
    for link, device in network.interfaces().items():
        if link[0] not in switches:
            continue
        if not (qdiscs := _of(device, reading)):
            raise LostError(f"{name} does not tell of {device}")
        try:
            found[link] = model.waits(qdiscs)
        except KeyError:
            raise LostError(f"{name} does not tell how long frames waited at {device}") from None
    return found


def _reading(trial: Path, name: str) -> list[Qdisc]:
    try:
        return [
            qdisc
            for qdisc in msgspec.json.decode((trial / name).read_bytes(), type=list[Qdisc])
            if "dev" in qdisc
        ]
    except (OSError, msgspec.DecodeError) as error:
        raise LostError(f"{name} cannot be read: {error}") from None


def _of(device: str, reading: list[Qdisc]) -> list[Qdisc]:
    return [qdisc for qdisc in reading if qdisc["dev"] == device]
