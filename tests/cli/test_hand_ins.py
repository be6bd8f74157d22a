"""``check`` of what strangers hand in: forged bundles meet their limits, a class gives a table, and
root's half leaves everything to an ordinary user."""

from __future__ import annotations

import ast
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qjump_mn import resolve
from qjump_mn.analysis import pipeline
from qjump_mn.cli.bundle import archive, as_root, checking, hand_ins, writing
from qjump_mn.errors import InvalidRunError, MachineError, UsageError
from qjump_mn.process import unprivileged
from qjump_mn.process.caller import Caller
from qjump_mn.results import directory
from qjump_mn.results.directory import RunDirectory
from tests.support import synthetic
from tests.support.processes import execute
from tests.support.screen import Screen
from tests.support.user_files import Write

CHECKOUT = Path(__file__).resolve().parents[2]
COMMAND = (CHECKOUT / "examples/experiments/command.toml").read_text()
NUMBER = r"regex = 'time=([0-9.]+) ms'"
BACKTRACKING = r"regex = '((?:\d+)+)x'"
"""A time that doubles with every digit."""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run of two arms that was judged."""
    run = synthetic.make(tmp_path_factory.mktemp("judged"), only=["idle", "contended"])
    pipeline.analyse(run.path)
    return run


@pytest.fixture(scope="module")
def good(judged: RunDirectory) -> Path:
    """Its bundle."""
    return writing.write(judged.path, judged.path.parent / "good.zip")


def packed(run: Path, target: Path) -> Path:
    """A bundle of all that is in the folder, whatever it is; its hashes agree."""
    archive.write(
        target,
        {path.relative_to(run).as_posix(): path for path in run.rglob("*") if path.is_file()},
    )
    return target


def forged(judged: RunDirectory, folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Its bundle with another plan in the manifest."""
    run = shutil.copytree(judged.path, folder / "forged")
    told = json.loads((run / "manifest.json").read_text())
    change(told["plan"]["run"])
    (run / "manifest.json").write_text(json.dumps(told))
    return packed(run, folder / "forged.zip")


def checked(path: Path) -> checking.Checked:
    return checking.check(path, Screen())


def test_plan_of_two_million_seeds_is_refused(judged: RunDirectory, tmp_path: Path) -> None:
    path = forged(judged, tmp_path, lambda run: run.update(seeds=list(range(1, 2_000_001))))
    assert path.stat().st_size < 6 << 20
    began = time.monotonic()
    done = checked(path)
    assert done.problem == (
        "forged.zip/manifest.json: the plan has 4000000 trials: use 100000 at most"
    )
    assert (done.code, time.monotonic() - began < checking.TIME_S) == (2, True)


def test_plan_of_days_is_judged_and_not_run_again(judged: RunDirectory, tmp_path: Path) -> None:
    path = forged(judged, tmp_path, lambda run: run.update(duration_ns=10 * 86400 * 10**9))
    done = checking.check(path, Screen(), rerun=checking.Rerun())
    assert (done.code, done.is_proved) == (4, False), done


