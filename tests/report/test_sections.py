"""The report's sections about the original result, the arms one beside another, and what went
wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qjump_mn import resolve
from qjump_mn.analysis import pipeline
from qjump_mn.model.plan import Plan
from qjump_mn.programs.facts import Check
from qjump_mn.report import ablation, challenges, original
from qjump_mn.resolve import loading
from qjump_mn.results import outcome as outcomes
from qjump_mn.results.outcome import ArmSummary, Spread, VerdictRow
from tests.support import synthetic


def measured(plan: Plan, arm: str, workload: str, **values: float) -> ArmSummary:
    (found,) = synthetic.summaries(plan, {arm: {workload: values}})
    return found


def claim(**entries: Any) -> VerdictRow:
    plain: dict[str, Any] = {
        "claim": "c",
        "statement": "The claim",
        "source": "the paper",
        "predicate": "1 < 2",
        "shows": "",
        "gate": False,
        "verdict": "REPRODUCED",
        "shown": Spread.of({1: 11.24}),
        "held": (1,),
        "checked": (1,),
        "note": "",
    }
    return VerdictRow(**{**plain, **entries})


# The original result


def test_published_numbers_stand_beside_the_runs_own() -> None:
    plan = resolve.plan("fig3b", "paper", [])
    arms = [
        measured(plan, "idle", "memcached", p99_ms=0.851),
        measured(plan, "contended", "memcached", p50_ms=0.5),
    ]
    found = original.original(
        plan, synthetic.outcome(arms, verdicts=(claim(published=(1.5, 1.6)),))
    )
    assert found.rows == (
        ("memcached alone: memcached: p99", "779 us", "851 us", "QJump (NSDI'15), Figure 3b"),
        (
            "memcached + MapReduce: memcached: median",
            "800 us",
            "500 us",
            "QJump (NSDI'15), Figure 3b",
        ),
        ("The claim", "1.5 to 1.6", "11.24", "the paper"),
    )
    assert found.sentences[0].endswith(
        "Figure 3b behind their data, hollow or grey, with its axes."
    )


def test_axes_alone_are_not_called_what_was_published() -> None:
    """Figure 7's bars are in no source: its picture has the published axis, and nothing behind its
    data."""
    plan = resolve.plan("fig7", "paper", [])
    found = original.original(plan, synthetic.outcome([]))
    assert found.sentences[1] == (
        "The figures above have the axes of QJump (NSDI'15), Figure 7, and nothing of it behind "
        "their data."
    )


def test_published_times_are_told_at_both_rates() -> None:
    plan = resolve.plan("fig3a", "smoke", [])
    found = original.original(
        plan, synthetic.outcome([measured(plan, "contended", "ping", p50_ms=110.0)])
    )
    assert found.rows[0][1:3] == ("900 us; at this run's rate 900 ms", "110 ms")
    assert found.heads[1:3] == ("published", "this run, 10 Mb/s links")
    assert "stretched by the ratio of the link rates" in found.sentences[0]


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("links", [],
         "This experiment reproduces no published result: the models under the reproductions."),
        ("fig9", [], "Not published as numbers or curves that this run could be put beside"),
        ("fig10", ["link.rate=1Gbit"], "were published for links of another rate"),
    ],
)  # fmt: skip
def test_what_was_not_published_is_said(name: str, settings: list[str], said: str) -> None:
    plan = resolve.plan(name, "paper" if settings else loading.usual_preset(name), settings)
    found = original.original(plan, synthetic.outcome(()))
    assert found.rows == ()
    assert said in " ".join(found.sentences)


# Ablation


def test_each_arm_stands_beside_the_one_that_is_most_like_it() -> None:
    plan = resolve.plan("course16", "ablation", [])
    found = {step.arm: step for step in ablation.steps(plan, synthetic.outcome(()))}
    assert len(found) == len(plan.run.arms) - 1
    epoch = found["as it was, epoch of 19.2 ms"]
    assert (epoch.beside, epoch.otherwise) == (
        "QJump as it was",
        "limiter's epoch 19.2ms instead of 192ms",
    )
    factor = found["as it was, memcached's factor 100"]
    assert factor.otherwise == "limiter's budget of level 5 25600 B instead of 2560 B"
    budgets = found["as it was, budgets of 1500 B"]
    assert (budgets.beside, budgets.otherwise) == (
        "QJump as it was",
        "limiter's budgets of levels 7, 6, 5, 4, 3, 0",
    )
    assert found["MapReduce"].otherwise == "scheme 'nothing' instead of 'alone'; with job"


def test_its_measure_is_that_of_the_table_of_arms() -> None:
    plan = resolve.plan("fig3a", "smoke", [])
    arms = [
        measured(plan, "idle", "ping", p50_ms=0.8),
        measured(plan, "contended", "ping", p50_ms=110.0),
    ]
    step = next(
        one for one in ablation.steps(plan, synthetic.outcome(arms)) if one.arm == "ping + iperf3"
    )
    assert (step.there, step.here) == ("0.800", "110")
    assert ablation.heads(plan)[-2:] == ["median, ms: there", "here"]


@pytest.mark.parametrize("name", ["fig6", "fig7", "fig9", "hadoop", "ratelimit", "scale", "links"])
def test_series_are_one_row_and_every_row_says_something(name: str) -> None:
    plan = resolve.plan(name, loading.usual_preset(name), [])
    found = ablation.steps(plan, synthetic.outcome(()))
    assert len(found) == len({arm.series or arm.name for arm in plan.run.arms}) - 1
    assert len({step.arm for step in found}) == len(found)
    assert not any(step.otherwise == "nothing but its name" for step in found)
    assert ablation.steps(plan, synthetic.outcome(())) == found


# Challenges


def log(run: Path, *events: dict[str, Any]) -> None:
    (run / "log.jsonl").write_text(
        "".join(json.dumps({"utc": "2026-01-02T03:04:05Z", **event}) + "\n" for event in events)
        + '{"utc": "half'
    )


def ended(name: str, code: int = 0, message: str = "", **times: float) -> dict[str, Any]:
    return {
        "event": "trial",
        "name": name,
        "exit_code": code,
        "message": message,
        "wall_s": 90.0,
        **times,
    }


def starts(name: str) -> dict[str, Any]:
    return {"event": "progress", "name": name, "line": "starts"}


def test_the_log_says_what_failed_and_what_was_run_again(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path)
    log(
        run.path,
        *(starts("idle/1"), starts("qjump/1"), starts("contended/1"), starts("contended/1")),
        ended("idle/1", waited_s=130.0),
        ended("qjump/1", 5, "the guest died."),
        starts("qjump/1"),
        ended("qjump/1"),
        ended("contended/1", 4, "the network built was not the network planned"),
    )
    failed = Check(name="CPU", status="fail", text="95% busy")
    told = challenges.told(run, run.manifest, synthetic.outcome((), checks=(failed,)))
    assert told[1:] == [
        "qjump/1 failed at 2026-01-02T03:04:05Z: the guest died. It was run again, and is done.",
        "contended/1 failed at 2026-01-02T03:04:05Z: the network built was not the network "
        "planned. It was not done later.",
        "Broken off before the end, once or more: contended/1.",
        "Trials waited 2 min for a processor that others used.",
        "The check 'CPU' failed: 95% busy.",
    ]
    assert told[0].startswith(
        "Run from 2026-01-02T03:04:05Z to 2026-01-02T03:05:06Z. Its 3 trials took "
    )


def test_a_run_where_all_went_well_and_one_without_a_log(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path)
    assert challenges.told(run, run.manifest, synthetic.outcome(()))[0].endswith(
        "the log has no trial."
    )
    log(run.path, starts("idle/1"), ended("idle/1"))
    assert challenges.told(run, run.manifest, synthetic.outcome(()))[1:] == [
        "No trial failed, and none had to be run again."
    ]


# All of them


def test_a_report_has_what_a_course_asks_for_in_its_order(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path, only=("idle", "qjump"))
    pipeline.analyse(run.path)
    heads = (
        "Subset and motivation",
        "Results",
        "Original result",
        "Verdicts",
        "Method: the network",
        "Ablation",
        "Challenges",
        "Do it again",
    )
    for name, mark in (("report.html", ">{}</h2>"), ("report.md", "\n## {}\n")):
        content = (run.path / name).read_text()
        places = [content.index(mark.format(head)) for head in heads]
        assert places == sorted(places)
    told = original.subset(run.manifest.plan, outcomes.read(run.path))
    assert told.startswith(
        "This run has 2 of the 9 arms of experiment fig3a, preset smoke, with 1 seed each"
    )
    assert "'priorities only'" in told
