"""What the terminal says of a run: what is missing, what failed, and columns that fit."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from qjump_mn.analysis import terminal
from qjump_mn.analysis.terminal import GAP, LEAST, Column
from qjump_mn.resolve import plan
from qjump_mn.results.outcome import Drawing, Outcome, VerdictRow
from tests.support import synthetic

PLAN = plan("fig3a", "smoke", [], only=["idle", "qjump"])


def row(verdict: str, statement: str) -> VerdictRow:
    return VerdictRow(
        claim="claim",
        statement=statement,
        source="source",
        predicate="1 < 2",
        shows="",
        gate=False,
        verdict=cast("Any", verdict),
        shown=None,
        held=(),
        checked=(1,),
        note="a note",
    )


ROWS = tuple(
    row(verdict, f"it is {verdict.lower()}.")
    for verdict in ("REPRODUCED", "PARTLY", "NOT REPRODUCED", "INVALID", "NOT RUN")
)


def printed(outcome: Outcome, path: Path, *, verbose: bool = False, width: int = 200) -> str:
    analysed: Any = SimpleNamespace(
        manifest=SimpleNamespace(plan=PLAN), outcome=outcome, run=SimpleNamespace(path=path)
    )
    text = io.StringIO()
    terminal.show(Console(file=text, width=width), analysed, verbose=verbose)
    return text.getvalue()


def test_claims_that_do_not_hold_are_named_if_the_run_is_not_good(tmp_path: Path) -> None:
    failed = printed(synthetic.outcome([], verdicts=ROWS, exit_code=4), tmp_path)
    told = [row.verdict for row in ROWS if row.statement in failed]
    assert told == ["PARTLY", "NOT REPRODUCED", "INVALID"]
    good = printed(synthetic.outcome([], verdicts=ROWS, exit_code=0), tmp_path)
    assert not any(row.statement in good for row in ROWS)
    verbose = printed(synthetic.outcome([], verdicts=ROWS, exit_code=4), tmp_path, verbose=True)
    assert all(verbose.count(row.statement) == 1 for row in ROWS)
    assert "(a note)" in verbose and "source (claim)" in verbose and "Reference: " in verbose


def test_arms_without_a_difference_are_always_named(tmp_path: Path) -> None:
    sentence = "The arms 'one' and 'two' left the same bytes with every seed"
    outcome = synthetic.outcome([], verdicts=ROWS, exit_code=0, alike=(sentence,))
    for verbose in (False, True):
        assert printed(outcome, tmp_path, verbose=verbose).count(sentence) == 1


@pytest.mark.parametrize(
    ("verbose", "lines"),
    [
        (False, ["  a/1, a/2, a/3 and 1 more: lost", "  b/1, b/2, b/3: late"]),
        (
            True,
            [*(f"  a/{n}: lost" for n in range(1, 5)), *(f"  b/{n}: late" for n in range(1, 4))],
        ),
    ],
)
def test_missing_trials_are_named_for_each_reason(
    verbose: bool, lines: list[str], tmp_path: Path
) -> None:
    missing = {f"a/{n}": "lost" for n in range(1, 5)} | {f"b/{n}": "late" for n in range(1, 4)}
    text = printed(synthetic.outcome([], missing=missing), tmp_path, verbose=verbose)
    found = text.splitlines()
    begin = found.index("Missing: 7 of 2 trials") + 1
    assert found[begin : begin + len(lines)] == lines
    assert found[begin + len(lines)].startswith("Run what is missing:  ")
    assert "Missing" not in printed(synthetic.outcome([]), tmp_path, verbose=verbose)


def test_files_of_a_run_stand_alone_on_their_lines(tmp_path: Path) -> None:
    drawing = Drawing(name="a", title="", files={"png": "fig/a.png"}, caption="")
    outcome = synthetic.outcome([], drawings=(drawing,))
    (tmp_path / "report.html").touch()
    lines = [
        f"figure  {tmp_path}/fig/a.png",
        f"report  {tmp_path}/report.html",
        f"run     {tmp_path}",
    ]
    assert printed(outcome, tmp_path, width=20).splitlines()[-3:] == lines
    (tmp_path / "report.pdf").touch()
    printed_too = printed(outcome, tmp_path).splitlines()[-4:]
    assert printed_too == [*lines[:2], f"report  {tmp_path}/report.pdf", lines[2]]


def test_column_is_as_wide_as_its_widest_line_and_narrows_to_words() -> None:
    column = Column("99th percentile,\nms", ["1.25", "10000000000"])
    assert column.width == 16
    assert column.narrowed() == Column("99th\npercentile,\nms", ["1.25", "10000000000"])
    assert column.narrowed().width == 11


COLUMNS = [Column("head", ["1" * 8])] * 3
"""Each takes 10 of the width, with its gap."""


@pytest.mark.parametrize(
    ("width", "parts"),
    [
        (None, [(3, True)]),
        (3 + 6 + GAP + 30, [(3, True)]),
        (3 + 6 + GAP + 29, [(2, True), (1, False)]),
        (3 + 6 + GAP + 20, [(2, True), (1, False)]),
        (3 + 6 + GAP + 19, [(1, True), (2, False)]),
        (3 + 20, [(1, True), (2, False)]),
        (3 + 19, [(1, True), (1, False), (1, False)]),
        (1, [(1, True), (1, False), (1, False)]),
    ],
)
def test_parts_have_the_columns_that_fit_beside_arms_and_schemes(
    width: int | None, parts: list[tuple[int, bool]]
) -> None:
    found = list(terminal._parts(COLUMNS, ["arm"], ["scheme"], width))
    assert [(len(part), beside) for part, beside in found] == parts


@pytest.mark.parametrize(
    ("room", "widths"),
    [
        (None, [None, None]),
        (62, [30, 30]),
        (61, [29, 30]),
        (60, [29, 29]),
        (40, [20, 18]),
        (34, [20, 12]),
        (5, [20, 12]),
    ],
)
def test_names_share_their_room_the_widest_is_narrowed_first(
    room: int | None, widths: list[int | None]
) -> None:
    assert terminal._shared({"arm": ["a" * 30], "scheme": ["s" * 30]}, room) == widths
    assert LEAST == {"arm": 20, "scheme": 12}


def test_short_names_need_no_more_than_they_have() -> None:
    assert terminal._shared({"arm": ["ab"], "scheme": ["s" * 30]}, 5) == [3, 12]
