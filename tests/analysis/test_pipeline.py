"""Which trials an analysis reads, and why others are missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from qjump_mn.analysis import fidelity, margins, pipeline
from qjump_mn.errors import LostError
from qjump_mn.resolve import plan
from qjump_mn.results import contents, tables

PLAN = plan("fig3a", "smoke", [], only=["idle"], replicates=6)


def record(status: str, message: str = "", exit_code: int = 0) -> Any:
    return SimpleNamespace(status=status, message=message, exit_code=exit_code)


def test_trials_without_tables_have_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(run: Any, trial: Any) -> str:
        if trial.seed == 5:
            raise LostError("no end")
        return f"tables of {trial.name}"

    monkeypatch.setattr(tables, "build", build)
    run: Any = SimpleNamespace(is_done=lambda name: name != "idle/4")
    records = {
        "idle/1": record("done"),
        "idle/2": record("lost", "it hung"),
        "idle/3": record("invalid", exit_code=7),
        "idle/4": record("done"),
        "idle/5": record("done"),
    }
    manifest: Any = SimpleNamespace(plan=PLAN, trials=records)
    data, missing = pipeline.read_trials(run, manifest)
    assert list(map(str, data)) == ["tables of idle/1", "tables of idle/6"]
    assert missing == {
        "idle/2": "lost: it hung",
        "idle/3": "invalid: exit code 7",
        "idle/4": "not run",
        "idle/5": "unreadable: no end",
    }


@pytest.mark.parametrize(
    ("reached", "status", "says"),
    [(True, "pass", True), (True, "unknown", True), (True, "fail", False), (False, "pass", False)],
)
def test_perturbed_run_says_something_if_it_differs_and_is_valid(
    reached: bool, status: str, says: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan("fig3a", "smoke", [], only=["idle"], perturb=2)
    monkeypatch.setattr(margins, "reached", lambda *about: reached)
    checks = (SimpleNamespace(status="pass"), SimpleNamespace(status=status))
    monkeypatch.setattr(fidelity, "of_trials", lambda *about: checks)
    monkeypatch.setattr(contents, "by_trial", lambda files: files)
    run: Any = SimpleNamespace(is_done=lambda name: False)
    runs, missing = pipeline._perturbed(run, SimpleNamespace(plan=made, files={}, trials={}))  # type: ignore[arg-type]
    assert [(one.number, one.what, one.says) for one in runs] == [
        (number, each.what, says) for number, each in enumerate(made.run.perturbations, 1)
    ]
    assert [one.constants for one in runs] == [
        made.judged.varied.get(each.what, made.judged.constants) for each in made.run.perturbations
    ]
    assert set(missing.values()) == {"not run"} and len(missing) == 2
