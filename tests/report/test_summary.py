"""The summary of a run: the sentence at its end, and the box at the top of its report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench import readme
from qjump_mn import resolve
from qjump_mn.analysis import pipeline, terminal
from qjump_mn.model.experiment import Better
from qjump_mn.model.plan import Plan
from qjump_mn.programs.facts import Check
from qjump_mn.report import document, original
from qjump_mn.report.figures import style
from qjump_mn.results import formatting, reference, summary
from qjump_mn.results.outcome import Outcome, Spread, Verdict, VerdictRow
from tests.support import synthetic
from tests.support.processes import cli
from tests.support.screen import Screen, ending

CHECKOUT = Path(summary.__file__).parents[2]
REFERENCES = sorted((CHECKOUT / "experiments/reference").glob("*.json"))
PASSED = Check(name="wire", status="pass", text="")
INCOMPLETE = Check(name="complete", status="fail", text="8 of 9 trials done", completeness=True)
FAILED = Check(name="wire", status="fail", text="48 of 200 latencies are too short")


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> pipeline.Analysed:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "FORMATS", ("png", "svg"))
        return pipeline.analyse(synthetic.make(tmp_path_factory.mktemp("summary") / "results").path)


def row(verdict: Verdict, *, gate: bool = False) -> VerdictRow:
    """A claim with this verdict; a gate does not hold."""
    return VerdictRow(
        claim="order",
        statement="QJump is far below contended, and what is far below is described at some length",
        source="",
        predicate="",
        shows="",
        gate=gate,
        verdict=verdict,
        shown=Spread.of({1: 3.25}),
        held=(),
        checked=(1,),
        note="",
    )


def rows(**counts: int) -> tuple[VerdictRow, ...]:
    """So many claims with each verdict, named in lower case."""
    return tuple(
        row(verdict)
        for verdict in summary.VERDICTS
        for _ in range(counts.get(verdict.lower().replace(" ", "_"), 0))
    )


def with_outcome(analysed: pipeline.Analysed, **entries: object) -> pipeline.Analysed:
    """The same run with another outcome."""
    changed = replace(analysed.outcome, **entries)
    return pipeline.Analysed(analysed.run, analysed.manifest, changed, analysed.results)


def printed(analysed: pipeline.Analysed, *, is_terminal: bool = True) -> list[str]:
    return ending(analysed, is_terminal=is_terminal).splitlines()


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"reproduced": 8}, "all 8 claims reproduced"),
        ({"reproduced": 2}, "both claims reproduced"),
        ({"reproduced": 1}, "the claim is reproduced"),
        ({"not_reproduced": 1}, "the claim is not reproduced"),
        ({"direction_only": 1}, "the claim is reproduced in direction only"),
        ({"reproduced": 7, "direction_only": 1}, "7 of 8 claims reproduced, 1 in direction only"),
        ({"reproduced": 2, "partly": 1, "not_reproduced": 3, "not_run": 4},
         "2 of 10 claims reproduced, 1 for some seeds only, 3 not reproduced, 4 not judged"),
        ({"partly": 1, "not_run": 1}, "1 of 2 claims reproduced for some seeds only, 1 not judged"),
        ({"invalid": 9}, "all 9 claims invalid"),
        ({"not_run": 4}, "no claim was judged"),
        ({}, "no claim was judged"),
    ],
)  # fmt: skip
def test_claims_are_counted_by_verdict(counts: dict[str, int], expected: str) -> None:
    assert summary.claims(synthetic.outcome((), verdicts=rows(**counts))) == expected


@pytest.mark.parametrize(
    ("better", "value", "is_better"),
    [("more", 5.0, True), ("more", 1.0, False), ("less", 1.0, True), ("less", 5.0, False),
     ("", 5.0, False), ("more", 3.0, False)],
)  # fmt: skip
def test_a_number_is_better_on_one_side_of_the_published_range(
    better: Better, value: float, is_better: bool
) -> None:
    claim = replace(
        row("DIRECTION ONLY"), published=(2.0, 4.0), better=better, shown=Spread.of({1: value})
    )
    assert claim.is_better is is_better
    words = summary.claims(synthetic.outcome((), verdicts=(*rows(reproduced=7), claim)))
    more = " (better than published)" if is_better else ""
    assert words == f"7 of 8 claims reproduced, 1 in direction only{more}"
    told = formatting.published(claim).partition("; this run: ")[2]
    assert told.startswith("better than published: ") is is_better
    assert told.endswith(
        f"{ {5.0: '1.25', 1.0: '0.5', 3.0: '1'}[value] } times the published number"
    )


def test_of_many_claims_in_direction_only_the_better_ones_are_counted() -> None:
    better = replace(row("DIRECTION ONLY"), published=(1.0, 1.0), better="more")
    outcome = synthetic.outcome((), verdicts=(better, *rows(direction_only=2, not_reproduced=1)))
    assert summary.claims(outcome) == (
        "3 of 4 claims reproduced in direction only (1 better than published), 1 not reproduced"
    )
    assert not replace(better, verdict="REPRODUCED").is_better


@pytest.mark.parametrize(
    ("checks", "verdicts", "expected"),
    [
        ((PASSED,), (), "the run may be believed"),
        ((INCOMPLETE, PASSED), (), "the run is incomplete: 8 of 9 trials done"),
        ((INCOMPLETE, FAILED, Check(name="CPU", status="fail", text="busy")), (),
         "the run may NOT be believed: wire: 48 of 200 latencies are too short; CPU: busy"),
        ((PASSED,), (row("INVALID", gate=True),),
         f"the run may NOT be believed: gate order does not hold: {row('INVALID').statement}"),
    ],
)  # fmt: skip
def test_belief_names_what_speaks_against_it(
    checks: tuple[Check, ...], verdicts: tuple[VerdictRow, ...], expected: str
) -> None:
    assert summary.belief(synthetic.outcome((), checks=checks, verdicts=verdicts)) == expected


def test_the_sentence_has_three_clauses(analysed: pipeline.Analysed) -> None:
    def sentence(clause: str) -> str:
        outcome = with_outcome(analysed, reference_clause=clause).outcome
        return summary.of(analysed.manifest.plan, outcome).sentence

    two = "7 of 8 claims reproduced, 1 in direction only; the run may be believed"
    assert sentence("identical to the reference run") == f"{two}; identical to the reference run."
    assert sentence("") == f"{two}."


def test_a_good_run_ends_with_table_sentence_and_paths(analysed: pipeline.Analysed) -> None:
    run = analysed.run.path
    lines = printed(analysed)
    paths = [
        run / "fig/latency_cdf.png",
        run / "fig/latency_cdf_others.png",
        run / "report.html",
        run,
    ]
    assert [line.split()[-1] for line in lines[-4:]] == list(map(str, paths))
    assert all(len(line) <= 80 for line in lines[:-4])
    place = next(place for place, line in enumerate(lines) if " claims reproduced" in line)
    assert any(lines[place - 1].startswith(arm.label[:12]) for arm in analysed.manifest.plan.arms)
    sentence = " ".join(" ".join(lines[place:-4]).split())
    assert sentence == summary.of(analysed.manifest.plan, analysed.outcome).sentence
    assert analysed.outcome.results_sha256 not in "".join(lines)


def test_in_a_file_the_sentence_is_one_line(analysed: pipeline.Analysed) -> None:
    failed = with_outcome(analysed, verdicts=rows(reproduced=1, not_reproduced=1), exit_code=1)
    lines = printed(failed, is_terminal=False)
    assert summary.of(failed.manifest.plan, failed.outcome).sentence in lines
    (claim,) = (line.split("  ") for line in lines if line.startswith("NOT REPRODUCED"))
    assert [part.strip() for part in claim if part] == [
        "NOT REPRODUCED",
        "3.25",
        row("INVALID").statement,
    ]


@pytest.mark.parametrize("verdict", ["PARTLY", "NOT REPRODUCED", "INVALID"])
def test_claims_that_do_not_hold_are_listed(analysed: pipeline.Analysed, verdict: Verdict) -> None:
    failed = with_outcome(
        analysed, verdicts=(*rows(reproduced=1, direction_only=1), row(verdict)), exit_code=1
    )
    lines = printed(failed)
    (place,) = (
        number for number, line in enumerate(lines) if line.startswith(f"{verdict}  3.25  ")
    )
    listed = " ".join(" ".join(lines[place:-4]).split())
    assert listed == f"{verdict} 3.25 {row(verdict).statement}"
    assert all(len(line) <= 80 for line in lines[:-4])
    assert not any(line.startswith(("REPRODUCED", "DIRECTION ONLY")) for line in lines)
    assert not any(line.startswith(verdict) for line in printed(with_outcome(failed, exit_code=0)))


def test_missing_trials_are_named_by_reason_with_the_way_on(analysed: pipeline.Analysed) -> None:
    arms = [arm.name for arm in analysed.manifest.plan.arms]
    missing = {f"{name}/1": "not run" for name in arms[1:]} | {f"{arms[0]}/1": "lost: it died"}
    lines = printed(with_outcome(analysed, missing=missing, exit_code=5))
    place = lines.index("Missing: 9 of 9 trials")
    names = ", ".join(f"{name}/1" for name in arms[1:4])
    assert lines[place + 1 : place + 4] == [
        f"  {names} and 5 more: not run",
        f"  {arms[0]}/1: lost: it died",
        f"Run what is missing:  qjump-mn resume {analysed.run.path}",
    ]


def test_a_run_of_which_nothing_is_done_has_no_table(tmp_path: Path) -> None:
    run = synthetic.create(tmp_path, resolve.plan("fig3a", "smoke", []))
    lines = printed(pipeline.analyse(run.path))
    assert lines[1:3] == [
        "No claim was judged; the run is incomplete: 0 of 9 trials done.",
        "Missing: 9 of 9 trials",
    ]
    assert f"Run what is missing:  qjump-mn resume {run.path}" in lines
    page = (run.path / "report.html").read_text()
    assert 'class="answer"' not in page and 'href="trials/"' not in page


def called(run: Path, *options: str, **variables: str) -> str:
    """What `report` prints into a pipe."""
    done = cli("report", run, *options, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_verbose_is_an_option_and_a_variable(analysed: pipeline.Analysed) -> None:
    brief, long = called(analysed.run.path), called(analysed.run.path, "-v")
    assert "Verdicts: value, claim" not in brief and "Fidelity " not in brief
    for words in (
        "Verdicts: value, claim",
        "Fidelity passed, ",
        "idle RTT: ",
        "\nReference: ",
        "Side by side",
    ):
        assert words in long
    assert set(brief.splitlines()) <= set(long.splitlines())
    assert called(analysed.run.path, QJUMP_MN_REPORT_VERBOSE="1") == long


def test_no_color_keeps_the_text(
    analysed: pipeline.Analysed, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = with_outcome(analysed, verdicts=rows(partly=1, invalid=1), exit_code=4)
    written = {}
    for variable in ("", "1"):
        monkeypatch.setenv("NO_COLOR", variable)
        screen = Screen(soft_wrap=False, force_terminal=True, color_system="standard")
        terminal.show(screen, failed)
        written[variable] = screen.text
    colours = re.compile(r"\x1b\[(?:\d+;)*[34]\d(?:;\d+)*m")
    assert colours.search(written[""]) and not colours.search(written["1"])
    plain = {re.sub(r"\x1b\[[\d;]*m", "", text) for text in written.values()}
    assert len(plain) == 1


# The answer


def of_reference(path: Path) -> tuple[Plan, Outcome]:
    """The plan of a reference run, and its arms' medians."""
    experiment, _, preset = path.stem.rpartition("-")
    plan = resolve.plan(experiment, preset, [])
    arms = readme.summaries(plan, reference.read(path).values)
    return plan, synthetic.outcome(arms)


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)
def test_every_experiment_has_an_answer_with_numbers(path: Path) -> None:
    plan, outcome = of_reference(path)
    answer = summary.answer(plan, outcome)
    title, _, values = answer.partition(": ")
    assert title[0].isupper() and answer.endswith(").") and len(answer) < 320
    numbers = re.findall(r"(?:^|, |from |to )(\d[\d.]*)(?=/s| )", values)
    assert len(set(numbers)) > 1, "it tells arms apart"
    assert (
        sum(arm.label.rpartition(", ")[0] in values or arm.label in values for arm in plan.run.arms)
        > 1
    )