def test_backtracking_meets_the_time_limit(
    tmp_path: Path, own: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert COMMAND.count(NUMBER) == 1
    own("experiments/command.toml", COMMAND.replace(NUMBER, BACKTRACKING))
    run = synthetic.create(tmp_path / "runs", resolve.plan("command", "course", []))
    for trial in run.manifest.plan.trials():
        synthetic.write_trial(run, trial)
        for workload in trial.arm.workloads:
            for flow in workload.flows:
                name = f"{workload.name}-{flow[0]}-{flow[1]}.command.txt"
                (run.raw(trial.name) / name).write_text("1" * 60)
        run.finish(trial.name, synthetic.DONE)
    monkeypatch.setattr(checking, "TIME_S", 12)
    done = checked(packed(run.path, tmp_path / "forged.zip"))
    assert done.problem == "the run cannot be judged within 12 s of processor time", done
    assert (done.code, done.verdict) == (4, "not believable")


def test_more_memory_than_judging_may_take_is_a_sentence(
    judged: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(shutil.copytree(judged.path, tmp_path / "run"))
    for file in run.raw("contended/1").glob("ping*"):
        with file.open("ab") as made:
            made.truncate(500 << 20)
    run.finish("contended/1", synthetic.DONE)
    monkeypatch.setattr(checking, "MEMORY_BYTES", 1 << 30)
    done = checked(packed(run.path, tmp_path / "forged.zip"))
    assert done.problem == "the run cannot be judged within 1024 MiB of memory", done
    assert done.code == InvalidRunError.exit_code


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder that every user may read, unlike pytest's, with the code of this checkout."""
    with tempfile.TemporaryDirectory(prefix="qjump-mn-tests-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "checkout").mkdir()
        folders = ("qjump_mn", "mininet-qos", "experiments", "schemes", "topologies", "plots")
        for path in CHECKOUT.iterdir():
            if path.is_file():
                shutil.copy(path, folder / "checkout")
            elif path.name in folders:
                skipped = shutil.ignore_patterns("__pycache__")
                to = folder / "checkout" / path.name
                shutil.copytree(path, to, symlinks=True, ignore=skipped)
        yield folder


def command(
    open_folder: Path, *words: str | Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """What ``qjump-mn`` of the copied checkout prints."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SUDO_")
    }
    return execute(
        [sys.executable, "-P", "-m", "qjump_mn.run", *map(str, words)],
        env={**environment, "PYTHONPATH": str(open_folder / "checkout"), **variables},
        cwd=open_folder,
    )


@pytest.mark.root
def test_root_without_sudo_leaves_a_bundle_to_nobody(good: Path, open_folder: Path) -> None:
    """pytest's folder is root's alone: the bundle is copied."""
    done = command(open_folder, "check", good, "--no-rerun")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, checking.NOT_PROVED), done


PROBE = """
import os, sys
if "qjump_mn.cli.bundle.judge" in sys.orig_argv or "qjump_mn.analysis" in sys.orig_argv:
    told = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
    told["net"] = os.readlink("/proc/self/ns/net")
    sys.stderr.write(str({name: told[name].split() for name in ("Uid", "Gid", "Groups", "CapBnd", "NoNewPrivs", "net")}))
    sys.stderr.flush()
    os._exit(9)
"""


@pytest.mark.root
@pytest.mark.parametrize("sudo", [{}, {"SUDO_UID": "12345", "SUDO_GID": "12346"}])
def test_judge_lacks_roots_rights(
    good: Path, open_folder: Path, tmp_path: Path, sudo: dict[str, str]
) -> None:
    probe = open_folder / f"probe{len(sudo)}"
    probe.mkdir()
    (probe / "sitecustomize.py").write_text(PROBE)
    paths = f"{probe}{os.pathsep}{open_folder / 'checkout'}"
    done = command(open_folder, "check", good, "--no-rerun", PYTHONPATH=paths, **sudo)
    user = unprivileged.user()
    ids = ["12345", "12346"] if sudo else [str(user.user), str(user.group)]
    told = ast.literal_eval(done.stderr.partition("}")[0] + "}")
    assert ([told["Uid"], told["Gid"]], told["Groups"]) == ([[one] * 4 for one in ids], []), done
    assert (told["CapBnd"], told["NoNewPrivs"]) == (["0" * 16], ["1"])
    if subprocess.run([*unprivileged.ISOLATION, "true"], capture_output=True).returncode == 0:
        assert told["net"] != [os.readlink("/proc/self/ns/net")]
    assert (done.returncode, "its judge ended with exit code 9" in done.stderr) == (5, True)


@pytest.mark.root
def test_checkout_that_only_root_can_read_is_copied_for_the_judge(
    good: Path, open_folder: Path
) -> None:
    for path in ("checkout", "checkout/qjump_mn"):
        (open_folder / path).chmod(0o700)
    (open_folder / "checkout/qjump_mn/run.py").chmod(0o600)
    try:
        done = command(open_folder, "check", good)
    finally:
        for path in ("checkout", "checkout/qjump_mn"):
            (open_folder / path).chmod(0o755)
        (open_folder / "checkout/qjump_mn/run.py").chmod(0o644)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "\nverdicts: judged again from the raw files, they are the bundle's\n" in done.stdout


@pytest.mark.root
def test_python_that_the_user_cannot_read_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(
        MachineError, match=rf"^nobody cannot read {tmp_path}/python, and root does"
    ):
        as_root.readable_checkout(unprivileged.user(), tmp_path / "checkout")
    assert not (tmp_path / "checkout").exists()


@pytest.mark.root
def test_root_copies_nothing_but_plain_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.zip")
    (tmp_path / "long.zip").write_bytes(b"x" * 100)
    for name in ("fifo", "long"):
        unprivileged.copy(tmp_path / f"{name}.zip", tmp_path / name, 10)
    assert (tmp_path / "fifo").is_dir() and (tmp_path / "long").read_bytes() == b"x" * 10


@pytest.mark.root
def test_class_of_root_is_a_table(good: Path, tmp_path: Path, open_folder: Path) -> None:
    """One that only root can read, one that is a pipe, one that is none, one that a file manager
    packed."""
    folder = tmp_path / "class"
    folder.mkdir()
    shutil.copy(good, folder / "a.zip")
    (folder / "a.zip").chmod(0o600)
    os.mkfifo(folder / "b.zip")
    (folder / "=c.zip").write_text("=1+1")
    (folder / "notes.txt").write_text("not handed in")
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(folder / "d.zip", "w") as new:
        for name in reversed(old.namelist()):
            new.writestr(f"mine (1)/{name}", old.read(name))
        new.writestr("__MACOSX/._mine (1)", b"litter")
    done = command(open_folder, "check", folder, "--no-rerun", "--table", tmp_path / "class.csv")
    assert done.returncode == 1, done
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()[-4:]]
    assert lines == [
        ["=c.zip", "not a bundle  =c.zip is not a bundle, or is damaged: File is not a zip file"],
        ["a.zip", "faults        copy: the same run as d.zip"],
        ["b.zip", "not a bundle  b.zip cannot be read: it is not a file"],
        ["d.zip", "faults        copy: the same run as a.zip"],
    ]
    rows = list(csv.reader((tmp_path / "class.csv").open()))
    assert [(row[0], *row[3:]) for row in rows] == [
        ("bundle", "exit code", "student"),
        ("'=c.zip", "2", ""),
        ("a.zip", "1", ""),
        ("b.zip", "2", ""),
        ("d.zip", "1", ""),
    ]


def test_copies_and_namesakes_of_a_class_are_named() -> None:
    def handed_in(name: str, times: str = "", student: str = "", code: int = 0) -> checking.Checked:
        return checking.Checked(Path(name), code, student=student, times=times)

    results = hand_ins._name_copies(
        [
            handed_in("a.zip", "monday", "alice"),
            handed_in("b.zip", "tuesday", "bob"),
            handed_in("c.zip", "monday", "alice"),
            handed_in("d.zip", "friday", " Bob", 4),
            handed_in("e.zip", "sunday", "eve"),
            handed_in("damaged.zip", code=2),
            handed_in("torn.zip", code=2),
        ]
    )
    assert [(result.path.name, result.code, result.problem) for result in results] == [
        ("a.zip", 1, "copy: the same run as c.zip"),
        ("b.zip", 1, "copy: the same --student as d.zip"),
        ("c.zip", 1, "copy: the same run as a.zip"),
        ("d.zip", 4, "copy: the same --student as b.zip"),
        ("e.zip", 0, ""),
        ("damaged.zip", 2, ""),
        ("torn.zip", 2, ""),
    ]


@pytest.fixture
def small_disk(open_folder: Path) -> Iterator[Path]:
    folder = open_folder / "small"
    folder.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=64k", "small", str(folder)]
    if subprocess.run(argv, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("mounting needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()


def test_full_disk_is_not_a_students_fault(
    tmp_path: Path, open_folder: Path, small_disk: Path
) -> None:
    folder = open_folder / "large"
    folder.mkdir()
    bundle = folder / "large.zip"
    archive.write(bundle, {"trials/idle/1/raw/large.txt": bytes(1 << 20), "manifest.json": b"{}"})
    sentence = (
        rf"the disk of {small_disk}/\S+ is full: make room there to unpack \S*large.zip, or .*\n"
    )
    done = command(open_folder, "check", bundle, TMPDIR=str(small_disk))
    assert done.returncode == 3, done
    assert re.fullmatch(f"qjump-mn: {sentence}", done.stderr)
    done = command(open_folder, "check", folder, TMPDIR=str(small_disk))
    assert done.returncode == 3, done
    assert re.fullmatch(f"large.zip  not checked  {sentence}", done.stdout.splitlines(True)[-1])


@pytest.mark.root
def test_report_is_made_as_the_runs_owner(judged: RunDirectory, open_folder: Path) -> None:
    run = RunDirectory(shutil.copytree(judged.path, open_folder / "run"))
    directory.hand_over(run.path, Caller(12345, 12346))
    (run.path / "report.md").unlink()
    done = command(open_folder, "report", run.path)
    status = (run.path / "report.md").stat()
    assert (done.returncode, status.st_uid, status.st_gid) == (0, 12345, 12346), done


def test_results_of_one_bundle_are_in_gradescopes_format(good: Path, tmp_path: Path) -> None:
    out = Screen()
    assert hand_ins.check(good, out, rerun=checking.NO_RERUN, table=tmp_path / "results.json") == 0
    told = json.loads((tmp_path / "results.json").read_text())
    assert told["output"] == "nothing found"
    assert {test["name"]: test["status"] for test in told["tests"]} == dict.fromkeys(
        ("files", "plan", "jobs", "verdicts", "report"), "passed"
    )
    assert told["score"] == sum(test["max_score"] for test in told["tests"]) == 5
    (tmp_path / "text.zip").write_text("hello")
    with pytest.raises(checking.RefusedError, match="is not a bundle"):
        hand_ins.check(
            tmp_path / "text.zip", out, rerun=checking.NO_RERUN, table=tmp_path / "results.json"
        )
    told = json.loads((tmp_path / "results.json").read_text())
    assert (told["score"], told["tests"][0]["status"]) == (0, "failed")


def test_killed_judge_is_one_line(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whatever: this module ends it as the kernel would for want of memory."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\nif 'qjump_mn.cli.bundle.judge' in sys.orig_argv and 'a.zip' in "
        "str(sys.orig_argv):\n    os.kill(os.getpid(), 9)\n"
    )
    paths = filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    (tmp_path / "class").mkdir()
    for name in ("a", "b"):
        shutil.copy(good, tmp_path / f"class/{name}.zip")
    out = Screen()
    assert hand_ins.check(tmp_path / "class", out, rerun=checking.NO_RERUN) == 1
    assert [line.split() for line in out.text.splitlines()[-2:]] == [
        ["a.zip", "lost", "its", "judge", "ended", "with", "SIGKILL,", "without", "findings"],
        ["b.zip", "nothing", "found"],
    ]


@pytest.mark.parametrize(
    ("table", "content", "sentence"),
    [
        ("table.txt", "x", "--table: .* must end in .csv or .json"),
        ("table.csv", "", "has no bundle: their names end in .zip"),
        ("none/table.csv", "x", "--table: .* cannot be written: no such file"),
    ],
)
def test_what_no_class_can_be_checked_with_is_refused(
    tmp_path: Path, table: str, content: str, sentence: str
) -> None:
    (tmp_path / "class").mkdir()
    if content:
        (tmp_path / "class/a.zip").write_text(content)
    with pytest.raises(UsageError, match=sentence):
        hand_ins.check(
            tmp_path / "class", Screen(), rerun=checking.NO_RERUN, table=tmp_path / table
        )
