"""Summarise the load of the links for the report: a line for each arm, and a row for each link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from qjump_mn import theory
from qjump_mn.model.plan import Plan
from qjump_mn.results import formatting
from qjump_mn.results.outcome import LinkLoad, Outcome

ALL, MARKS = "all levels", "ECN marks"


class Load(NamedTuple):
    """An arm: what its busiest link carried, and the name and cells of each link; no rows if
    unknown."""

    label: str
    told: str
    rows: tuple[tuple[str, ...], ...]


def heads(outcome: Outcome) -> list[str]:
    """Return the columns: link, a share for each level in use, drops, marks if any, and the longest
    queue in full-size frames."""
    levels = {load.level for loads in outcome.links.values() for load in loads}
    named = [
        f"priority {level}"
        for level in sorted((level for level in levels if level is not None), reverse=True)
    ]
    marked = (
        [MARKS] if any(load.marks for loads in outcome.links.values() for load in loads) else []
    )
    return [
        "link",
        *named,
        *([ALL] if None in levels or len(named) > 1 else []),
        "drops",
        *marked,
        "most waiting, full frames",
    ]


def loads(plan: Plan, outcome: Outcome) -> list[Load]:
    """Return every arm that was run and has data; an arm without counters says so."""
    busy = {
        (load.source, load.destination) for by_link in outcome.links.values() for load in by_link
    }
    cables = dict.fromkeys(
        cable
        for network in (plan.shown.network, *(arm.network for arm in plan.run.arms))
        for cable in (*network.edges, *network.cables)
    )
    links = [
        link for above, below in cables for link in ((below, above), (above, below)) if link in busy
    ]
    columns, shown = heads(outcome), []
    for arm in outcome.arms:
        if arm.name in outcome.links:
            by_link = {
                link: [
                    load
                    for load in outcome.links[arm.name]
                    if (load.source, load.destination) == link
                ]
                for link in links
            }
            shown.append(
                Load(
                    arm.label,
                    _told(by_link),
                    tuple(_row(plan, link, levels, columns) for link, levels in by_link.items()),
                )
            )
        elif arm.done:
            shown.append(
                Load(
                    arm.label,
                    "not known: the counters were not read when the measurement began and ended",
                    (),
                )
            )
    return shown


def _told(by_link: dict[tuple[str, str], list[LinkLoad]]) -> str:
    if not any(by_link.values()):
        return "no link was busy for 1 % of the time"
    busiest = max(by_link, key=lambda link: _total(by_link[link]))
    drops = sum(load.drops for levels in by_link.values() for load in levels)
    busy = (
        f"{formatting.flow(busiest)} was the busiest, "
        f"{formatting.percent(_total(by_link[busiest]))}"
    )
    return f"{busy}; {drops} packet{'' if drops == 1 else 's'} dropped on all links"


def _row(
    plan: Plan, link: tuple[str, str], levels: Sequence[LinkLoad], columns: Sequence[str]
) -> tuple[str, ...]:
    by_level = {
        ALL if load.level is None else f"priority {load.level}": formatting.percent(load.share)
        for load in levels
    }
    # Where levels are not told apart, none of them is known.
    unknown = formatting.NONE if ALL in by_level else "0"
    by_level[ALL] = formatting.percent(_total(levels))
    waited = [load.most_bytes for load in levels if load.most_bytes is not None]
    most = formatting.number(
        round(max(waited, default=0) / theory.frame_bytes(plan.shown.network.mtu_bytes), 1)
    )
    shares = [by_level.get(column, unknown) for column in columns[1 : columns.index("drops")]]
    marks = [str(sum(load.marks for load in levels))] if MARKS in columns else []
    return (
        formatting.flow(link),
        *shares,
        str(sum(load.drops for load in levels)),
        *marks,
        formatting.NONE if levels and not waited else most,
    )


def _total(levels: Sequence[LinkLoad]) -> float:
    return sum(load.share for load in levels)
