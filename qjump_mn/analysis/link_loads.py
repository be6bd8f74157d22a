"""Summarise what each arm sent over the links, over its seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from qjump_mn.programs.facts import TrialTables
from qjump_mn.results.outcome import LinkLoad

BUSY_SHARE = 0.01
"""A link that no arm keeps busy for more than this, and where nothing was dropped, is left out."""

Link = tuple[str, str]


def summarise(data: Sequence[TrialTables]) -> dict[str, tuple[LinkLoad, ...]]:
    """Return, for each arm with data, each level's load of the links that matter in some arm."""
    arms: dict[str, dict[tuple[str, str, int | None], list[dict[str, Any]]]] = {}
    shown: set[Link] = set()
    for trial in data:
        if trial.links is None:
            continue
        levels = arms.setdefault(trial.trial.arm.name, {})
        total: dict[Link, float] = {}
        for row in trial.links.to_pylist():
            link = row["source"], row["destination"]
            total[link] = total.get(link, 0.0) + row["share"]
            levels.setdefault((*link, row["level"]), []).append(row)
            if row["drops"]:
                shown.add(link)
        shown |= {link for link, share in total.items() if share > BUSY_SHARE}
    return {
        arm: tuple(
            _load(rows)
            for (*link, _), rows in levels.items()
            if tuple(link) in shown and any(row["bytes"] or row["drops"] for row in rows)
        )
        for arm, levels in arms.items()
    }


def _load(rows: Sequence[dict[str, Any]]) -> LinkLoad:
    """Return one link and level over all seeds."""
    waited = [row["most_bytes"] for row in rows]
    return LinkLoad(
        source=rows[0]["source"],
        destination=rows[0]["destination"],
        level=rows[0]["level"],
        share=statistics.median(row["share"] for row in rows),
        drops=max(row["drops"] for row in rows),
        marks=max(row["marks"] for row in rows),
        most_bytes=None if None in waited else max(waited),
    )
