"""What verdicts say of perturbed runs, and that these decide nothing else."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from qjump_mn import resolve
from qjump_mn.analysis import claims, margins, pipeline, terminal, verdicts
from qjump_mn.analysis.margins import PerturbedRun
from qjump_mn.analysis.measures import TrialMeasures
from qjump_mn.model.experiment import ClaimSpec
from qjump_mn.model.plan import Plan
from qjump_mn.report.figures import style
from qjump_mn.results import contents, formatting
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import TrialRecord
from qjump_mn.results.outcome import Perturbed, VerdictRow
from tests.support import synthetic

ARMS = ["idle", "contended", "qjump"]


def plan_of(
    predicate: str, *, gate: str = "1 < 2", perturb: int = 6, only: Sequence[str] = ()
) -> Plan:
    plan = resolve.plan("fig3a", "smoke", [], only=only, perturb=perturb)
    made = {
        "claim": ClaimSpec(statement="s", source="s", predicate=predicate),
        "gate": ClaimSpec(statement="s", source="s", predicate=gate, gate=True),
    }
    return msgspec.structs.replace(plan, judged=msgspec.structs.replace(plan.judged, claims=made))


def measured(value: float) -> claims.Measured:
    return {"qjump": {"ping": {"p50_ms": value}}}


def told(
    plan: Plan, medians: Sequence[float], silent: Sequence[int] = ()
) -> tuple[VerdictRow, ...]:
    """The rows where QJump's median is 2 ms in the replicate, and one of ``medians`` in each
    perturbed run."""
    runs = [
        PerturbedRun(
            number,
            plan.run.perturbations[number - 1].what,
            measured(value),
            plan.judged.varied.get(plan.run.perturbations[number - 1].what, plan.judged.constants),
            number not in silent,
        )
        for number, value in enumerate(medians, 1)
    ]
    values = measured(2)["qjump"]
    trial = TrialMeasures("qjump", 1, {"ping": dict(values["ping"])}, {})
    return margins.add_margins(plan, verdicts.judge(plan, [trial], []), runs)


def test_a_claim_that_less_buffer_breaks_is_told_so() -> None:
    claim, gate = told(plan_of("qjump.ping.p50_ms < 5"), [2, 2, 2, 2, 2, 6])
    assert claim.perturbed == Perturbed(
        planned=6, checked=(1, 2, 3, 4, 5, 6), held=(1, 2, 3, 4, 5), broken_by="buffer - 2 %"
    )
    assert formatting.perturbed(claim) == (
        "holds in 5 of 6 perturbed runs; first broken by: buffer - 2 %"
    )
    assert formatting.perturbed(gate) == "holds in 6 of 6 perturbed runs"
    # What is judged of the seeds stays.
    assert (claim.verdict, claim.held, claim.checked) == ("REPRODUCED", (1,), (1,))
    assert verdicts.exit_code((claim, gate), {}, []) == 0


def test_the_first_that_breaks_it_is_named() -> None:
    claim, _ = told(plan_of("qjump.ping.p50_ms < 5"), [2, 2, 6, 2, 6, 6])
    assert claim.perturbed is not None and claim.perturbed.broken_by == "propagation + 20 ns"


def test_a_run_whose_gate_fails_or_that_says_nothing_is_not_counted() -> None:
    plan = plan_of("qjump.ping.p50_ms < 5", gate="qjump.ping.p50_ms > 1")
    claim, gate = told(plan, [2, 0.5, 2, 6, 2, 2], silent=[3])
    assert claim.perturbed == Perturbed(
        planned=6, checked=(1, 4, 5, 6), held=(1, 5, 6), broken_by="full-size packets - 4 B"
    )
    assert gate.perturbed is not None
    assert (gate.perturbed.checked, gate.perturbed.broken_by) == ((1, 2, 4, 5, 6), "buffer + 2 %")
    assert formatting.perturbed(claim) == (
        "holds in 3 of 4 perturbed runs (2 of 6 changed nothing or cannot be judged); "
        "first broken by: full-size packets - 4 B"
    )
    assert claim.verdict == "REPRODUCED"


def test_a_predicate_has_the_constants_of_the_perturbed_network() -> None:
    plan = plan_of("qjump.ping.p50_ms < buffer_ms")
    assert plan.judged.varied["buffer - 2 %"]["buffer_ms"] == pytest.approx(119.3248)
    claim, _ = told(plan, [120, 120, 120, 120, 120, 120])
    assert claim.perturbed is not None and claim.perturbed.broken_by == "buffer - 2 %"


def test_a_claim_that_nobody_asked_for_says_nothing_of_them() -> None:
    claim, _ = told(plan_of("qjump.ping.p50_ms < idle.ping.p50_ms", only=["qjump"]), [2] * 6)
    assert (claim.verdict, formatting.perturbed(claim)) == ("NOT RUN", "")


def test_without_perturbed_runs_nothing_is_told() -> None:
    claim, _ = told(plan_of("qjump.ping.p50_ms < 5", perturb=0), [])
    assert (claim.perturbed, formatting.perturbed(claim)) == (None, "")


# A run directory


@pytest.fixture(autouse=True)
def no_pdf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of a figure's time goes into the fonts of its PDF."""
    monkeypatch.setattr(style, "FORMATS", ("png", "svg"))


