"""What is kept of work: it comes back as it was left, and is told when it differs or is damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from qjump_mn.errors import LostError, MachineError
from tests.support import result_store
from tests.support.result_store import Kind


class Sum(msgspec.Struct, frozen=True):
    """What the work here returns; its time is another whenever it is done."""

    value: int
    wall_s: float
    log: Path


KIND = Kind(
    "long sum", Sum, lambda outcome: [str(outcome.value)], lambda outcome: outcome.value >= 0
)


def leaving(text: str, value: int = 3) -> Callable[[Path], Sum]:
    """Work that leaves a file with this text."""

    def work(folder: Path) -> Sum:
        (folder / "a").mkdir(parents=True)
        (folder / "a/b").write_text(text)
        return Sum(value, 0.5, folder / "log")

    return work


def once(session: Path, out: Path, text: str = "text", value: int = 3) -> Sum:
    return result_store.once(session, KIND, "key", leaving(text, value), out)


def logged(session: Path) -> list[str]:
    return (session / "log").read_text().splitlines()


def place(session: Path) -> Path:
    (only,) = (session / "kept").iterdir()
    return only


def test_work_is_done_once_and_leaves_the_same(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "second").mkdir()
    (tmp_path / "second/mine").touch()
    first = once(session, tmp_path / "first")
    second = once(session, tmp_path / "second", "what is not written")
    monkeypatch.setattr(result_store, "RERUN_SHARE", 1.0)
    third = once(session, tmp_path / "third")
    assert logged(session) == ["long sum run", "long sum taken", "long sum compared"]
    assert first == second and third.value == 3
    assert {(tmp_path / name / "a/b").read_text() for name in ("first", "second", "third")} == {
        "text"
    }
    assert (tmp_path / "second/mine").exists()
    assert place(session).name.startswith("long-sum-")


def test_another_key_and_another_kind_are_other_work(session: Path, tmp_path: Path) -> None:
    once(session, tmp_path / "first")
    result_store.once(session, KIND, "another", leaving("other"), tmp_path / "second")
    result_store.once(session, Kind("short sum", Sum), "key", leaving("short"), tmp_path / "third")
    assert len(list((session / "kept").iterdir())) == 3
    assert (tmp_path / "third/a/b").read_text() == "short"


def test_without_a_store_work_is_done_every_time(session: Path, tmp_path: Path) -> None:
    (session / "kept").rmdir()
    for name in ("first", "second"):
        once(session, tmp_path / name, name)
        assert (tmp_path / name / "a/b").read_text() == name
    assert logged(session) == ["long sum run"] * 2
    assert [path.name for path in session.iterdir()] == ["log"]


@pytest.mark.parametrize(("text", "value"), [("other", 3), ("text", 4)])
def test_what_differs_is_told_with_both_hashes_and_taken_no_more(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, value: int
) -> None:
    once(session, tmp_path / "first")
    kept = msgspec.json.decode((place(session) / "entry.json").read_bytes())["sha256"]
    monkeypatch.setattr(result_store, "RERUN_SHARE", 1.0)
    with pytest.raises(
        LostError, match=f"the long sum does not repeat itself: its result was {kept} and is"
    ):
        once(session, tmp_path / "second", text, value)
    assert "differs" in place(session).name
    monkeypatch.setattr(result_store, "RERUN_SHARE", 0.0)
    once(session, tmp_path / "third", text, value)
    assert logged(session) == ["long sum run", "long sum compared", "long sum run"]


def test_work_that_fails_leaves_its_files_and_is_not_kept(session: Path, tmp_path: Path) -> None:
    def work(folder: Path) -> Sum:
        leaving("half")(folder)
        raise LostError("it was lost")

    with pytest.raises(LostError, match="it was lost"):
        result_store.once(session, KIND, "key", work, tmp_path / "out")
    assert (tmp_path / "out/a/b").read_text() == "half"
    assert not list((session / "kept").iterdir())


def test_work_that_fails_when_it_is_done_again_is_believed_no_more(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(folder: Path) -> Sum:
        raise LostError("it was lost")

    once(session, tmp_path / "first")
    monkeypatch.setattr(result_store, "RERUN_SHARE", 1.0)
    with pytest.raises(LostError, match="it was lost"):
        result_store.once(session, KIND, "key", work)
    assert not list((session / "kept").iterdir())


def test_an_outcome_that_does_not_last_is_neither_kept_nor_compared(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert once(session, tmp_path / "first", value=-1).value == -1
    assert not list((session / "kept").iterdir())
    once(session, tmp_path / "second")
    monkeypatch.setattr(result_store, "RERUN_SHARE", 1.0)
    assert once(session, tmp_path / "third", value=-1).value == -1
    assert "differs" not in place(session).name


def test_what_is_damaged_is_not_taken(session: Path, tmp_path: Path) -> None:
    once(session, tmp_path / "first")
    (place(session) / "files/a/b").write_text("")
    with pytest.raises(MachineError, match="is damaged: remove it"):
        once(session, tmp_path / "second")
