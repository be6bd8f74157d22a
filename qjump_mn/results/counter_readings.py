"""Read the qdisc counters of every port, as sampled at a few instants of a trial."""

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
"""The readings of a trial, in order."""


class Reading(NamedTuple):
    """The counters of one port, named by its ``link`` (from, to), at one instant.

    ``at_ns`` is on the clock of the readings. ``counts`` (since the port was set up) and
    ``waiting`` (bytes now) are by level, or under None if all levels count together. ``pauses`` and
    ``paused_ns`` are None if the links have no flow control.
    """

    link: tuple[str, str]
    when: str
    at_ns: int
    counts: Mapping[int | None, Count]
    waiting: Mapping[int | None, int]
    pauses: int | None
    paused_ns: int | None


def of_trial(network: Network, trial: Path, read_ns: Mapping[str, int]) -> Iterator[Reading]:
    """Yield every port in every reading in the folder of a ``trial``.

    Raises :class:`LostError` if a reading is damaged, and KeyError or ValueError if it lacks a
    counter.
    """
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
    """Return the bytes of a level that wait at a port, in its wire and its limiter.

    For None, return those of all levels: the root's backlog includes everything below it.
    """
    if level is None:
        return int((root_of(qdiscs) or {}).get("backlog", 0))
    return sum(
        each.get("backlog", 0)
        for qdisc in qdiscs
        for each in qdisc.get("levels", ())
        if each["level"] == level
    )
