"""``list``: one row an experiment, in 80 columns, whatever else is broken."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from qjump_mn.cli import listing
from qjump_mn.errors import UsageError
from qjump_mn.resolve import loading


def shown(width: int = 80, what: str = "", *, terminal: bool = True) -> list[str]:
    text = io.StringIO()
    out = Console(
        file=text,
        width=width,
        highlight=False,
        soft_wrap=True,
        force_terminal=terminal,
        color_system=None,
    )
    listing.show(out, what)
    return text.getvalue().splitlines()


def test_what_an_experiment_shows_is_wrapped_below_its_heading() -> None:
    lines = shown(what="experiments")
    rows = lines[: lines.index("")]
    place = rows[0].index("what it shows")
    assert [row.split()[0] for row in rows if row[0] != " "] == [
        "experiment",
        *loading.names("experiments"),
    ]
    assert all(len(row) <= 80 and not row.endswith((" ", "…")) for row in rows)
    (first,) = (number for number, row in enumerate(rows) if row.startswith("fig3a "))
    assert "  paper  " in rows[first] and " GB  " in rows[first]
    words = " ".join(row[place:] for row in rows[first : first + 3])
    assert (
        words
        == "Figure 3a; CS244'15 reproduction: Ping across busy switches, with and without QJump"
    )


def test_a_narrow_terminal_leaves_room_for_words() -> None:
    lines = shown(40, "experiments")
    rows = lines[: lines.index("")]
    assert max(map(len, rows)) == rows[0].index("what it shows") + listing.MIN_WIDTH


def test_one_of_the_tables_is_shown() -> None:
    schemes = shown(200, "schemes")
    assert [row.split()[0] for row in schemes] == ["scheme", *loading.names("schemes")]
    experiments = shown(200, "experiments")
    assert shown(200) == [*experiments, "", *schemes]
    with pytest.raises(
        UsageError, match=r"^there is no list of 'scheme': did you mean 'schemes'\? \(all: "
    ):
        shown(what="scheme")


def test_a_wide_terminal_shows_all() -> None:
    assert any(
        row.endswith("Ping across busy switches, with and without QJump") for row in shown(200)
    )


def test_a_file_has_all() -> None:
    rows = shown(terminal=False)
    assert any(row.endswith("Ping across busy switches, with and without QJump") for row in rows)
    longest = max((loading.scheme(name).about for name in loading.names("schemes")), key=len)
    assert len(longest) > 80 and any(row.endswith(longest) for row in rows)


def test_a_broken_file_is_told_below_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/mine.toml").write_text("title = [\n")
    (tmp_path / "schemes").mkdir()
    (tmp_path / "schemes/own.toml").write_text("label = 1\n")
    monkeypatch.chdir(tmp_path)
    lines = shown(200)
    assert any(row.startswith("fig3a ") for row in lines)
    assert any(
        row.startswith(f"mine is broken: {tmp_path}/experiments/mine.toml is") for row in lines
    )
    assert any(row.startswith("own ") and " broken: " in row for row in lines)
