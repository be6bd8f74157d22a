"""What work left, kept for the project's own tests: work whose key holds all that decides it need not be done
twice.

Users have no store. A test session (tests/conftest.py) names a folder in $QJUMP_MN_RESULTS. Each piece of
work adds a line to its file `log`. If it has a folder `kept`, what was left is taken from there, and what is
new is put there. A random twentieth of what is taken is done again; one that differs is a LostError with both
hashes.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from qjump_mn import cache
from qjump_mn.errors import LostError, MachineError

VARIABLE = "QJUMP_MN_RESULTS"
AGAIN = 0.05
"""The share of what is kept that is done again."""

_ENTRY, _FILES = "entry.json", "files"

Outcome = TypeVar("Outcome")


def _everything(outcome: object) -> list[str]:
    return [str(outcome)]


def _always(outcome: object) -> bool:
    return True


@dataclass(frozen=True)
class Kind(Generic[Outcome]):
    """A kind of work: its `name` in the log, and the type of what it returns.

    `compared` gives the texts of an outcome that must be the same when the work is done again; beside them
    every file must be. An outcome for which `is_lasting` is false is not kept.
    """

    name: str
    outcome: type[Outcome]
    compared: Callable[[Outcome], list[str]] = _everything
    is_lasting: Callable[[Outcome], bool] = _always


class Entry(msgspec.Struct, Generic[Outcome], frozen=True, forbid_unknown_fields=True):
    """What is kept of an outcome; `sha256` is over all that must be the same when the work is done again."""

    outcome: Outcome
    sha256: str


def session() -> Path | None:
    """The folder of the test session, if this is one."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def once(
    session: Path,
    kind: Kind[Outcome],
    key: str,
    work: Callable[[Path], Outcome],
    out: Path | None = None,
) -> Outcome:
    """What `work` returns; the files that it leaves in the folder that it is given, which is not there yet,
    come into the folder `out`.

    Raises LostError for work that leaves something else than before, and MachineError for a damaged entry.
    """
    whole_key = cache.hash_of(key, cache.hash_of_code(Path(__file__)))
    place = session / "kept" / f"{kind.name.replace(' ', '-')}-{whole_key}"
    with tempfile.TemporaryDirectory(prefix="qjump-mn-") as folder:
        files = Path(folder, _FILES)
        try:
            return _outcome(session, kind, place, files, work)
        finally:
            if out is not None and files.is_dir():
                shutil.copytree(files, out, dirs_exist_ok=True)


def _outcome(
    session: Path, kind: Kind[Outcome], place: Path, files: Path, work: Callable[[Path], Outcome]
) -> Outcome:
    """The outcome, and its files in the folder `files`."""
    before = _read(kind, place)
    if before and random.SystemRandom().random() >= AGAIN:
        os.utime(place)
        if (place / _FILES).is_dir():
            shutil.copytree(place / _FILES, files, copy_function=shutil.copyfile)
        if _digest(kind, before.outcome, files) != before.sha256:
            raise MachineError(f"{place} is damaged: remove it")
        _log(session, kind, "taken")
        return before.outcome
    _log(session, kind, "compared" if before else "run")
    try:
        outcome = work(files)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)  # what cannot be done again is believed no more
        raise
    if not kind.is_lasting(outcome):
        return outcome
    now = Entry(outcome, _digest(kind, outcome, files))
    if not before and place.parent.is_dir():
        before = _publish(kind, now, files, place)
    if before and before.sha256 != now.sha256:
        place.rename(place.with_name(f"{place.name}.differs-{os.getpid()}"))  # it is believed no more
        raise LostError(
            f"the {kind.name} does not repeat itself: its result was {before.sha256} and is {now.sha256}; "
            f"see {place}.differs-*"
        )
    return outcome


def _read(kind: Kind[Outcome], place: Path) -> Entry[Outcome] | None:
    try:
        text = (place / _ENTRY).read_bytes()
    except FileNotFoundError:
        return None
    entry: Entry[Outcome] = msgspec.json.decode(
        text,
        type=Entry[kind.outcome],  # type: ignore[name-defined]
        dec_hook=lambda wanted, value: wanted(value),
    )
    return entry


def _publish(kind: Kind[Outcome], entry: Entry[Outcome], files: Path, place: Path) -> Entry[Outcome] | None:
    """Keep an entry; the one that another process has kept meanwhile stays, and is returned."""
    with tempfile.TemporaryDirectory(prefix=f"{place.name}.tmp-", dir=place.parent) as folder:
        whole = Path(folder, "whole")
        whole.mkdir()
        if files.is_dir():
            shutil.copytree(files, whole / _FILES)
        (whole / _ENTRY).write_bytes(msgspec.json.encode(entry, enc_hook=str))
        try:
            whole.rename(place)
        except OSError:
            return _read(kind, place)
    return None


def _digest(kind: Kind[Outcome], outcome: Outcome, folder: Path) -> str:
    """One hash over what is compared of an outcome, and over every file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [f"{path.relative_to(folder)} {cache.hash_of_file(path)}" for path in files]
    return cache.hash_of(*kind.compared(outcome), *names)


def _log(session: Path, kind: Kind[Outcome], word: str) -> None:
    with (session / "log").open("a") as log:
        log.write(f"{kind.name} {word}\n")
