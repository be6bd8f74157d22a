"""The Python environment, installed: a venv, and in it what requirements.lock names, by the pip of it.

Wheels come from the wheels file, else from the index that pip is told of. Nothing but Python's own library is
needed: no ensurepip, which Debian has in a package of its own. Like environment.py, the standard library
only.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from qjump_mn import wheels
from qjump_mn.errors import MachineError

_DOWNLOADS = "downloads"
_PIP = ("--no-input", "--disable-pip-version-check")
# Wheels only: a clean machine has no compiler, and a build would run code that the hashes do not cover.
_LOCKED = ("--no-deps", "--only-binary=:all:", "--require-hashes", "--progress-bar=off", "--requirement")


def fill(folder: Path, lock: Path, checkout: Path, progress: Callable[[str], None]) -> None:
    """Make the environment of this Python in an empty folder of the cache.

    What the programs say is in a log beside it. Raises MachineError when it cannot be made, and OSError where
    there is no room.
    """
    key = folder.name.partition(".tmp-")[0]
    log = folder.with_name(f"{key}.log")
    downloads = folder / _DOWNLOADS
    with log.open("w", encoding="utf-8") as output, folder.with_name(f"{key}.writers").open("ab") as writers:
        # pip outlives a bootstrap that is killed, and writes on into a folder that is already being swept: so
        # it holds this lock.
        fcntl.flock(writers, fcntl.LOCK_EX)
        for left in folder.parent.glob(f"{key}.tmp-*"):
            if left != folder:
                shutil.rmtree(left, ignore_errors=True)
        file = wheels.taken(downloads, lock, checkout, progress)
        if file:
            progress(f"takes the wheels from {file}")
        for argv in _commands(folder, lock, file):
            # There may be no other folder to write in.
            if _log(argv, output, writers.fileno(), {**_variables(file), "TMPDIR": str(downloads)}):
                output.flush()
                raise MachineError(_sentence(log, file))
    shutil.rmtree(downloads)
    # Their first lines name the folder that the environment is built in; `python -m` needs none of them. ruff
    # is no script.
    for script in (folder / "bin").iterdir():
        if not script.name.startswith("python") and script.name != "ruff":
            script.unlink()


def gather(folder: Path, lock: Path) -> None:
    """Put the locked wheels for this Python and processor into the folder, with this environment's pip.
    Raises MachineError where one cannot be had."""
    argv = [sys.executable, "-I", "-m", "pip", *_PIP, "download", "--dest", str(folder), *_LOCKED, str(lock)]
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise MachineError(f"the wheels cannot be had{_last_words(done.stdout)}")


def _commands(folder: Path, lock: Path, file: Path | None) -> Iterator[list[str]]:
    """What makes the environment of the wheels that are there, or else of the index's."""
    base = os.path.realpath(sys.executable)  # /usr/bin/python3 is another Python after an upgrade
    yield [base, "-I", "-m", "venv", "--without-pip", str(folder)]
    downloads = folder / _DOWNLOADS
    if file:
        pip, options = downloads / wheels.pip_of(lock), ["--no-index", f"--find-links={downloads}"]
    else:
        downloads.mkdir()
        pip, options = _pip_of_index(downloads, lock), []
    # The folder in a wheel is a program to Python, also while it is packed.
    run = [str(folder / "bin/python"), "-I", str(pip / "pip")]
    yield [*run, *_PIP, "install", *options, *_LOCKED, str(lock)]


def _pip_of_index(folder: Path, lock: Path) -> Path:
    try:
        from qjump_mn import index
    except ImportError as error:  # who builds a Python may leave out ssl
        raise MachineError(f"{sys.executable} cannot ask an index ({error}): {wheels.advice()}") from error
    return index.pip_wheel(folder, lock)


def _variables(file: Path | None) -> Mapping[str, str]:
    """Those for pip: not its own where it is to take nothing but what a file holds."""
    if file is None:
        return os.environ
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return {**kept, "PIP_CONFIG_FILE": os.devnull}


def _sentence(log: Path, file: Path | None) -> str:
    """Why it could not be made."""
    said = log.read_text(encoding="utf-8", errors="replace")
    missing = re.search(r"No matching distribution found for ([^\s=]+)", said)
    if file and missing:
        return f"{file} has no wheel of {missing[1]} for this Python: {wheels.advice()}"
    return f"the Python environment could not be made{_last_words(said)}; all that was said is in {log}"


def _last_words(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f" ({lines[-1]})" if lines else ""


def _log(argv: Sequence[str], output: TextIO, lock: int, environment: Mapping[str, str]) -> int:
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        pass_fds=[lock],
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            output.write(line)
            _show(line)
    _show("")
    return process.returncode


def _show(line: str) -> None:
    """One line of another program, in place, for whoever watches."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 4
        print(
            f"\r\033[K  {line.strip()[:width]}" if line else "\r\033[K", end="", file=sys.stderr, flush=True
        )
