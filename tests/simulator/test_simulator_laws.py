"""Congestion laws of one's own: the example of docs/simulator.md, and what bench/laws.py wrote
there."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from bench import laws, marks
from tests.support.processes import execute

HEADING = "## A congestion law of your own"


@pytest.mark.guest
def test_the_example_of_the_page_runs(package: Path) -> None:
    section = laws.DOCUMENT.read_text().partition(HEADING)[2]
    (example,) = re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    argv = [sys.executable, "-c", example]
    done = execute(argv, env={**os.environ, "PYTHONPATH": str(package)})
    assert done.returncode == 0, done.stderr
    assert 1 < float(done.stdout) < 10, "the mean slowdown of all flows"


@pytest.mark.guest
def test_all_kinds_of_a_law_have_one_outcome(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.setattr(laws, "FLOWS", 30)
    monkeypatch.setattr(laws, "ROUNDS", 1)
    for name in laws.LAWS:
        assert set(laws.least(laws.scenarios(name))) == set(laws.KINDS)


def test_page_has_the_cost_of_each_law() -> None:
    text = marks.read(laws.DOCUMENT, "laws")
    rows = re.findall(
        r"^\| (\w+) \| [0-9.]+ s \| ([0-9.]+) times \| ([0-9.]+) times \|$", text, re.M
    )
    assert [law for law, *_ in rows] == list(laws.LAWS.values())
    assert all(1 < float(webassembly) <= laws.MOST for _, webassembly, _ in rows)
    seconds = {"built in": 0.5, "WebAssembly": 1.0, "Python": 4.0}
    assert laws.row("Reno", seconds) == "| Reno | 0.50 s | 2.00 times | 8.00 times |"
