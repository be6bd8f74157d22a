"""``run all`` on a made-up backend: what is run, resumed and found, what is refused, and how it
ends."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Self

import pytest
from msgspec.structs import replace

from qjump_mn import session
from qjump_mn.analysis import judging
from qjump_mn.backends import estimate, registry
from qjump_mn.backends.protocol import Ended, Progress
from qjump_mn.cli import run_all
from qjump_mn.cli.commands import app
from qjump_mn.errors import LostError, MachineError, QJumpError, UsageError
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.process import interrupts
from qjump_mn.resolve import loading, sweep
from qjump_mn.results import directory, manifest, outcome, previous_runs
from tests.support import synthetic, tiny
from tests.support.processes import cli
from tests.support.screen import Screen

EXIT_CODES = {"alpha": 0, "beta": 1, "gamma": 0}


class Made:
    """A backend whose trials take no time and leave nothing."""

    clock = "virtual"
    repeats_anywhere = True
    parallel = 1
    trials: list[str]
    """Those that were run, of all backends of a test."""
    verbose: list[bool]
    """Whether each run was judged with everything printed."""
    broken: dict[str, BaseException]
    """What the experiments raise when they are prepared."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is interrupts.Interrupted:
            raise LostError("the clean-up has failed")

    def check(self, plan: Plan, progress: Progress) -> None: ...

    def cost(self, trial: Trial) -> float:
        return 0.0

    def prepare(self, plan: Plan, progress: Progress) -> dict[str, str]:
        if plan.shown.experiment in Made.broken:
            raise Made.broken[plan.shown.experiment]
        return {"image": "0"}

    def run(self, trial: Trial, out: Path, progress: Progress) -> Ended:
        Made.trials.append(trial.name)
        return Ended(0, "", 1.0, 0.1, cpu_s=2.5)

    def stop(self) -> None: ...


class Judged:
    """Stands for the process that judges a run."""

    def __init__(self, run: Path, *, verbose: bool = False) -> None:
        self.run, self.verbose = run, verbose

    def __enter__(self) -> Judged:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was started."""

    def call_in(self) -> None:
        """It needs no time."""

    def judge(self) -> int:
        return judged(self.run, verbose=self.verbose)


def judged(path: Path, *, verbose: bool) -> int:
    """Stands for the analysis: the exit code is that of the experiment, or 5 where trials are
    missing."""
    found = directory.existing(path)
    plan = found.manifest.plan
    missing = {trial.name: "not run" for trial in plan.trials() if not found.is_done(trial.name)}
    code = 5 if missing else EXIT_CODES[plan.shown.experiment]
    Made.verbose.append(verbose)
    outcome.write(path, synthetic.outcome([], missing=missing, exit_code=code))
    return code


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder with the three experiments; gamma is for the simulator. No trial has run here
    before."""
    for name in EXIT_CODES:
        tiny.write(tmp_path, name, backend="simulator" if name == "gamma" else "guest")
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    monkeypatch.setattr(estimate, "NAME", str(tmp_path / "trial-costs.json"))
    monkeypatch.setattr(registry, "make", Made)
    monkeypatch.setattr(session, "Judge", Judged)
    monkeypatch.setattr(Made, "trials", [], raising=False)
    monkeypatch.setattr(Made, "verbose", [], raising=False)
    monkeypatch.setattr(Made, "broken", {}, raising=False)
    return tmp_path


def called(
    folder: Path, *, seed: int = 1, preset: str = tiny.PRESET, verbose: bool = False
) -> tuple[int, str]:
    """The exit code and what is printed."""
    out = Screen()
    request = session.Request("all", preset, seed=seed, out=folder / "out", verbose=verbose)
    return run_all.run(request, out), out.text


def rows(text: str) -> dict[str, list[str]]:
    """What was done for each experiment, and its exit code."""
    table = text[text.rindex("\nexperiment ") :].splitlines()[2 : 2 + len(EXIT_CODES)]
    return {line.split()[0]: line.split()[2:4] for line in table}


def only(folder: Path, name: str) -> Path:
    (path,) = folder.glob(f"out/{name}-*")
    return path


