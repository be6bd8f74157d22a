"""The Python environment, installed: a venv, and in it what requirements.lock names, by pip.

Wheels come from the wheels file, whose own pip installs them: then nothing but Python's own library is
needed. Else they come from the index that pip knows or is told of, and a pip must be here: in ensurepip,
which Debian has in a package of its own, or installed for this Python. Like install/environment.py, the
standard library only.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from qjump_mn.errors import MachineError
from qjump_mn.install import wheels

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


def gather(
    folder: Path,
    lock: Path,
    pip: Sequence[str] = (sys.executable, "-I", "-m", "pip"),
    variables: Mapping[str, str] | None = None,
) -> None:
    """Put the locked wheels into the folder: for this Python, or for that of another ``pip``, which needs
    these environment ``variables``. Raises MachineError where one cannot be had."""
    done = subprocess.run(
        [*pip, *_PIP, "download", "--dest", str(folder), *_LOCKED, str(lock)],
        env={**os.environ, **(variables or {})},
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
    python, downloads = str(folder / "bin/python"), folder / _DOWNLOADS
    with_ensurepip = not file and find_spec("ensurepip") is not None
    yield [base, "-I", "-m", "venv", *([] if with_ensurepip else ["--without-pip"]), str(folder)]
    options: list[str] = []
    if file:
        # The folder in a wheel is a program to Python, also while it is packed.
        pip = [python, "-I", str(downloads / wheels.pip_of(lock) / "pip")]
        options = ["--no-index", f"--find-links={downloads}"]
    else:
        downloads.mkdir()
        pip = [python, "-I", "-m", "pip"] if with_ensurepip else [*_pip_of(base), "--python", python]
    yield [*pip, *_PIP, "install", *options, *_LOCKED, str(lock)]


def _pip_of(base: str) -> list[str]:
    """The pip that was installed for this Python."""
    argv = [base, "-I", "-m", "pip"]
    if subprocess.run([*argv, "--version"], stdin=subprocess.DEVNULL, capture_output=True).returncode:
        raise MachineError(
            f"{base} has neither ensurepip nor pip: install Debian's python3-venv, or {wheels.advice()}"
        )
    return argv


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
