"""A command's run on the command line: verify, compare, bundle and check take it, others refuse."""

from __future__ import annotations

import io
import tarfile
import threading
import time
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from qjump_mn import cache
from qjump_mn.cli import command_comparison, repeated
from qjump_mn.cli.bundle import archive, checking, judge, writing
from qjump_mn.cli.bundle.judge import Findings
from qjump_mn.cli.run_command import options_of
from qjump_mn.cli.verification import verify
from qjump_mn.errors import UsageError
from qjump_mn.guest import Stop
from qjump_mn.results import contents, manifest
from qjump_mn.results.command_directory import CommandDirectory
from qjump_mn.results.manifest import TrialRecord
from qjump_mn.toolbox import machines
from tests.support import commands, synthetic
from tests.support.commands import Runner
from tests.support.processes import cli
from tests.support.screen import Screen

DONE = TrialRecord(status="done", exit_code=0, virtual_s=2.5, wall_s=1.5)


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    return commands.stand_in(monkeypatch)


@pytest.fixture
def run(tmp_path: Path, runner: Runner) -> CommandDirectory:
    return commands.make(tmp_path / "results", seeds=(1, 2, 3))


def said(run: CommandDirectory, *, arms: tuple[str, ...] = (), sample: int = 0) -> tuple[int, str]:
    out = Screen(400)
    return verify(run.path, out, arms=arms, sample=sample), out.text


def test_commands_run_that_nobody_touched_is_identical(
    run: CommandDirectory, runner: Runner
) -> None:
    code, text = said(run)
    assert code == 0
    assert text.splitlines() == [
        "python3 my.py --n 4: 3 of 3 seeds run again",
        "identical: all 15 files of 3 trials",
    ]
    assert runner.ran == [1, 2, 3]


def test_another_output_exit_code_and_image_are_named(
    run: CommandDirectory, runner: Runner
) -> None:
    (run.raw("mn/2") / "output").write_text("hello\nforged\nthe end\n")
    (run.raw("mn/2") / "files/result.csv").write_text("forged\n")
    run.finish("mn/2", DONE)
    run.finish("mn/3", replace(DONE, exit_code=1))
    runner.image = "2" * 64
    code, text = said(run)
    assert code == repeated.DIFFERS
    assert text.splitlines()[1:] == [
        "mn/2 differs in 2 of 5 files, first in trials/mn/2/raw/output: line 2 is 'seed 2', and "
        "'forged' in the run",
        "mn/3 differs in its exit code: 0, and 1 in the run",
        f"the run was made with image {'1' * 12}, and this machine has {'2' * 12}",
        "not the same: 2 of 3 trials differ",
    ]


def test_some_of_the_seeds_are_drawn_and_arms_are_refused(
    run: CommandDirectory, runner: Runner
) -> None:
    for _ in range(40):
        assert "1 of 3 seeds run again" in said(run, sample=1)[1]
    assert set(runner.ran) == {1, 2, 3}  # by chance not, once in 3,000,000
    with pytest.raises(UsageError, match="--arms: a command has none"):
        said(run, arms=("idle",))


def test_lost_seed_proves_nothing(run: CommandDirectory, runner: Runner) -> None:
    runner.loses = 2
    code, text = said(run)
    assert (code, text.splitlines()[-1]) == (
        5,
        "not verified: 1 of 3 trials did not end, mn/2: the guest [2] died",
    )


def test_commands_run_that_cannot_be_repeated_is_refused(
    run: CommandDirectory, runner: Runner
) -> None:
    (run.own / "folder.tar").write_bytes(b"another")
    with pytest.raises(UsageError, match=r"own/folder.tar is not what the run began with: run the"):
        said(run)
    for seed in (1, 2, 3):
        run.unmark(f"mn/{seed}")
    with pytest.raises(UsageError, match="no seed is done: run the command again"):
        said(run)
    assert runner.ran == []


def compared(*runs: CommandDirectory) -> list[str]:
    out = Screen(400)
    command_comparison.show(command_comparison.read([run.path for run in runs]), out)
    return [line.rstrip() for line in out.text.splitlines()]


