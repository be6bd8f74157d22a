"""Results of guests, kept for the project's own tests: what goes into a guest decides what it leaves.

Users have no store. A test session (tests/conftest.py) names a folder in $QJUMP_MN_RESULTS. Each guest adds a
line to its file `log`. If it has a folder `kept`, results are taken from there, and new ones are put there. A
random twentieth of the results that are kept is run again; one that differs is a LostError with both hashes.
"""

from __future__ import annotations

import functools
import inspect
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

import msgspec

from qjump_mn import cache
from qjump_mn.errors import LostError, MachineError
from qjump_mn.guest.job import Image, Job, Result, Setup, Snapshot, encode_job, encode_setup

VARIABLE = "QJUMP_MN_RESULTS"
AGAIN = 0.05
"""The share of the kept results that is run again."""

_ENTRY, _FILES = "entry.json", "files"
_SOURCES = ("__init__", "job", "leash", "machine", "qmp", "result", "snapshots", "store")
"""The modules of this package on which a result depends. What runs in the guest is in the image's hashes."""

_P = ParamSpec("_P")


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A result that is kept; `sha256` is over all that must be the same when it is run again."""

    result: Result
    sha256: str


def kept(run: Callable[_P, Result]) -> Callable[_P, Result]:
    """`run` of this package, which looks into the session's store before it starts a guest."""

    @functools.wraps(run)
    def stored(*args: _P.args, **kwargs: _P.kwargs) -> Result:
        session = os.environ.get(VARIABLE)
        if not session:
            return run(*args, **kwargs)
        call = inspect.signature(run).bind(*args, **kwargs)
        call.apply_defaults()
        out: Path = call.arguments["out"]
        with tempfile.TemporaryDirectory(prefix="qjump-mn-") as folder:
            scratch = Path(folder, _FILES)
            call.arguments["out"] = scratch
            try:
                result = _result(
                    Path(session), _key(call.arguments), scratch, lambda: run(*call.args, **call.kwargs)
                )
            finally:
                if scratch.is_dir():
                    shutil.copytree(scratch, out, dirs_exist_ok=True)
        return msgspec.structs.replace(result, console=out / "console.log")

    return stored


def _result(session: Path, key: str, files: Path, fresh: Callable[[], Result]) -> Result:
    """The result, and its files in the folder `files`."""
    place = session / "kept" / key
    before = _read(place)
    if before and random.SystemRandom().random() >= AGAIN:
        os.utime(place)
        shutil.copytree(place / _FILES, files, copy_function=shutil.copyfile)
        if _digest(before.result, files) != before.sha256:
            raise MachineError(f"{place} is damaged: remove it")
        _log(session, "taken")
        return before.result
    _log(session, "compared" if before else "run")
    result = fresh()
    now = Entry(result, _digest(result, files))
    if not before and place.parent.is_dir():
        before = _publish(now, files, place)
    if before and before.sha256 != now.sha256:
        place.rename(place.with_name(f"{key}.differs-{os.getpid()}"))  # it is believed no more
        raise LostError(
            f"the guest does not repeat itself: its result was {before.sha256} and is {now.sha256}; "
            f"see {place}.differs-*"
        )
    return result


def _read(place: Path) -> Entry | None:
    try:
        return msgspec.json.decode(
            (place / _ENTRY).read_bytes(), type=Entry, dec_hook=lambda kind, text: kind(text)
        )
    except FileNotFoundError:
        return None


def _publish(entry: Entry, files: Path, place: Path) -> Entry | None:
    """Keep an entry; the one that another process has kept meanwhile stays, and is returned."""
    with tempfile.TemporaryDirectory(prefix=f"{place.name}.tmp-", dir=place.parent) as folder:
        whole = Path(folder, "whole")
        shutil.copytree(files, whole / _FILES)
        (whole / _ENTRY).write_bytes(msgspec.json.encode(entry, enc_hook=str))
        try:
            whole.rename(place)
        except OSError:
            return _read(place)
    return None


def _digest(result: Result, folder: Path) -> str:
    """One hash over exit code, virtual time, hashes and every file of a result, the console included."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [f"{path.relative_to(folder)} {cache.hash_of_file(path)}" for path in files]
    return cache.hash_of(
        str(result.exit_code), str(result.virtual_s), str(sorted(result.sha256.items())), *names
    )


def _key(arguments: dict[str, object]) -> str:
    """The hash of everything that a result depends on: `arguments` are those of `run`, by name."""
    image, job, snapshot, setup = (arguments[name] for name in ("image", "job", "snapshot", "setup"))
    assert isinstance(image, Image) and isinstance(job, Job)
    # The packages are QEMU's firmware and libraries.
    parts: list[str | bytes] = [
        *(f"{name} {value}" for name, value in sorted(image.sha256.items())),
        image.packages_sha256,
    ]
    parts += [
        encode_job(job),
        encode_setup(setup) if isinstance(setup, Setup) else b"",
        str(arguments["memory_mb"]),
    ]
    if isinstance(snapshot, Snapshot):
        parts += [snapshot.sha256, encode_setup(snapshot.setup), str(snapshot.memory_mb)]
    return cache.hash_of(
        *parts, *(cache.hash_of_code(Path(__file__).with_name(f"{name}.py")) for name in _SOURCES)
    )


def _log(session: Path, word: str) -> None:
    with (session / "log").open("a") as log:
        log.write(f"guest {word}\n")
