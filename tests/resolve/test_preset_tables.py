"""Presets: what they leave out, override, and take from another preset."""

from __future__ import annotations

from typing import Any

import pytest

from qjump_mn.errors import UsageError
from qjump_mn.resolve import preset_tables

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "about": "short",
        "without": ["claims.job"],
        "duration": "1s",
        "link": {"rate": "10Gbit", "buffer": "15kB"},
    },
    "long": {"about": "long", "like": "paper", "duration": "600s", "link": {"buffer": "30kB"}},
    "longer": {"like": "long", "without": ["link.buffer"], "duration": "900s"},
    "misspelt": {"like": "papers"},
    "one": {"like": "other"},
    "other": {"like": "one"},
}


def experiment() -> dict[str, Any]:
    return {"duration": "60s", "link": {"delay": "1us"}, "claims": {"job": {}, "other": {}}}


def test_preset_that_is_like_another_overrides_what_that_one_sets() -> None:
    raw = experiment()

    laid = preset_tables.apply(raw, PRESETS, "long", "experiment 'x'")

    assert raw == {
        "duration": "600s",
        "link": {"delay": "1us", "rate": "10Gbit", "buffer": "30kB"},
        "claims": {"other": {}},
    }
    assert [name for name, _ in laid] == ["presets.long", "presets.paper"]
    assert PRESETS["paper"]["link"] == {"rate": "10Gbit", "buffer": "15kB"}, "not changed itself"


def test_preset_leaves_out_what_the_one_it_is_like_has_set() -> None:
    raw = experiment()

    preset_tables.apply(raw, PRESETS, "longer", "experiment 'x'")

    assert raw["link"] == {"delay": "1us", "rate": "10Gbit"}
    assert raw["duration"] == "900s"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("misspelt", r"experiment 'x': presets.misspelt.like has no preset 'papers': .*'paper'"),
        ("one", r"experiment 'x': presets.other.like: 'one' would be like itself"),
        ("longest", r"experiment 'x' has no preset 'longest': .*'longer'"),
    ],
)
def test_preset_without_an_end_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        preset_tables.apply(experiment(), PRESETS, name, "experiment 'x'")
