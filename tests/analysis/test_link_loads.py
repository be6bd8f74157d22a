"""Which links a report lists, and their load over the seeds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from qjump_mn.analysis.link_loads import BUSY_SHARE, summarise
from qjump_mn.results.outcome import LinkLoad


def trial(arm: str, *rows: dict[str, Any]) -> Any:
    table = pa.Table.from_pylist(list(rows)) if rows else None
    return SimpleNamespace(trial=SimpleNamespace(arm=SimpleNamespace(name=arm)), links=table)


def row(source: str, share: float, level: int = 0, **changes: Any) -> dict[str, Any]:
    plain = {"bytes": 1000, "drops": 0, "marks": 0, "most_bytes": 5, "destination": "s1"}
    return {"source": source, "level": level, "share": share, **plain, **changes}


def load(source: str, share: float, level: int = 0, **changes: Any) -> LinkLoad:
    plain: dict[str, Any] = {"drops": 0, "marks": 0, "most_bytes": 5, "destination": "s1"}
    return LinkLoad(source=source, level=level, share=share, **plain | changes)


def test_links_are_listed_in_every_arm_if_one_keeps_them_busy_or_drops() -> None:
    found = summarise(
        [
            trial(
                "one",
                row("h1", BUSY_SHARE),
                row("h2", BUSY_SHARE / 2, 0),
                row("h2", BUSY_SHARE, 1),
                row("h3", 0.0, drops=1),
                row("h4", 0.001),
                row("h5", 0.5, bytes=0),
            ),
            trial("two", row("h4", 0.9), row("h1", 0.001), row("h3", 0.0, bytes=0)),
            trial("silent"),
        ]
    )
    assert found == {
        "one": (
            load("h2", BUSY_SHARE / 2, 0),
            load("h2", BUSY_SHARE, 1),
            load("h3", 0.0, drops=1),
            load("h4", 0.001),
        ),
        "two": (load("h4", 0.9),),
    }


def test_load_is_the_median_of_seeds_and_the_worst_of_counts() -> None:
    seeds = [
        trial("one", row("h1", share, drops=drops, marks=marks, most_bytes=most))
        for share, drops, marks, most in ((0.1, 3, 0, 7), (0.9, 0, 2, 5), (0.2, 1, 1, 9))
    ]
    assert summarise(seeds) == {"one": (load("h1", 0.2, drops=3, marks=2, most_bytes=9),)}
    unknown = trial("one", row("h1", 0.3, most_bytes=None))
    assert summarise([*seeds, unknown])["one"][0].most_bytes is None