def test_runs_of_one_command_are_compared_seed_by_seed(
    run: CommandDirectory, tmp_path: Path
) -> None:
    other = commands.make(tmp_path / "other", seeds=(2, 3, 4))
    (other.raw("mn/3") / "files/result.csv").write_text("seed\n4\n")
    other.finish("mn/3", replace(DONE, exit_code=1, virtual_s=3.25))
    assert compared(run, other) == [
        f"A  {run.path}: python3 my.py --n 4, seeds 1, 2, 3",
        f"B  {other.path}: python3 my.py --n 4, seeds 2, 3, 4",
        "B has seeds 2, 3, 4, A seeds 1, 2, 3",
        "mn/2: identical in A and B, all 3 files",
        "mn/3: B differs from A in 1 of 3 files, first in raw/files/result.csv: line 2 is '4', and "
        "'3' in A",
        "",
        "trial  value        A     B",
        "mn/2   exit code    0     0",
        "       virtual s  2.5   2.5",
        "mn/3   exit code    0     1",
        "       virtual s  2.5  3.25",
    ]


def test_what_differs_in_the_commands_is_named(run: CommandDirectory, tmp_path: Path) -> None:
    other = commands.make(
        tmp_path / "other",
        files=commands.SCRIPT | {"lib/topology.py": b"HOSTS = 3\n", "new.py": b""},
        own={"typed": b"pingall\n", "packages.lock": b"frr 1\n", "mininet.tar": b"another"},
        argv=("python3", "my.py", "--n", "5"),
        link="qjwire",
        deadline_ns=10**9,
        image="2" * 64,
    )
    third = commands.make(tmp_path / "third", own={"packages.lock": b"frr 2\n"})
    fourth = commands.make(tmp_path / "fourth")
    lines = compared(other, third, run, fourth)
    assert lines[4] == f"B was made with image {'1' * 12}, A with {'2' * 12}"
    assert lines[5] == "B ran  python3 my.py --n 4, A  python3 my.py --n 5"
    assert lines[6] == "B has link of Mininet, A link qjwire"
    assert lines[7] == "B has deadline 600 s, A deadline 1 s"
    assert lines[8] == (
        "B's folder differs in 2 of 3 files, first in lib/topology.py, which differs"
    )
    assert lines[9] == (
        "B has other packages in own/packages.lock: line 1 is 'frr 2', and 'frr 1' in A"
    )
    assert lines[10] == "B has other typed text in own/typed: B has no such file"
    assert lines[11].startswith("B ran with Mininet the machine's, A with ")
    assert compared(run, fourth)[2] == "B has seed 1, A seeds 1, 2, 3"
    assert compared(fourth, commands.make(tmp_path / "fifth"))[2] == "B has the command of A"


def sparse(run: CommandDirectory) -> None:
    """Put a tar file in own/ that says it has an exabyte of zeros."""
    with tarfile.open(run.own / "folder.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        entry = tarfile.TarInfo("large")
        entry.pax_headers = {
            "GNU.sparse.major": "0",
            "GNU.sparse.minor": "1",
            "GNU.sparse.map": "0,1",
            "GNU.sparse.size": str(1 << 60),
        }
        entry.size = 1
        tar.addfile(entry, io.BytesIO(b"1"))


def test_strangers_folder_is_compared_with_care(run: CommandDirectory, tmp_path: Path) -> None:
    other = commands.make(tmp_path / "other", files={"more.py": b""})
    assert (
        "B's folder differs in 3 of 3 files, first in lib/topology.py, which only A has"
        in compared(run, other)
    )
    assert (
        "B's folder differs in 3 of 3 files, first in lib/topology.py, which A has not"
        in compared(other, run)
    )
    sparse(other)
    assert "B's folder is another, and cannot be read: large is a sparse file" in compared(
        run, other
    )
    (other.own / "folder.tar").write_bytes(b"no tar \x1b[2J")
    assert any("is another, and cannot be read: " in line for line in compared(run, other))


def test_run_beside_an_experiments_and_without_a_common_seed_is_refused(
    run: CommandDirectory, tmp_path: Path
) -> None:
    experiment = synthetic.make(tmp_path / "experiment", only=["idle"])
    for paths in ([run.path, experiment.path], [experiment.path, run.path]):
        with pytest.raises(
            UsageError, match=r"is the run of a command and .*: compare runs of one"
        ):
            command_comparison.read(paths)
    assert command_comparison.read([experiment.path, experiment.path]) == []
    with pytest.raises(UsageError, match="no seed is done in all of them"):
        compared(run, commands.make(tmp_path / "other", seeds=(4,)))
    with pytest.raises(UsageError, match="compare needs two runs or more"):
        compared(run)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["report", "RUN"], "is the run of a command, not of an experiment"),
        (["resume", "RUN"], "is the run of a command, not of an experiment"),
        (["compare", "RUN", "RUN", "--figure", "a.png"], "--figure draws latencies"),
        (["verify", "RUN", "--arms", "idle"], "--arms: a command has none"),
    ],
)
def test_commands_that_do_not_take_it_end_with_one_sentence(
    run: CommandDirectory, tmp_path: Path, words: list[str], told: str
) -> None:
    argv = [str(run.path) if word == "RUN" else word for word in words]
    done = cli(*argv, cwd=tmp_path)
    assert done.returncode == 2 and told in done.stderr, done
    assert len(done.stderr.splitlines()) == 1