def test_what_is_done_is_found_again(folder: Path) -> None:
    code, text = called(folder)
    assert (code, rows(text)) == (
        1,
        {"alpha": ["run", "0"], "beta": ["run", "1"], "gamma": ["run", "0"]},
    )
    assert re.search(r"experiments with preset tiny: 3 to run\nabout \d+ s\n", text)
    assert Made.trials == ["one/1", "one/2"] * 3
    for name in EXIT_CODES:
        assert str(folder / "out" / only(folder, name).name) in text, (
            "whole, however narrow the terminal"
        )
    code, text = called(folder)
    assert (code, rows(text)) == (
        1,
        {"alpha": ["found", "0"], "beta": ["found", "1"], "gamma": ["found", "0"]},
    )
    assert "experiments with preset tiny: 3 done already\n\n" in text and "about" not in text
    assert len(Made.trials) == 6


def test_estimate_is_what_the_last_run_took(folder: Path) -> None:
    called(folder)
    _, text = called(folder, seed=5)
    expected_s = len(EXIT_CODES) * (2 * 2.5 + estimate.JUDGE_S)
    assert f"3 to run\nabout {expected_s:.0f} s\n" in text


def test_a_setting_with_several_values_is_a_run_for_each(folder: Path) -> None:
    def swept() -> tuple[int, str]:
        out = Screen()
        request = session.Request("alpha", tiny.PRESET, out=folder / "out")
        settings = sweep.combinations("alpha", tiny.PRESET, ["link.rate=10Mbit,20Mbit"])
        return run_all.sweep(request, settings, out), out.text

    code, text = swept()
    assert code == 0 and "runs with these settings: 2 to run\n" in text
    assert "\n[1/2] alpha link.rate=10Mbit\n" in text and "\n[2/2] alpha link.rate=20Mbit\n" in text
    assert Made.trials == ["one/1", "one/2"] * 2
    plans = [run.manifest.plan for run in previous_runs.newest_first(folder / "out", "alpha")]
    assert sorted(plan.shown.network.link.rate_bps for plan in plans) == [10**7, 2 * 10**7]
    argv = [run.manifest.argv for run in previous_runs.newest_first(folder / "out", "alpha")]
    assert all(
        "-s" in words and words[words.index("-s") + 1].startswith("link.rate=") for words in argv
    )
    code, text = swept()
    assert "runs with these settings: 2 done already\n" in text and len(Made.trials) == 4


def test_runs_of_another_backend_are_not_found_again(folder: Path) -> None:
    tiny.write(folder, "alpha", backend='guest", "simulator')
    settings = sweep.combinations("alpha", tiny.PRESET, ["link.rate=10Mbit,20Mbit"])

    def swept(backend: str) -> str:
        out = Screen()
        request = session.Request("alpha", tiny.PRESET, backend=backend, out=folder / "out")
        run_all.sweep(request, settings, out)
        return out.text

    assert "2 to run\n" in swept("")
    assert "2 to run\n" in swept("simulator")
    assert "2 done already\n" in swept("simulator")
    backends = [run.manifest.backend for run in previous_runs.newest_first(folder / "out", "alpha")]
    assert sorted(backends) == ["guest", "guest", "simulator", "simulator"]


def test_the_marks_of_a_run_that_goes_on_are_left_alone(folder: Path) -> None:
    assert called(folder)[0] == 1
    run = directory.existing(only(folder, "alpha"))
    # As between the end of a trial, which another process runs, and what this one has read before.
    before = run.manifest
    manifest.write(run.path, replace(before, trials={}, files={}))
    with run.held(), pytest.raises(UsageError, match="is being run by another process"):
        session.resume(run.path, Screen())
    assert all(run.is_done(name) for name in before.trials)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["link.rate=10Mbit,20Mbit", "seed=1"],
         [("link.rate=10Mbit", "seed=1"), ("link.rate=20Mbit", "seed=1")]),
        (
            ["warmup=1s, 2s", "replicates=1,2"],
            [
                ("warmup=1s", "replicates=1"),
                ("warmup=1s", "replicates=2"),
                ("warmup=2s", "replicates=1"),
                ("warmup=2s", "replicates=2"),
            ],
        ),
        (["link.rate=10Mbit,10Mbit"], [("link.rate=10Mbit",)]),
        (["figure.arms=idle,contended"], [("figure.arms=idle,contended",)]),
        (["nosuch=1,2"], [("nosuch=1,2",)]),
    ],
)  # fmt: skip
def test_settings_with_several_values(settings: list[str], expected: list[tuple[str, ...]]) -> None:
    assert sweep.combinations("fig3a", "smoke", settings) == expected


