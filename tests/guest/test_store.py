"""The store of guests' results gives back what was run; tests/support/test_result_store.py tests
the store itself."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from qjump_mn.errors import LostError
from qjump_mn.guest import Image, Job, Result, Setup, run
from qjump_mn.install import environment
from tests.support import result_store

pytestmark = pytest.mark.guest

SCRIPT = """
import os, time
os.mkdir("a")
open("a/b", "wb").write(os.urandom(9))
print(time.monotonic_ns())
raise SystemExit(3)
"""
JOB = Job(script=SCRIPT, seed=5)


def logged(session: Path) -> list[str]:
    return [line.removeprefix("guest ") for line in (session / "log").read_text().splitlines()]


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def same(one: Result, other: Result) -> bool:
    fields = ("exit_code", "virtual_s", "sha256")
    return all(getattr(one, field) == getattr(other, field) for field in fields)


def test_a_result_is_taken_whole_and_run_again_it_is_the_same(
    session: Path, image: Image, booted: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(image, booted, JOB, tmp_path / "first")
    second = run(image, booted, JOB, tmp_path / "second")
    monkeypatch.setattr(result_store, "RERUN_SHARE", 1.0)
    third = run(image, booted, JOB, tmp_path / "third")
    assert logged(session) == ["run", "taken", "compared"]
    assert first.exit_code == 3 and same(first, second) and same(first, third)
    assert {"a/b", "stdout", "stderr", "agent.json", "console.log"} == set(
        files_of(tmp_path / "first")
    )
    assert (
        files_of(tmp_path / "first")
        == files_of(tmp_path / "second")
        == files_of(tmp_path / "third")
    )
    assert [result.console for result in (first, second)] == [
        tmp_path / "first/console.log",
        tmp_path / "second/console.log",
    ]


def test_store_answers_processes_of_tests_and_not_of_users(
    session: Path, image: Image, booted: Setup, tmp_path: Path
) -> None:
    """The variable alone does nothing."""
    code = (
        "import pickle, sys; from pathlib import Path; from qjump_mn.guest import run\n"
        "image, setup, job, out = pickle.load(sys.stdin.buffer); run(image, setup, job, Path(out))"
    )
    run(image, booted, JOB, tmp_path / "first")
    of_users = {"PYTHONPATH": str(environment.CHECKOUT)}
    for name, variables in (("test", {}), ("user", of_users)):
        given = pickle.dumps((image, booted, JOB, str(tmp_path / name)))
        argv, variables = [sys.executable, "-P", "-c", code], {**os.environ, **variables}
        subprocess.run(argv, input=given, env=variables, cwd=tmp_path, check=True)
        assert files_of(tmp_path / name) == files_of(tmp_path / "first")
    assert logged(session) in (["run", "taken"], ["run", "compared"])


def test_what_is_lost_is_not_kept_but_its_console_is_there(
    session: Path, image: Image, booted: Setup, tmp_path: Path
) -> None:
    with pytest.raises(LostError, match="without a result"):
        run(image, booted, Job(script="import os; os.kill(os.getppid(), 9)"), tmp_path)
    assert "ended with status -9" in (tmp_path / "console.log").read_text()
    assert not list((session / "kept").iterdir())


def test_whatever_a_result_depends_on_is_in_its_key(image: Image, booted: Setup) -> None:
    base: dict[str, object] = {"image": image, "setup": booted, "job": JOB, "memory_mb": 1024}
    others: list[dict[str, object]] = [{"memory_mb": 512}, {"setup": Setup()}]
    unnamed = msgspec.structs.replace(image, identity="")
    others += [{"image": msgspec.structs.replace(image, identity="0")}, {"image": unnamed}]
    others += [
        {"image": msgspec.structs.replace(unnamed, sha256=image.sha256 | {name: "0"})}
        for name in image.sha256
    ]
    others += [
        {"job": msgspec.structs.replace(JOB, **change)}
        for change in ({"seed": 6}, {"script": "pass"}, {"virtual_deadline_s": 1.0})
    ]
    keys = [result_store.guest_key(base | other) for other in others]
    assert len({result_store.guest_key(base), *keys}) == 1 + len(others)
    elsewhere: dict[str, object] = {
        "image": msgspec.structs.replace(image, initrd=Path("/elsewhere"))
    }
    assert result_store.guest_key(base | elsewhere) == result_store.guest_key(base), (
        "where it lies does not matter"
    )