def bundled(run: CommandDirectory, tmp_path: Path) -> Path:
    return writing.write(run.path, tmp_path)


def test_bundle_has_what_went_in_and_what_came_out(run: CommandDirectory, tmp_path: Path) -> None:
    (run.path / "notes.md").write_text("## Critique\n")
    run.log("began")
    path = bundled(run, tmp_path)
    assert path.name == f"{run.path.name}.qjump.zip"
    there = tmp_path / "there"
    there.mkdir()
    archive.unpack(path, there)
    names = {file.relative_to(there).as_posix() for file in there.rglob("*") if file.is_file()}
    of_trials = {
        f"trials/mn/{seed}/{name}"
        for seed in (1, 2, 3)
        for name in ("DONE", "agent.json", "console.log", *(f"raw/{n}" for n in commands.output(1)))
    }
    of_run = {"manifest.json", "log.jsonl", "notes.md", "own/folder.tar", "SHA256SUMS"}
    assert names == of_trials | of_run
    again = writing.write(run.path, tmp_path / "again.zip")
    assert again.read_bytes() == path.read_bytes()
    assert said(CommandDirectory(there))[0] == 0


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (
            ["#1.csv"],
            r"a bundle cannot hold 'trials/mn/1/raw/files/#1.csv': names have at most 300",
        ),
        ([".cache/x"], r"a bundle cannot hold 'trials/mn/1/raw/files/.cache/x': names"),
        (["Ü"], r"a bundle cannot hold 'trials/mn/1/raw/files/Ü': names"),
        (["a" * 200 + "/" + "b" * 200], r"names have at most 300 characters"),
        (["Log", "log"], r"cannot hold both '\S*/Log' and '\S*/log': some disks ignore case"),
    ],
)
def test_files_that_no_bundle_holds_are_named(
    tmp_path: Path, runner: Runner, names: list[str], told: str
) -> None:
    def left(seed: int) -> dict[str, bytes]:
        return commands.output(seed) | dict.fromkeys((f"files/{name}" for name in names), b"x")

    run = commands.make(tmp_path / "results", left=left)
    with pytest.raises(UsageError, match=told):
        bundled(run, tmp_path)
    assert list(tmp_path.glob("*.zip")) == []
    runner.left = left
    assert said(run)[0] == 0


def test_changed_commands_run_is_not_bundled(run: CommandDirectory, tmp_path: Path) -> None:
    (run.raw("mn/1") / "output").write_text("forged\n")
    with pytest.raises(UsageError, match=r"is not as its trials left it: trials/mn/1/raw/output"):
        bundled(run, tmp_path)
    run.finish("mn/1", DONE)
    run.unmark("mn/2")
    with pytest.raises(UsageError, match=r"trials/mn/2 has no DONE, .*: run the command again"):
        bundled(run, tmp_path)
    run.finish("mn/2", DONE)
    (run.own / "more").write_text("more")
    with pytest.raises(UsageError, match=r"is not as it began: own/more does not belong to the ru"):
        bundled(run, tmp_path)


