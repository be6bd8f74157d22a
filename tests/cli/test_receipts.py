"""What each guest's agent wrote down shows, without a rerun, trials that are not of their plan."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from qjump_mn.cli.bundle import receipts
from qjump_mn.results import manifest
from qjump_mn.results.directory import RunDirectory
from tests.support import synthetic


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Two arms with two seeds."""
    return synthetic.make(
        tmp_path_factory.mktemp("honest"), replicates=2, only=["idle", "contended"]
    )


@pytest.fixture
def run(honest: RunDirectory, tmp_path: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(honest.path, tmp_path / honest.path.name))


def problems(run: RunDirectory) -> list[str]:
    return receipts.problems(run.path, run.manifest)


def replace(run: RunDirectory, name: str, other: str) -> None:
    """Put one trial's files in the place of another's, hashes mended."""
    shutil.rmtree(run.trial(other))
    shutil.copytree(run.trial(name), run.trial(other))
    run.finish(other, synthetic.DONE)


def replan(run: RunDirectory, **changes: object) -> None:
    """Edit what the manifest's plan runs, its hash mended."""
    old = run.manifest
    plan = msgspec.structs.replace(old.plan, run=msgspec.structs.replace(old.plan.run, **changes))
    manifest.write(run.path, msgspec.structs.replace(old, plan=plan, plan_sha256=plan.hash))


def test_honest_run_has_the_jobs_of_its_plan(honest: RunDirectory) -> None:
    assert problems(honest) == []


@pytest.mark.parametrize("other", ["idle/2", "contended/1"])
def test_copy_of_another_trial_has_its_job(run: RunDirectory, other: str) -> None:
    replace(run, "idle/1", other)
    assert problems(run) == [
        f"the guest of {other} ran the job of idle/1; or another version of qjump-mn ran it"
    ]


def test_longer_duration_in_the_plan_is_another_job(run: RunDirectory) -> None:
    replan(run, duration_ns=2 * run.manifest.plan.run.duration_ns)
    assert problems(run) == [
        f"the guest of {name} ran another job than the plan's; or another version of qjump-mn ran "
        "it"
        for name in ("idle/1", "contended/1", "idle/2", "contended/2")
    ]


def test_seeds_that_were_not_run_are_other_jobs(run: RunDirectory) -> None:
    for name in ("idle", "contended"):
        shutil.move(run.trial(f"{name}/2"), run.trial(f"{name}/7"))
        run.finish(f"{name}/7", synthetic.DONE)
    replan(run, seeds=(1, 7))
    assert [sentence.split()[3] for sentence in problems(run)] == ["idle/7", "contended/7"]


def edit(path: Path) -> None:
    path.write_text(path.read_text().replace("time=1", "time=0"))


@pytest.mark.parametrize("change", [edit, Path.unlink])
def test_file_that_the_guest_did_not_write_is_said(
    run: RunDirectory, change: Callable[[Path], None]
) -> None:
    path = next(run.raw("contended/2").glob("ping*"))
    change(path)
    run.finish("contended/2", synthetic.DONE)
    assert problems(run) == [f"trials/contended/2/raw/{path.name} is not what the guest wrote"]


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"[]", b'{"job": 1, "files": {}}'])
def test_trial_without_a_receipt_is_said(run: RunDirectory, content: bytes | None) -> None:
    path = run.trial("idle/2") / receipts.NAME
    path.unlink() if content is None else path.write_bytes(content)
    assert problems(run) == [
        "idle/2/agent.json is missing or cannot be read; or an older version of qjump-mn ran it"
    ]


def test_console_of_the_host_is_not_the_guests(run: RunDirectory) -> None:
    (run.trial("idle/1") / "console.log").write_text("Linux\n")
    run.finish("idle/1", synthetic.DONE)
    assert problems(run) == []
