"""``list``: one row an experiment, in 80 columns, whatever else is broken."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from qjump_mn import listing
from qjump_mn.model import loading


def shown(width: int = 80, *, terminal: bool = True) -> list[str]:
    text = io.StringIO()
    listing.show(
        Console(
            file=text, width=width, highlight=False, soft_wrap=True, force_terminal=terminal, no_color=True
        )
    )
    return text.getvalue().splitlines()


def test_each_experiment_has_one_row() -> None:
    lines = shown()
    rows = lines[: lines.index("")]
    assert [row.split()[0] for row in rows] == ["experiment", *loading.names("experiments")]
    assert all(len(row) <= 80 for row in rows)
    fig3a = next(row for row in rows if row.startswith("fig3a "))
    assert "  paper  " in fig3a and " GB  " in fig3a and "Figure 3a" in fig3a and fig3a.endswith("…")


def test_a_wide_terminal_shows_all() -> None:
    assert any(row.endswith("Ping across busy switches, with and without QJump") for row in shown(200))


def test_a_file_has_all() -> None:
    assert any(
        row.endswith("Ping across busy switches, with and without QJump") for row in shown(terminal=False)
    )


def test_a_broken_file_is_told_below_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/mine.toml").write_text("title = [\n")
    (tmp_path / "schemes").mkdir()
    (tmp_path / "schemes/own.toml").write_text("label = 1\n")
    monkeypatch.chdir(tmp_path)
    lines = shown(200)
    assert any(row.startswith("fig3a ") for row in lines)
    assert any(row.startswith(f"mine is broken: {tmp_path}/experiments/mine.toml is") for row in lines)
    assert any(row.startswith("own ") and " broken: " in row for row in lines)
