"""Settings by name in plain tables: finding, changing, listing and leaving them out."""

from __future__ import annotations

from typing import Any

import pytest

from qjump_mn.errors import UsageError
from qjump_mn.model import suggestions, tables


def plain() -> dict[str, Any]:
    return {
        "title": "T",
        "seeds": [1, 2],
        "names": ["a"],
        "empty": None,
        "link": {"rate": "10Mbit", "pfc": False, "host_jitter_of": {}},
        "trunk": {"rate": "1Gbit"},
        "published": {"a.b.c": 1},
        "points": [{"x": 1}],
    }


def test_merge_goes_table_by_table() -> None:
    base = plain()
    tables.merge(base, {"link": {"rate": "1Gbit"}, "title": {"now": "a table"}, "seeds": {"a": 1}})
    assert base["link"] == {"rate": "1Gbit", "pfc": False, "host_jitter_of": {}}
    assert (base["title"], base["seeds"]) == ({"now": "a table"}, {"a": 1})
    tables.merge(base, {"link": 7})
    assert base["link"] == 7


@pytest.mark.parametrize(
    ("names", "value"),
    [
        (("link", "rate"), "10Mbit"),
        (("link", "none"), None),
        (("title", "none"), None),
        ((), plain()),
    ],
)
def test_at_is_the_value_below_names(names: tuple[str, ...], value: Any) -> None:
    assert tables.at(plain(), names) == value


def test_leave_out_removes_an_entry_that_exists() -> None:
    raw = plain()
    tables.leave_out(raw, "link.rate", "here")
    assert "rate" not in raw["link"]
    for entry in ("link.rate", "title.sub", "none"):
        with pytest.raises(UsageError, match=f"here: there is no '{entry}' to leave out"):
            tables.leave_out(raw, entry, "here")


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        (" link.rate = 1Gbit ", ("link", "rate"), "1Gbit"),
        ("link.rate='1Gbit'", ("link", "rate"), "1Gbit"),
        ("link.pfc=true", ("link", "pfc"), True),
        ("title=5", ("title",), "5"),
        ("title=a=b", ("title",), "a=b"),
        ("seeds=3, 4,", ("seeds",), ["3", "4"]),
        ("seeds=[3, 4]", ("seeds",), [3, 4]),
        ("empty=word", ("empty",), "word"),
        ("empty=1.5", ("empty",), 1.5),
        ("link.host_jitter_of.h1=0:1us", ("link", "host_jitter_of", "h1"), "0:1us"),
    ],
)
def test_apply_reads_a_value_as_its_setting_was(
    setting: str, path: tuple[str, ...], value: Any
) -> None:
    changed = plain()
    tables.apply(changed, setting, "mine")
    assert tables.at(changed, path) == value


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("link.rate", "'link.rate' is not a setting: write key=value"),
        ("=1", "'=1' is not a setting"),
        ("link=1", r"link is a table, not a setting: set a value in it, such as link\.rate=VALUE"),
        ("link.host_jitter_of=1", r"such as link\.host_jitter_of\.NAME=VALUE"),
        ("link.rat=1", r"'mine' has no setting 'link\.rat': did you mean 'link\.rate'"),
        ("title.sub=1", r"has no setting 'title\.sub'"),
        ("pfc=1", r"write the whole name, link\.pfc$"),
        ("rate=1", r"write the whole name, one of link\.rate, trunk\.rate$"),
        ("new=1", "has no setting 'new'"),
    ],
)
def test_apply_refuses_what_is_not_a_setting(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        tables.apply(plain(), setting, "mine")


@pytest.mark.parametrize(
    ("count", "told"), [(suggestions.FEW_NAMED, False), (suggestions.FEW_NAMED + 1, True)]
)
def test_unknown_setting_lists_few_whole_names_the_shortest_first(count: int, told: bool) -> None:
    many = {f"t{number}": {"deep": {"x": 1}} for number in range(count - 1)} | {"near": {"x": 1}}
    with pytest.raises(UsageError, match=r"one of near\.x, t0\.deep\.x, t1") as refused:
        tables.place_of(many, "x", "here", "see there")
    assert str(refused.value).endswith("; see there") == told
    assert str(refused.value).count(".x") == suggestions.FEW_NAMED


def test_values_and_matching_list_settings_as_they_are_set() -> None:
    assert tables.values(plain()) == [
        "title=T",
        "seeds=[1,2]",
        'names=["a"]',
        "empty",
        "link.rate=10Mbit",
        "link.pfc=false",
        "trunk.rate=1Gbit",
        "points",
    ]
    assert tables.matching(plain(), "*.rate") == ["link.rate", "trunk.rate"]
    assert tables.matching(plain(), "link.*") == ["link.rate", "link.pfc"]
    assert tables.matching(plain(), "*") == ["title", "seeds", "names", "empty", "points"]
    assert tables.matching(plain(), "anything") == ["anything"]


@pytest.mark.parametrize(
    ("key", "known"), [("duration", True), ("seeds", False), ("link", True), ("workloads", False)]
)
def test_is_setting_is_true_for_fields_that_are_not_tables(key: str, known: bool) -> None:
    assert tables.is_setting(key) == known
