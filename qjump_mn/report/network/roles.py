"""Describe what each host does in an arm: which workload it sends or receives, and with whom."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from qjump_mn.model import hooks
from qjump_mn.model.plan import ArmPlan
from qjump_mn.model.workload import WorkloadPlan
from qjump_mn.results import formatting

Way = Literal["to", "from", "with", "at"]

ALL = "all hosts"
"""The peers of a workload between all hosts, and of frames that go to all of them."""

MOST_NAMED = 4
"""So many hosts, or ranges of them, are named; of more the number is told."""

_ARROWS: dict[Way, str] = {
    "to": "\N{RIGHTWARDS ARROW}",
    "from": "\N{LEFTWARDS ARROW}",
    "with": "\N{LEFT RIGHT ARROW}",
    "at": "runs here",
}


class Role(NamedTuple):
    """A host's part in a workload: direction and ``peers`` (none if it only runs there).

    ``level`` is in words, "" if the arm uses none; ``measured`` if the figure shows the workload.
    """

    workload: str
    way: Way
    peers: tuple[str, ...]
    level: str
    measured: bool

    @property
    def told(self) -> str:
        """The role in a line: "ping → h10, level 7"."""
        peers = f" {hosts(self.peers)}" if self.peers else ""
        return (
            f"{self.workload} {_ARROWS[self.way]}{peers}{f', {self.level}' if self.level else ''}"
        )


def measured(arm: ArmPlan, shown: str) -> frozenset[str]:
    """Return the workloads that the figure shows: ``shown``, or those that it observes if it sends
    nothing."""
    looks = [
        flow
        for one in arm.workloads
        if one.name == shown and not hooks.sends(one)
        for flow in one.flows
    ]
    return frozenset(
        workload.name
        for workload in arm.workloads
        if hooks.sends(workload)
        and (workload.name == shown or set(looks).intersection(workload.flows))
    )


def roles(arm: ArmPlan, measured: frozenset[str]) -> dict[str, tuple[Role, ...]]:
    """Return the roles of every host of an arm, in the order of its workloads."""
    by_host: dict[str, list[Role]] = {}
    for workload in arm.workloads:
        if hooks.sends(workload):
            for host, way, peers in _parts(arm, workload):
                role = Role(
                    workload.name, way, peers, level(arm, workload), workload.name in measured
                )
                by_host.setdefault(host, []).append(role)
    return {host: tuple(by_host[host]) for host in arm.network.hosts if host in by_host}


def level(arm: ArmPlan, workload: WorkloadPlan) -> str:
    """Return the 802.1Q priorities of a workload's frames in words; "" if it marks none."""
    if not arm.uses_levels or not hooks.sends(workload):
        return ""
    if hooks.has_levels_by_size(workload):
        return "level by size"
    levels = sorted(hooks.levels(workload), reverse=True)
    told = f"level{'s' if len(levels) > 1 else ''} {' and '.join(map(str, levels))}"
    return told.replace(" ", "\N{NO-BREAK SPACE}")  # never on two lines


def hosts(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return hosts in words, with ranges: "h1–h6, h8"; only their number above ``most`` words."""
    pieces = ranges(names)
    return ", ".join(pieces) if len(pieces) <= most else f"{len(names)} hosts"


def ranges(names: Iterable[str]) -> list[str]:
    """Return names in order, with three or more consecutive ones as a range: "h1–h6"."""
    numbered = [(name, re.fullmatch(r"(.*?)([1-9]\d*)", name)) for name in names]

    def run(item: tuple[int, tuple[str, re.Match[str] | None]]) -> tuple[str, int]:
        place, (name, match) = item
        return (match[1], int(match[2]) - place) if match else (name, -1)

    pieces = []
    for _, items in groupby(enumerate(numbered), key=run):
        found = [name for _, (name, _) in items]
        pieces += [f"{found[0]}\N{EN DASH}{found[-1]}"] if len(found) > 2 else found
    return pieces


def flows(workload: WorkloadPlan, most: int = MOST_NAMED) -> str:
    """Return the flows of a workload in words: each of them up to ``most``, else who sends to
    whom."""
    if not workload.flows:
        named = getattr(workload, "hosts", ())
        return f"on {hosts(named)}" if named else "between all hosts"
    if len(workload.flows) <= most:
        return ", ".join(map(formatting.flow, workload.flows))
    sources = list(dict.fromkeys(source for source, _ in workload.flows))
    destinations = list(dict.fromkeys(destination for _, destination in workload.flows))
    if set(sources) == set(destinations):
        return f"among {hosts(sources, most)}"
    return formatting.flow((hosts(sources, most), hosts(destinations, most)))


def _parts(arm: ArmPlan, workload: WorkloadPlan) -> list[tuple[str, Way, tuple[str, ...]]]:
    """Yield host, direction and peers for all that take part."""
    if not workload.flows:
        named = tuple(getattr(workload, "hosts", ()))  # only a command says on which hosts it runs
        if named:
            return [(host, "at", ()) for host in named]
        return [(host, "with", (ALL,)) for host in arm.network.hosts]
    to: dict[str, list[str]] = {}
    come: dict[str, list[str]] = {}
    for source, destination in hooks.conversations(workload):
        to.setdefault(source, []).append(destination)
        come.setdefault(destination, []).append(source)
    order = {host: place for place, host in enumerate(arm.network.hosts)}
    parts: list[tuple[str, Way, tuple[str, ...]]] = []
    for host in sorted({*to, *come}, key=lambda host: order[host]):
        sends, receives = (
            tuple(sorted(dict.fromkeys(peers.get(host, ())), key=lambda peer: order[peer]))
            for peers in (to, come)
        )
        if sends == receives:
            parts.append((host, "with", sends))
            continue
        parts += [(host, "to", sends)] if sends else []
        parts += [(host, "from", receives)] if receives else []
    return parts