def test_too_many_runs_are_refused() -> None:
    many = ",".join(f"{number}s" for number in range(1, 12))
    with pytest.raises(
        UsageError,
        match=r"^the settings make 121 runs, more than 100: leave some of their values out$",
    ):
        sweep.combinations("fig3a", "smoke", [f"warmup={many}", f"duration={many}"])
    with pytest.raises(
        UsageError, match="'warmup=1s,,2s' has an empty value: write key=value,value"
    ):
        sweep.combinations("fig3a", "smoke", ["warmup=1s,,2s"])


def test_what_is_incomplete_is_resumed(folder: Path) -> None:
    called(folder)
    Made.trials.clear()
    (only(folder, "alpha") / "trials/one/2/DONE").unlink()
    (only(folder, "beta") / outcome.NAME).unlink()
    shutil.rmtree(only(folder, "gamma"))
    _, text = called(folder)
    assert rows(text) == {
        "alpha": ["resumed", "0"],
        "beta": ["resumed", "1"],
        "gamma": ["run", "0"],
    }
    assert "1 of 2 trials are left" in text and "0 of 2 trials are left" in text
    assert Made.trials == ["one/2", "one/1", "one/2"]


def test_what_was_judged_before_its_last_trial_is_judged_again(folder: Path) -> None:
    called(folder)
    missing = synthetic.outcome([], missing={"one/2": "lost"}, exit_code=5)
    outcome.write(only(folder, "alpha"), missing)
    assert rows(called(folder)[1])["alpha"] == ["resumed", "0"]
    assert not outcome.read(only(folder, "alpha")).missing


def test_another_seed_is_another_run(folder: Path) -> None:
    called(folder)
    assert rows(called(folder, seed=2)[1])["alpha"] == ["run", "0"]
    argv = ("qjump-mn", "run", "alpha", "--preset", "tiny")
    assert {run.manifest.argv for run in previous_runs.newest_first(folder / "out", "alpha")} == {
        (*argv, *more, "--out", str(folder / "out")) for more in ((), ("--seed", "2"))
    }


def test_the_newest_run_decides(folder: Path) -> None:
    called(folder)
    whole = only(folder, "alpha")
    shutil.copytree(whole, whole.with_name(f"{whole.name}-2"))
    (whole.with_name(f"{whole.name}-2") / "trials/one/1/DONE").unlink()
    assert rows(called(folder)[1])["alpha"] == ["resumed", "0"]


def test_other_claims_are_told(folder: Path) -> None:
    called(folder)
    tiny.write(folder, "alpha", limit_ms=2.0, backend="guest")
    text = called(folder)[1]
    assert text.count("found, judged by older claims") == 1


def test_error_of_one_stops_no_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Made.broken["alpha"] = MachineError("the disk is full: make room")
    code, text = called(folder)
    assert (code, rows(text)["alpha"], rows(text)["beta"]) == (3, ["run", "3"], ["run", "1"])
    assert capsys.readouterr().err == "qjump-mn: the disk is full: make room\n"
    assert text.endswith("\nalpha: the disk is full: make room\n")
    Made.broken.clear()
    code, text = called(folder)
    assert (code, rows(text)["alpha"], rows(text)["beta"]) == (1, ["resumed", "0"], ["found", "1"])


def test_analysis_ended_by_a_signal_is_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "Judge", judging.Judge)
    monkeypatch.setattr(judging, "wrap_module", lambda *_: (["sh", "-c", "kill -9 $$"], {}))
    code, text = called(folder)
    assert (code, rows(text)["beta"]) == (5, ["run", "5"])
    with pytest.raises(
        LostError, match=r"its analysis was ended by SIGKILL, .*: run  qjump-mn report "
    ):
        judging.judge(folder)


def test_an_interrupt_stops_all(folder: Path) -> None:
    """Also where the clean-up ends with an error of its own."""
    Made.broken["alpha"] = interrupts.Interrupted()
    with pytest.raises(LostError) as ended:
        called(folder)
    interrupted = interrupts.interruption(ended.value)
    assert interrupted is not None and interrupted.repeats
    assert [path.name.partition("-")[0] for path in folder.glob("out/*-*")] == ["alpha"]