def test_few_arms_are_named_and_of_many_the_ends() -> None:
    folder = CHECKOUT / "experiments/reference"
    answers = {
        name: summary.answer(*of_reference(folder / f"{name}.json"))
        for name in ("fig3b-smoke", "fig10-smoke", "schemes-smoke", "fig9-smoke")
    }
    number = r"\d[\d.]*"
    for name, expected in {
        "fig3b-smoke": rf"Median request latency: {number} ms \(memcached alone\), {number} ms "
        rf"\(memcached \+ MapReduce\), {number} ms \(memcached \+ MapReduce, QJump\)\.",
        "fig10-smoke": rf"Answered: {number} to {number}/s \(excess waits, 100 to 500\), .*\.",
        "schemes-smoke": rf"Median round-trip time: from {number} ms \(.*\) to {number} ms \(nothing\)\.",
        # Arms of several workloads have one label.
        "fig9-smoke": rf"Short, mean: from {number} \(mining_published: .*\) to {number} \(search: .*\)\.",
    }.items():
        assert re.fullmatch(expected, answers[name]), answers[name]


def test_the_first_published_number_is_the_answer_of_many_arms() -> None:
    plan, outcome = of_reference(CHECKOUT / "experiments/reference/hadoop-smoke.json")
    published = replace(row("DIRECTION ONLY"), published=(3.0, 3.0))
    outcome = replace(outcome, verdicts=(row("REPRODUCED"), published))
    assert (
        summary.answer(plan, outcome)
        == f"{published.statement}: 3.25, published 3 (DIRECTION ONLY)."
    )


