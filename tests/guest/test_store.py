"""The store of guests' results: it gives back what was run, and tells when one differs or is damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from qjump_mn.errors import LostError, MachineError
from qjump_mn.guest import Image, Job, Result, Setup, Snapshot, run, store
from qjump_mn.guest.store import VARIABLE, Entry

pytestmark = pytest.mark.guest

SCRIPT = """
import os, time
os.mkdir("a")
open("a/b", "wb").write(os.urandom(9))
print(time.monotonic_ns())
raise SystemExit(3)
"""
JOB = Job(script=SCRIPT, seed=5)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session with an empty store, which runs nothing again."""
    (tmp_path / "session/kept").mkdir(parents=True)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "session"))
    monkeypatch.setattr(store, "AGAIN", 0.0)
    return tmp_path / "session"


def logged(session: Path) -> list[str]:
    return [line.removeprefix("guest ") for line in (session / "log").read_text().splitlines()]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def kept(session: Path) -> Path:
    (place,) = (session / "kept").iterdir()
    return place


def same(one: Result, other: Result) -> bool:
    fields = ("exit_code", "virtual_s", "sha256", "qemu_version")
    return all(getattr(one, field) == getattr(other, field) for field in fields)


def test_a_result_is_taken_whole_and_run_again_it_is_the_same(
    session: Path, image: Image, booted: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(image, JOB, tmp_path / "first", snapshot=booted)
    second = run(image, JOB, tmp_path / "second", snapshot=booted)
    monkeypatch.setattr(store, "AGAIN", 1.0)
    third = run(image, JOB, tmp_path / "third", snapshot=booted)
    assert logged(session) == ["run", "taken", "compared"]
    assert first.exit_code == 3 and same(first, second) and same(first, third)
    assert {"a/b", "stdout", "stderr", "console.log"} == set(files_of(tmp_path / "first"))
    assert files_of(tmp_path / "first") == files_of(tmp_path / "second") == files_of(tmp_path / "third")
    assert [result.console for result in (first, second)] == [
        tmp_path / "first/console.log",
        tmp_path / "second/console.log",
    ]


def test_without_a_store_every_guest_is_started(
    session: Path, image: Image, booted: Snapshot, tmp_path: Path
) -> None:
    (session / "kept").rmdir()
    for name in ("first", "second"):
        run(image, JOB, tmp_path / name, snapshot=booted)
    assert logged(session) == ["run", "run"]
    assert [path.name for path in session.iterdir()] == ["log"]


def test_a_result_that_differs_is_told_with_both_hashes_and_taken_no_more(
    session: Path, image: Image, booted: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(image, JOB, tmp_path / "first", snapshot=booted)
    place = kept(session)
    before = msgspec.json.decode(
        (place / "entry.json").read_bytes(), type=Entry, dec_hook=lambda kind, text: kind(text)
    )
    (place / "files/a/b").write_bytes(b"other")
    other = store._digest(before.result, place / "files")
    (place / "entry.json").write_bytes(msgspec.json.encode(Entry(before.result, other), enc_hook=str))
    run(image, JOB, tmp_path / "second", snapshot=booted)
    assert (tmp_path / "second/a/b").read_bytes() == b"other"
    monkeypatch.setattr(store, "AGAIN", 1.0)
    with pytest.raises(LostError, match=f"its result was {other} and is {before.sha256}"):
        run(image, JOB, tmp_path / "third", snapshot=booted)
    assert "differs" in kept(session).name
    run(image, JOB, tmp_path / "fourth", snapshot=booted)
    assert logged(session) == ["run", "taken", "compared", "run"]
    assert files_of(tmp_path / "fourth") == files_of(tmp_path / "first")


def test_a_damaged_result_is_not_taken(session: Path, image: Image, booted: Snapshot, tmp_path: Path) -> None:
    run(image, JOB, tmp_path / "first", snapshot=booted)
    (kept(session) / "files/stdout").write_text("")
    with pytest.raises(MachineError, match="is damaged: remove it"):
        run(image, JOB, tmp_path / "second", snapshot=booted)


def test_what_is_lost_is_not_kept_but_its_console_is_there(
    session: Path, image: Image, booted: Snapshot, tmp_path: Path
) -> None:
    with pytest.raises(LostError, match="kernel panicked"):
        run(image, Job(script="open('/proc/sysrq-trigger', 'w').write('c')"), tmp_path, snapshot=booted)
    assert "Kernel panic" in (tmp_path / "console.log").read_text()
    assert not list((session / "kept").iterdir())


def test_whatever_a_result_depends_on_is_in_its_key(image: Image, booted: Snapshot) -> None:
    base: dict[str, object] = {
        "image": image,
        "job": JOB,
        "snapshot": booted,
        "setup": None,
        "memory_mb": 1024,
    }
    others: list[dict[str, object]] = [
        {"image": msgspec.structs.replace(image, sha256=image.sha256 | {name: "0"})}
        for name in ("qemu", "kernel", "initrd")
    ]
    others += [
        {"image": msgspec.structs.replace(image, packages_sha256="0")},
        {"setup": Setup()},
        {"snapshot": None},
    ]
    others += [
        {"job": msgspec.structs.replace(JOB, **change)}
        for change in ({"seed": 6}, {"script": "pass"}, {"virtual_deadline_s": 1.0})
    ]
    others += [{"snapshot": None, "memory_mb": 512}, {"snapshot": None, "setup": Setup(entry="builtins:str")}]
    others += [
        {"snapshot": msgspec.structs.replace(booted, **change)}
        for change in ({"sha256": "0"}, {"memory_mb": 512}, {"setup": Setup()})
    ]
    keys = [store._key(base | other) for other in others]
    assert len({store._key(base), *keys}) == 1 + len(others)
    elsewhere: dict[str, object] = {"image": msgspec.structs.replace(image, tree=Path("/elsewhere"))}
    assert store._key(base | elsewhere) == store._key(base), "where it lies does not matter"


def test_two_at_once_keep_one(session: Path, image: Image, booted: Snapshot, tmp_path: Path) -> None:
    result = run(image, JOB, tmp_path / "first", snapshot=booted)
    place = kept(session)
    before = files_of(place)
    entry = Entry(result, "another")
    already = store._publish(entry, tmp_path / "first", place)
    assert already is not None and already.sha256 != "another"
    assert files_of(place) == before and kept(session) == place
    shutil.rmtree(place)
    assert store._publish(entry, tmp_path / "first", place) is None