DONE = TrialRecord(status="done", exit_code=0, virtual_s=9.5, wall_s=6.25)


def make(out: Path, perturb: int) -> RunDirectory:
    """Figure 3a, in whose run with less buffer QJump does not help, and whose run with shorter
    packets has the results of its replicate."""
    run = synthetic.create(out, resolve.plan("fig3a", "smoke", [], only=ARMS, perturb=perturb))
    for trial in run.manifest.plan.trials():
        synthetic.write_trial(run, trial)
        raw = run.raw(trial.name)
        if trial.name == "qjump/perturbed6":
            path = raw / "ping-h8-h10.ping.txt"
            path.write_text(re.sub(r"time=([\d.]+) ms", "time=118 ms", path.read_text()))
        if trial.perturbation == 4:
            for path in raw.iterdir():
                path.write_bytes((run.raw(f"{trial.arm.name}/1") / path.name).read_bytes())
        run.finish(trial.name, DONE)
    return run


@pytest.fixture(scope="module")
def perturbed(tmp_path_factory: pytest.TempPathFactory) -> pipeline.Analysed:
    return pipeline.analyse(make(tmp_path_factory.mktemp("perturbed") / "results", 6).path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> pipeline.Analysed:
    return pipeline.analyse(make(tmp_path_factory.mktemp("plain") / "results", 0).path)


def flat(analysed: pipeline.Analysed) -> str:
    console = Console(width=100, highlight=False, record=True, file=io.StringIO())
    terminal.show(console, analysed, verbose=True)
    return " ".join(console.export_text().split())


def test_it_is_said_on_the_terminal_and_in_the_reports(perturbed: pipeline.Analysed) -> None:
    rows = {row.claim: formatting.perturbed(row) for row in perturbed.outcome.verdicts}
    broken = (
        "holds in 4 of 5 perturbed runs (1 of 6 changed nothing or cannot be judged); first "
        "broken by: buffer - 2 %"
    )
    assert rows["order"] == broken
    assert rows["contended"] == broken.replace("4 of 5", "5 of 5").partition(";")[0]
    assert broken in flat(perturbed)
    for name in ("report.html", "report.md"):
        text = (perturbed.run.path / name).read_text()
        assert broken in text
        assert "In a perturbed run one thing differs that should not matter" in text
        assert "6: another seed (1, 5); buffer + 2 % (2); propagation + 20 ns (3)" in text
    assert '"broken_by": "buffer - 2 %"' in (perturbed.run.path / "verdicts.json").read_text()


def test_all_else_is_of_the_replicates_alone(
    perturbed: pipeline.Analysed, plain: pipeline.Analysed
) -> None:
    ours, theirs = perturbed.outcome, plain.outcome
    for name in ("results_sha256", "arms", "missing", "exit_code", "links", "beside", "sentences"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert [row.verdict for row in ours.verdicts] == [row.verdict for row in theirs.verdicts]
    assert ours.exit_code == 0
    assert perturbed.manifest.plan_sha256 != plain.manifest.plan_sha256
    checks = {check.name: check.text for check in ours.checks}
    assert checks["complete"] == "21 of 21 trials done"
    assert [text for name, text in checks.items() if name not in ("complete", "files")] == [
        check.text for check in theirs.checks if check.name not in ("complete", "files")
    ]
    assert "perturbed" not in flat(plain)
    assert "perturbed" not in (plain.run.path / "report.md").read_text()


def test_one_that_is_lost_or_invalid_is_missing_and_no_more(tmp_path: Path) -> None:
    run = make(tmp_path / "results", 6)
    run.finish(
        "qjump/perturbed6", TrialRecord(status="lost", exit_code=5, message="the guest died")
    )
    run.finish(
        "idle/perturbed1", TrialRecord(status="invalid", exit_code=4, message="not as planned")
    )
    analysed = pipeline.analyse(run.path)
    assert analysed.outcome.missing == {
        "idle/perturbed1": "invalid: not as planned",
        "qjump/perturbed6": "lost: the guest died",
    }
    assert analysed.outcome.exit_code == 0 and analysed.outcome.believable
    order = next(row for row in analysed.outcome.verdicts if row.claim == "order")
    assert order.perturbed == Perturbed(planned=6, checked=(2, 3, 5), held=(2, 3, 5))
    assert contents.discrepancies(run.path, run.manifest) == []