def judged(path: Path, tmp_path: Path) -> Findings:
    """What the judge finds, in this process, which has the stand-in."""
    folder = tmp_path / "unpacked"
    folder.mkdir()
    return judge.judge(path, folder, options_of)


def lines(findings: Findings) -> list[str]:
    return [line for part in findings.parts for line in part.lines()]


def test_good_bundle_of_a_command_is_checked(run: CommandDirectory, tmp_path: Path) -> None:
    findings = judged(bundled(run, tmp_path), tmp_path)
    assert findings.about == (
        "a command, seeds 1, 2, 3; run on 2026-01-02T03:04:05Z by qjump-mn 0.1.0 on machine "
        "111111111111, backend guest: qjump-mn mn my.py --n 4"
    )
    assert lines(findings) == [
        "files: all 15 are those of the manifest",
        "jobs: those of the command",
        "seeds: all 3 are done",
    ]
    assert (findings.code, findings.is_done) == (0, True)


def packed(run: CommandDirectory, tmp_path: Path) -> Path:
    """A bundle of the run as it is, hashes mended, as who forges one makes it."""
    files: dict[str, Path | bytes] = {
        path.relative_to(run.path).as_posix(): path
        for path in run.path.rglob("*")
        if path.is_file()
    }
    archive.write(tmp_path / "forged.zip", files)
    return tmp_path / "forged.zip"


def test_forged_bundle_of_a_command_is_seen(run: CommandDirectory, tmp_path: Path) -> None:
    (run.raw("mn/1") / "output").write_text("forged\n")
    run.finish("mn/1", DONE)
    (run.trial("mn/2") / "agent.json").write_bytes((run.trial("mn/3") / "agent.json").read_bytes())
    run.finish("mn/2", DONE)
    run.finish("mn/3", TrialRecord(status="lost", exit_code=5, message="the guest died"))
    (run.own / "typed").write_text("pingall\n")
    command = replace(run.manifest.command, seeds=(1, 2, 3, 4), argv=("true",))
    manifest.write(run.path, replace(run.manifest, command=command))
    findings = judged(packed(run, tmp_path), tmp_path)
    told = lines(findings)
    assert findings.code == 1
    assert told[:2] == [
        "files: the command is not the one that was run",
        "files: own/typed does not belong to the run",
    ]
    assert (
        "jobs: the guest of mn/1 ran another job than the command's; or another version of qjump-mn"
        " ran it" in told
    )
    assert "jobs: trials/mn/1/raw/output is not what the guest wrote" in told
    assert told[-2:] == ["seeds: mn/3 is lost: the guest died", "seeds: mn/4 is not run"]


def test_copied_seed_and_changed_folder_are_seen(run: CommandDirectory, tmp_path: Path) -> None:
    for name in ("agent.json", "raw/output", "raw/files/result.csv"):
        (run.trial("mn/2") / name).write_bytes((run.trial("mn/1") / name).read_bytes())
    run.finish("mn/2", DONE)
    told = lines(judged(packed(run, tmp_path), tmp_path))
    assert told[1] == (
        "jobs: the guest of mn/2 ran the job of mn/1; or another version of qjump-mn ran it"
    )
    (run.own / "folder.tar").unlink()
    (tmp_path / "more").mkdir()
    told = lines(judged(packed(run, tmp_path), tmp_path / "more"))
    assert told[0] == "files: own/folder.tar is gone"
    assert told[1].startswith("jobs: the command has no jobs: FileNotFoundError: ")


def test_command_is_not_checked_against_an_assignment(
    run: CommandDirectory, tmp_path: Path
) -> None:
    assigned = tmp_path / "assignment.toml"
    assigned.write_text('experiment = "fig3a"\n')
    there = tmp_path / "there"
    there.mkdir()
    with pytest.raises(UsageError, match="is the run of a command, and an assignment is an exper"):
        judge.judge(bundled(run, tmp_path), there, options_of, assigned)


