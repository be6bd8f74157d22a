"""The store of guests' results gives back what was run; tests/support/test_result_store.py tests
the store itself."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qjump_mn.guest import Image, Job, Result, Setup, run
from qjump_mn.install import environment
from tests.guest.test_same_bits import files_of
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
    assert {"a/b", "stdout", "stderr", "console.log"} == set(files_of(tmp_path / "first"))
    one, other, again = (files_of(tmp_path / name) for name in ("first", "second", "third"))
    assert one == other == again
    consoles = [tmp_path / name / "console.log" for name in ("first", "second")]
    assert [first.console, second.console] == consoles


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


def test_whatever_a_result_depends_on_is_in_its_key(image: Image, booted: Setup) -> None:
    base: dict[str, object] = {"image": image, "setup": booted, "job": JOB, "memory_mb": 1024}
    others: list[dict[str, object]] = [{"memory_mb": 512}, {"setup": Setup()}]
    unnamed = msgspec.structs.replace(image, identity="")
    others += [{"image": msgspec.structs.replace(image, identity="0")}, {"image": unnamed}]
    replaced = msgspec.structs.replace
    hashes = [image.sha256 | {name: "0"} for name in image.sha256]
    others += [{"image": replaced(unnamed, sha256=sha256)} for sha256 in hashes]
    changes: list[dict[str, Any]] = [{"seed": 6}, {"script": "pass"}, {"virtual_deadline_s": 1.0}]
    others += [{"job": replaced(JOB, **change)} for change in changes]
    keys = [result_store.guest_key(base | other) for other in others]
    assert len({result_store.guest_key(base), *keys}) == 1 + len(others)
    # Where it lies does not matter.
    elsewhere: dict[str, object] = {"image": replaced(image, initrd=Path("/elsewhere"))}
    assert result_store.guest_key(base | elsewhere) == result_store.guest_key(base)