# The report


def test_the_box_is_the_first_thing_below_the_title(analysed: pipeline.Analysed) -> None:
    plan = analysed.manifest.plan
    said = summary.of(plan, analysed.outcome)
    page = (analysed.run.path / "report.html").read_text().partition("</h1>")[2]
    box = page.partition("</section>")[0]
    assert re.match(r'\s*<section class="summary" ', box)
    plain = " ".join(re.sub(r"<[^>]+>|\N{NO-BREAK SPACE}", " ", box).replace("&#x27;", "'").split())
    assert '<body class="exit-0">' in (analysed.run.path / "report.html").read_text()
    plain = plain.replace(" ·", "")
    assert (
        plain
        == f"{plan.shown.question} {said.answer} {said.sentence} Verdicts Fidelity Time lines Raw "
        "files"
    )
    text = (analysed.run.path / "report.md").read_text().split("\n\n")[1]
    assert text.splitlines()[:5:2] == [
        f"> {plan.shown.question}",
        f"> **{said.answer}**",
        f"> {said.sentence}",
    ]


def test_own_experiment_without_a_question(analysed: pipeline.Analysed, tmp_path: Path) -> None:
    plan = analysed.manifest.plan
    own = {"question": "", "reproduces": f"none: {original.OWN}"}
    plan = synthetic.altered(plan, shown=own)
    manifest = replace(analysed.manifest, plan=plan, files={})
    outcome = replace(analysed.outcome, drawings=())
    page, text = document.write(type(analysed.run)(tmp_path), manifest, outcome)
    assert "Raw files" not in text.read_text()
    assert text.read_text().split("\n\n")[1].startswith("> **Median round-trip time: ")
    assert "none: " not in page.read_text() + text.read_text()