def test_each_has_its_usual_preset(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in EXIT_CODES:
        path = folder / f"experiments/{name}.toml"
        usual = "tiny" if name == "beta" else "course"
        text = path.read_text().replace("[presets.tiny]", f"[presets.{usual}]")
        path.write_text(f'usual_preset = "{usual}"\n{text}')
    monkeypatch.setattr(loading, "names", lambda kind: sorted(EXIT_CODES))
    code, text = called(folder, preset="")
    assert code == 1 and "experiments with their usual presets: 3 to run\n" in text
    presets = [
        directory.existing(only(folder, name)).manifest.plan.shown.preset for name in EXIT_CODES
    ]
    assert presets == ["course", "tiny", "course"]


@pytest.mark.parametrize(
    ("exit_codes", "worst"),
    [([0, 0], 0), ([0, 1], 1), ([1, 2, 0], 2), ([3, 2, 1], 3), ([4, 3], 4), ([0, 5, 4], 5)],
)
def test_the_worst_exit_code_is_that_of_the_whole(exit_codes: list[int], worst: int) -> None:
    assert run_all.worst(exit_codes) == worst


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("one.ping.p50_ms <", "one.pign.p50_ms <", "'one.pign.p50_ms' names no workload"),
        ('plot = "latency_cdf"', 'plot = "latency"', "there is no figure 'latency'"),
        ("replicates = 2", 'replicates = 900\nduration = "3600s"',
         "experiment 'beta': it would take about"),
        ('title = "', "title = ", "beta.toml is not valid TOML"),
    ],
)  # fmt: skip
def test_one_bad_plan_stops_all(before: str, after: str, sentence: str, folder: Path) -> None:
    path = folder / "experiments/beta.toml"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(UsageError, match=sentence):
        called(folder)
    assert not (folder / "out").exists()


def test_a_folder_that_cannot_be_written_is_found_before(folder: Path) -> None:
    (folder / "out").write_text("")
    with pytest.raises(UsageError, match="results cannot be written to"):
        called(folder)


def test_no_experiment_is_called_all(folder: Path) -> None:
    tiny.write(folder, "all")
    with pytest.raises(
        UsageError, match="no experiment can be called 'all', because it stands for all of them"
    ):
        called(folder)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-s", "duration=1s"], "-s cannot be used with run all: name one experiment"),
        (["--backend", "guest"], "--backend cannot be used with run all"),
        (["--dry-run", "--arms", "idle"], "--arms and --dry-run cannot be used with run all"),
        (["--preset", "smok"], "no experiment has a preset 'smok': did you mean 'smoke'?"),
        (["--engine", "dask"], "--engine dask and --scheduler go together"),
    ],
)
def test_options_unfit_for_all_are_refused(
    options: list[str], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(QJumpError, match=sentence.replace("?", r"\?")) as refusal:
        app(["run", "all", *options, "--out", str(tmp_path / "out")], standalone_mode=False)
    assert refusal.value.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_a_refusal_is_one_sentence_and_exit_code_2() -> None:
    done = cli("all", "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "qjump-mn: --dry-run cannot be used with run all: name one experiment\n"


def test_runs_of_another_name_are_not_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor those that another version has made."""
    tiny.write(folder, "alpha-beta", backend="guest")
    monkeypatch.setitem(EXIT_CODES, "alpha-beta", 0)
    called(folder)
    (folder / "out/alpha-20200101T000000Z-000000000000").mkdir()
    (folder / "out/alpha-20200101T000000Z-000000000000/manifest.json").write_text('{"schema": 1}')
    (one,) = previous_runs.newest_first(folder / "out", "alpha")
    assert one.manifest.plan.shown.experiment == "alpha" and one.left == 0
    assert previous_runs.newest_first(folder / "nothing", "alpha") == []


def test_verbose_is_for_what_is_run_and_what_is_resumed(folder: Path) -> None:
    called(folder)
    (only(folder, "beta") / "trials/one/2/DONE").unlink()
    shutil.rmtree(only(folder, "gamma"))
    called(folder, verbose=True)
    assert Made.verbose == [False] * 3 + [True] * 2
