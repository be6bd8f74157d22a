"""``verify`` on a made-up backend: what is run again, what is compared, and what is said of it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest
from msgspec.structs import replace

from qjump_mn import cache, resolve, session
from qjump_mn.backends import estimate, registry
from qjump_mn.backends.protocol import Ended, Progress
from qjump_mn.cli import repeated
from qjump_mn.cli.bundle import checking
from qjump_mn.cli.bundle.judge import Findings
from qjump_mn.cli.verification import verify
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.results import manifest, ownership
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Clock, TrialRecord
from qjump_mn.results.repetition import difference
from qjump_mn.toolbox import machines
from tests.support import synthetic
from tests.support.screen import Screen


class Repeating:
    """A backend whose trials leave the same files each time."""

    name, clock, repeats_anywhere, parallel = "guest", "virtual", True, 1
    image = "0"
    loses = ""
    ran: list[str]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def check(self, plan: Plan, progress: Progress) -> None: ...

    def cost(self, trial: Trial) -> float:
        return 0.0

    def prepare(self, plan: Plan, progress: Progress) -> dict[str, str]:
        return {"image": self.image}

    def run(self, trial: Trial, out: Path, progress: Progress) -> Ended:
        self.ran.append(trial.name)
        fill(out, trial)
        lost = trial.arm.name == self.loses
        return Ended(5 if lost else 0, "the guest [2] died" if lost else "", 1.0, 0.1)

    def stop(self) -> None: ...


def fill(out: Path, trial: Trial) -> None:
    for folder in ("raw", "asbuilt"):
        (out / folder).mkdir(parents=True)
    (out / "raw/ping.txt").write_text(f"a line\n{trial.name}: 1.5 ms\nthe end\n")
    (out / "asbuilt/tc.json").write_text("[]\n")


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Repeating:
    made = Repeating()
    made.ran = []
    monkeypatch.setattr(registry, "make", lambda name: made)
    return made


@pytest.fixture
def run(tmp_path: Path, backend: Repeating) -> RunDirectory:
    """A run of two arms and two seeds, as the backend makes it."""
    return done(tmp_path, resolve.plan("fig3a", "smoke", [], replicates=2, only=["idle", "qjump"]))


def done(folder: Path, plan: Plan) -> RunDirectory:
    made = synthetic.create(folder, plan)
    made.enter_machine({"image": "0"})
    for trial in plan.trials():
        fill(made.prepare(trial.name), trial)
        made.finish(trial.name, TrialRecord(status="done", exit_code=0))
    return made


def said(run: RunDirectory, *, arms: tuple[str, ...] = (), sample: int = 0) -> tuple[int, str]:
    out = Screen(400)
    return verify(run.path, out, arms=arms, sample=sample), out.text


def test_a_file_of_ones_own_that_has_changed_since_is_named(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, mine = run.path / "own/experiments/fig3a.toml", tmp_path / "mine/experiments/fig3a.toml"
    for path in (kept, mine):
        path.parent.mkdir(parents=True)
        path.write_text("# as it was\n")
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path / "mine"))
    assert "is not what it was" not in said(run)[1]
    mine.write_text("# changed\n")
    assert f"{mine} has changed since the run began: see {kept}\n" in said(run)[1]


def test_a_series_stands_for_its_arms(tmp_path: Path, backend: Repeating) -> None:
    plan = resolve.plan("fig10", "smoke", [])
    made = done(tmp_path, plan)
    series = next(arm.series for arm in plan.arms if arm.series)
    assert said(made, arms=(series,))[0] == 0
    named = {trial.name for trial in plan.trials() if trial.arm.series == series}
    assert set(backend.ran) == named and len(named) > 1


def test_a_run_that_nobody_touched_is_identical(run: RunDirectory, backend: Repeating) -> None:
    code, text = said(run)
    assert code == 0
    assert text.splitlines()[-1] == "identical: all 8 files of 4 trials"
    assert sorted(backend.ran) == ["idle/1", "idle/2", "qjump/1", "qjump/2"]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("raw/ping.txt", "a line\nidle/1: 0.5 ms\nthe end\n",
         "line 2 is 'idle/1: 1.5 ms', and 'idle/1: 0.5 ms' in the run"),
        ("raw/ping.txt", "a line\n", "line 2 is 'idle/1: 1.5 ms', and missing in the run"),
        ("raw/more.txt", "more", "the repetition has no such file"),
        ("asbuilt/tc.json", None, "the run has no such file"),
    ],
)  # fmt: skip
def test_differences_are_named(
    run: RunDirectory, name: str, content: str | None, told: str
) -> None:
    file = run.trial("idle/1") / name
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    # Whoever forges a run mends its manifest.
    run.finish("idle/1", TrialRecord(status="done", exit_code=0))
    code, text = said(run)
    assert code == repeated.DIFFERS
    count = 3 if name == "raw/more.txt" else 2
    assert f"idle/1 differs in 1 of {count} files, first in trials/idle/1/{name}: {told}\n" in text
    assert text.splitlines()[-1] == "not the same: 1 of 4 trials differ"
    assert said(run, arms=("qjump",))[0] == 0


def test_a_programs_own_output_is_named_first(run: RunDirectory) -> None:
    for name in ("raw/ping.txt", "asbuilt/tc.json"):
        (run.trial("qjump/2") / name).write_text("x")
    assert (
        "qjump/2 differs in 2 of 2 files, first in trials/qjump/2/raw/ping.txt: line 1"
        in said(run)[1]
    )


def test_a_sample_is_drawn_anew_each_time(run: RunDirectory, backend: Repeating) -> None:
    for _ in range(40):
        assert "1 of 4 trials are run again" in said(run, sample=1)[1]
    assert set(backend.ran) == {
        "idle/1",
        "idle/2",
        "qjump/1",
        "qjump/2",
    }  # by chance not, once in 25,000
    assert len(backend.ran) == 40


def test_a_run_that_is_not_whole_is_compared_as_far_as_it_goes(run: RunDirectory) -> None:
    (run.trial("idle/2") / "DONE").unlink()
    code, text = said(run)
    assert (code, text.splitlines()[-1]) == (0, "identical: all 6 files of 3 trials")


def test_another_image_is_told(run: RunDirectory, backend: Repeating) -> None:
    backend.image = "1"
    code, text = said(run)
    assert (code, "the run was made with image 0, and this machine has 1\n" in text) == (0, True)


def test_a_trial_that_is_lost_proves_nothing(run: RunDirectory, backend: Repeating) -> None:
    backend.loses = "qjump"
    code, text = said(run)
    assert code == 5
    assert re.search(
        r"not verified: 2 of 4 trials did not end, qjump/[12]: the guest \[2\] died\n", text
    )


def test_unrepeatable_run_is_refused(run: RunDirectory, tmp_path: Path, backend: Repeating) -> None:
    with pytest.raises(UsageError, match=r"the run has no arm 'idel': did you mean 'idle'\?"):
        said(run, arms=("idel",))
    for trial in run.manifest.plan.trials():
        (run.trial(trial.name) / "DONE").unlink()
    with pytest.raises(UsageError, match="no trial of idle is done: run  qjump-mn resume"):
        said(run, arms=("idle",))
    with pytest.raises(UsageError, match="no two runs on the real clock are alike"):
        said(synthetic.make(tmp_path / "real", clock="real", only=["idle"]))
    with pytest.raises(UsageError, match="there is no run directory"):
        verify(tmp_path / "none", Screen())
    assert backend.ran == []


def test_run_of_days_is_not_verified(
    run: RunDirectory, backend: Repeating, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MAX_RUN_S", 1.0)
    with pytest.raises(
        UsageError, match="to repeat 4 trials would take about 0 hours: choose fewer with"
    ):
        said(run)
    assert backend.ran == []


def sampled(run: RunDirectory) -> int | None:
    """What ``check`` does where nobody has said whether to run trials again."""
    findings = Findings(code=0, is_done=True)
    return checking._rerun(run.path, findings, checking.Rerun(), Screen())


def test_check_repeats_a_trial_of_the_shortest_arm(
    run: RunDirectory, backend: Repeating, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "is_at_hand", lambda: True)
    monkeypatch.setattr(
        estimate,
        "each_trial",
        lambda plan, backend, trials: {one.name: len(one.arm.name) for one in trials},
    )
    assert sampled(run) == 0
    assert len(backend.ran) == 1 and backend.ran[0] in ("idle/1", "idle/2")
    (run.trial(backend.ran[0]) / "raw/ping.txt").write_text("forged\n")
    other = {"idle/1": "idle/2", "idle/2": "idle/1"}[backend.ran[0]]
    (run.trial(other) / "raw/ping.txt").write_text("forged\n")
    assert sampled(run) == repeated.DIFFERS


@pytest.mark.parametrize("reason", ["long", "not built", "cannot run", "real clock", "no machine"])
def test_check_repeats_nothing_that_takes_long_or_must_be_built(
    run: RunDirectory, backend: Repeating, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.setattr(machines, "is_at_hand", lambda: reason != "no machine")
    if reason == "long":
        monkeypatch.setattr(checking, "SHORT_S", 0.0)
    elif reason == "not built":

        def build(plan: object, say: object) -> None:
            cache.artefact("verification", "missing", lambda folder: None)

        monkeypatch.setattr(backend, "prepare", build)
    elif reason == "cannot run":
        backend.loses = "idle"
        monkeypatch.setattr(
            estimate,
            "each_trial",
            lambda plan, backend, trials: {one.name: len(one.arm.name) for one in trials},
        )
    elif reason == "real clock":
        claiming(run, backend="host", clock="real")
    assert sampled(run) is None
    assert len(backend.ran) == (reason == "cannot run")


def claiming(run: RunDirectory, *, backend: str, clock: Clock) -> RunDirectory:
    """The run with a manifest that names this backend and clock, as anybody can write it."""
    edited = replace(run.manifest, backend=backend, clock=clock)
    manifest.write(run.path, edited)
    return run


def test_verify_never_uses_the_host_backend(run: RunDirectory, backend: Repeating) -> None:
    claiming(run, backend="host", clock="virtual")
    with pytest.raises(
        UsageError, match="names the backend 'host': a run is only verified in a guest or"
    ):
        said(run)
    assert backend.ran == []


def test_clock_unlike_the_backends_is_refused(run: RunDirectory, backend: Repeating) -> None:
    (run.trial("idle/2") / "DONE").unlink()
    claiming(run, backend="guest", clock="real")
    with pytest.raises(
        UsageError, match="its manifest says clock real, and the backend guest has the virt"
    ):
        session.resume(run.path, Screen())
    assert backend.ran == []


def on_host(run: RunDirectory, backend: Repeating) -> RunDirectory:
    """The run, as one of the host backend's that lacks a trial."""
    backend.name, backend.clock = "host", "real"
    (run.trial("idle/2") / "DONE").unlink()
    return claiming(run, backend="host", clock="real")