def test_judge_of_a_command_is_a_process_with_limits(run: CommandDirectory, tmp_path: Path) -> None:
    """It names the run as it reads it, where there is a terminal's command in it."""
    path = bundled(run, tmp_path)
    content = (run.path / manifest.NAME).read_bytes().replace(b'"my.py"', b'"my.py\\u001b[2J"')
    (run.path / manifest.NAME).write_bytes(content)
    checked = checking.check(packed(run, tmp_path), Screen())
    assert checked.code == 2 and "has control characters" in str(checked.error)
    assert path.is_file()


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge in this process, which has the stand-in."""
    monkeypatch.setattr(
        checking, "_findings", lambda path, folder, assigned: judge.judge(path, folder, options_of)
    )
    monkeypatch.setattr(machines, "is_at_hand", lambda: True)


@pytest.mark.usefixtures("in_process")
def test_check_repeats_a_command(run: CommandDirectory, tmp_path: Path, runner: Runner) -> None:
    path = bundled(run, tmp_path)

    def check(rerun: checking.Rerun) -> tuple[int, str, bool]:
        out = Screen(400)
        made = checking.check(path, out, rerun=rerun)
        return made.code, out.text.splitlines()[-1], made.is_proved

    assert check(checking.NO_RERUN) == (0, checking.NOT_PROVED, False)
    assert runner.ran == []
    assert check(checking.Rerun()) == (0, "all is well", True)
    assert len(runner.ran) == 1
    assert check(checking.Rerun(wanted=True)) == (0, "all is well", True)
    assert runner.ran[1:] == [1, 2, 3]
    assert check(checking.Rerun(wanted=True, sample=2)) == (0, "all is well", True)
    assert len(runner.ran) == 6
    runner.left = lambda seed: commands.output(seed) | {"output": b"another\n"}
    assert check(checking.Rerun()) == (1, "not all is well: see above", False)
    runner.left, runner.loses = commands.output, 2
    assert check(checking.Rerun(wanted=True)) == (5, "not all is well: see above", False)
    made = checking.check(path, Screen(), rerun=checking.Rerun(wanted=True, arms=("idle",)))
    assert made.code == 2 and "--arms: a command has none" in str(made.error)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("reason", ["long", "says nothing", "not built", "no machine", "lost"])
def test_check_repeats_no_command_that_takes_long_or_must_be_built(
    run: CommandDirectory,
    tmp_path: Path,
    runner: Runner,
    monkeypatch: pytest.MonkeyPatch,
    reason: str,
) -> None:
    if reason in ("long", "says nothing"):
        for seed in (1, 2, 3):
            run.finish(f"mn/{seed}", replace(DONE, wall_s=20.0 if reason == "long" else None))
    elif reason == "no machine":
        monkeypatch.setattr(machines, "is_at_hand", lambda: False)
    elif reason == "not built":

        def build(*_: object) -> None:
            cache.artefact("commands", "missing", lambda folder: None)

        monkeypatch.setattr(runner, "prepare", build)
    else:
        run = commands.make(tmp_path / "one")
        runner.loses = 1
    out = Screen()
    made = checking.check(bundled(run, tmp_path), out, rerun=checking.Rerun())
    assert (made.code, out.text.splitlines()[-1]) == (0, checking.NOT_PROVED)
    assert runner.ran == [1] * (reason == "lost")


@pytest.mark.usefixtures("in_process")
def test_command_that_takes_longer_than_its_run_says_is_ended(
    run: CommandDirectory, tmp_path: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "SHORT_S", 2.0)
    monkeypatch.setattr(checking, "WAIT_FACTOR", 0.1)
    stopped = threading.Event()

    def spin(*_: object, stop: Stop, **__: object) -> TrialRecord:
        if stop.event.wait(60):
            stopped.set()
        return TrialRecord(status="lost", exit_code=5, message="ended")

    monkeypatch.setattr(runner, "trial", spin)
    began = time.monotonic()
    assert checking.check(bundled(run, tmp_path), Screen(), rerun=checking.Rerun()).code == 0
    assert stopped.is_set() and time.monotonic() - began < 30


def test_manifest_of_a_command_is_json_as_others(run: CommandDirectory) -> None:
    content = (run.path / manifest.NAME).read_bytes()
    told = msgspec.json.decode(content, type=manifest.CommandManifest)
    manifest.write(run.path, told)
    assert (run.path / manifest.NAME).read_bytes() == content
    assert set(told.files) == set(contents.hashes(run.path))
