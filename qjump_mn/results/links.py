"""The load of every link between two readings of the qdiscs' counters: ``data/links.parquet``.

A link's qdiscs are those of the interface that sends into it. Model wire counts by level, preamble and gap included. tbf and htb count all
levels together, the packets only: what Ethernet adds to each is added here, and how much ever waited is not known. Nor does a wire know it,
nor what became of each level, where a scheme has put a queue of its own in the place of the levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from qjump_mn import theory
from qjump_mn.errors import LostError
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
"""A row for each directed link and level; ``level`` is null where all count together. ``share`` is the fraction of the time between the
readings for which the link was busy, ``drops`` are packets, the limiter's among them, ``marks`` those that were marked (ECN) and sent.
``most_bytes`` is the most that ever waited, since the link was set up; null where that is not counted: the qdisc that a limited host waits
in has no such counter."""

TAG_TO_GAP_BYTES = theory.VLAN_TAG_BYTES + theory.FCS_BYTES + theory.PREAMBLE_BYTES + theory.INTERFRAME_GAP_BYTES
"""What each packet takes on a link beyond the length that the kernel counts."""


MARKS = ("marked", "ecn_mark", "ce_mark")
"""What RED and CoDel call the packets that they have marked."""


class _Count(NamedTuple):
    """Since the qdisc was made: bytes on the link, packets dropped and marked, most bytes that waited."""

    bytes: int
    drops: int
    marks: int
    most_bytes: int | None


def table(network: Network, began: Path, ended: Path, read_ns: tuple[Mapping[str, int], Mapping[str, int]]) -> pa.Table:
    """The loads between the readings in the folders ``began`` and ``ended``, with the times at which each of their nodes was read.

    Raises :class:`LostError` naming the file that is missing or damaged.
    """
    switches, shapes = set(network.switches), network.by_device()
    readings: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {}
    rows = []
    for above, below in network.ports():
        for (source, device), (destination, _) in ((below, above), (above, below)):
            node = SWITCHES if source in switches else source
            if node not in readings:
                readings[node] = (_reading(began, node), _reading(ended, node))
            try:
                seconds = (read_ns[1][node] - read_ns[0][node]) / 1e9
                first, last = (_counts(reading, device) for reading in readings[node])
                for level, count in last.items():
                    carried = count.bytes - first[level].bytes
                    share = carried * 8 / shapes[device].rate_bps / seconds
                    lost, marked = count.drops - first[level].drops, count.marks - first[level].marks
                    rows.append((source, destination, level, carried, share, lost, marked, count.most_bytes))
            except (KeyError, ValueError, ZeroDivisionError):
                raise LostError(f"asbuilt/{ended.name}/tc-{node}.json does not tell what {device} has sent") from None
    return pa.table(transposed(rows, dict.fromkeys(SCHEMA.names, "")), schema=SCHEMA)


def _reading(folder: Path, node: str) -> list[dict[str, Any]]:
    path = folder / f"tc-{node}.json"
    try:
        return [qdisc for qdisc in msgspec.json.decode(path.read_bytes(), type=list[dict[str, Any]]) if "dev" in qdisc]
    except (OSError, msgspec.DecodeError) as error:
        raise LostError(f"asbuilt/{folder.name}/{path.name} cannot be read: {error}") from None


def _counts(reading: list[dict[str, Any]], device: str) -> dict[int | None, _Count]:
    """What the qdiscs of ``device`` count, by level."""
    mine = [qdisc for qdisc in reading if qdisc["dev"] == device]
    (root,) = (qdisc for qdisc in mine if qdisc.get("root"))
    if root["kind"] != "wire":
        return {None: _Count(root["bytes"] + TAG_TO_GAP_BYTES * root["packets"], root["drops"], 0, None)}
    limiter = next((qdisc for qdisc in mine if qdisc["kind"] == "qjump"), None)
    if len(mine) > 1 and not limiter:
        marks = sum(qdisc.get(counter, 0) for qdisc in mine for counter in MARKS)
        return {None: _Count(sum(level["bytes"] for level in root["levels"]), root["drops"], marks, None)}
    # A limiter drops before the wire has seen the packet.
    dropped = {level["level"]: level["drops"] for level in limiter["levels"]} if limiter else {}
    return {
        level["level"]: _Count(level["bytes"], level["drops"] + dropped.get(level["level"], 0), 0, None if limiter else level["max_backlog"])
        for level in root["levels"]
    }