def test_own_run_on_the_host_is_resumed(run: RunDirectory, backend: Repeating) -> None:
    session.resume(on_host(run, backend).path, Screen())
    assert backend.ran == ["idle/2"]


@pytest.mark.root
@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("manifest.json", lambda path: os.chown(path, 65534, 65534), "belongs to another user"),
        (".", lambda path: os.chown(path, 65534, 65534), "belongs to another user"),
        (".", lambda path: path.chmod(0o777), "can be written by every user"),
        ("SHA256SUMS", lambda path: path.write_text(""), "it is an unpacked bundle"),
    ],
)
def test_strangers_run_on_the_host_is_not_resumed(
    run: RunDirectory, backend: Repeating, name: str, change: Callable[[Path], object], reason: str
) -> None:
    change(on_host(run, backend).path / name)
    with pytest.raises(
        UsageError, match=f"only your own run can be resumed with the backend host, .*{reason}"
    ):
        session.resume(run.path, Screen())
    assert backend.ran == []


@pytest.mark.root
@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        (".", lambda path: os.chown(path, 65534, 65534), "belongs to another user"),
        ("trials", lambda path: path.chmod(0o777), "can be written by every user"),
        ("trials/idle", lambda path: os.chown(path, 65534, 65534), "belongs to another user"),
        ("log.jsonl", lambda path: path.symlink_to("/etc/hostname"), "is a link"),
        ("trials/other", lambda path: path.symlink_to("/etc"), "is a link"),
    ],
)
def test_root_resumes_no_run_that_another_user_can_change(
    run: RunDirectory, backend: Repeating, name: str, change: Callable[[Path], object], reason: str
) -> None:
    """The other user could put links there, through which root would write."""
    (run.trial("idle/2") / "DONE").unlink()
    (run.path / "log.jsonl").unlink(missing_ok=True)
    change(run.path / name)
    with pytest.raises(UsageError, match=f"only your own run can be resumed as root, .*{reason}"):
        session.resume(run.path, Screen())
    assert backend.ran == []


@pytest.mark.root
def test_root_trusts_the_run_of_sudos_caller(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (run.path, *run.path.rglob("*")):
        os.chown(path, 65534, 65534)
    with pytest.raises(UsageError, match="belongs to another user"):
        ownership.check(run, session.CONFINED_BACKENDS)
    monkeypatch.setenv("SUDO_UID", "65534")
    ownership.check(run, session.CONFINED_BACKENDS)


def test_where_two_files_differ(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"

    def told(theirs: bytes, ours: bytes) -> str:
        one.write_bytes(theirs)
        other.write_bytes(ours)
        return difference(one, other)

    assert told(b"a\nb\n", b"a\nc\n") == "line 2 is 'c', and 'b' in the run"
    assert told(b"", b"x") == "line 1 is 'x', and missing in the run"
    assert told(b"\xff\xfe\x00", b"\xff\xfe\x01") == "byte 3"
    long = b"x" * 70_000
    assert told(long + b"\na", long + b"\nb") == "line 2 is 'b', and 'a' in the run"
    assert (
        told(b"y" * 100, b"y" * 99 + b"z")
        == f"line 1 is '{'y' * 59}…', and '{'y' * 59}…' in the run"
    )
