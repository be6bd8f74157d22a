"""What the qdiscs of every port said each time that they were read: counters at a few instants, and nothing
in between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from qjump_mn.links import registry
from qjump_mn.links.base import Count, Qdisc, root_of
from qjump_mn.model import filenames
from qjump_mn.model.topology import SWITCHES, Network
from qjump_mn.results import links

WHENS = ("before", "began", "ended", "after")
"""The readings of a trial, in their order."""


class Reading(NamedTuple):
    """One port, (from, to), at one instant, ``at_ns`` on the clock of the readings: by level, or by None
    where all count together, what it has counted since it was set up and how many bytes wait there now. How
    often it was paused, and for how long, is None where links have no flow control."""

    link: tuple[str, str]
    when: str
    at_ns: int
    counts: Mapping[int | None, Count]
    waiting: Mapping[int | None, int]
    pauses: int | None
    paused_ns: int | None


def of_trial(network: Network, trial: Path, read_ns: Mapping[str, int]) -> Iterator[Reading]:
    """Every port in every reading that is in the folder of a ``trial``; raise :class:`LostError` for one that
    is damaged, KeyError or ValueError for one that does not say what it counts."""
    switches, model = set(network.switches), registry.of(network.model)
    for when in WHENS:
        if filenames.counters(when, SWITCHES) not in read_ns:
            continue
        for link, qdiscs in links.ends(network, trial, when):
            root = root_of(qdiscs) or {}
            counts, pause = model.counts(qdiscs), root.get("pause", {})
            yield Reading(
                link,
                when,
                read_ns[filenames.counters(when, SWITCHES if link[0] in switches else link[0])],
                counts,
                {level: _waiting(qdiscs, level) for level in counts},
                pause.get("received"),
                pause.get("paused_ns"),
            )


def _waiting(qdiscs: list[Qdisc], level: int | None) -> int:
    """The bytes of a level that wait at a port: in its wire and in a limiter; of all levels, as the root has
    them, below which everything waits."""
    if level is None:
        return int((root_of(qdiscs) or {}).get("backlog", 0))
    return sum(
        each.get("backlog", 0)
        for qdisc in qdiscs
        for each in qdisc.get("levels", ())
        if each["level"] == level
    )
