"""Install the Python environment: a venv with what requirements.lock names, by pip and by hash.

pip uses its own settings: an index, a proxy, ``PIP_FIND_LINKS``, ``PIP_NO_INDEX``. A folder
`qjump-mn-wheels` in the checkout or beside it replaces the index, and contains a pip. Like
environment.py, this uses the standard library only.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from qjump_mn.errors import MachineError

WHEELS = "qjump-mn-wheels"
"""The name of a folder with wheels."""

# Wheels only: a clean machine has no compiler, and a build would run code that the hashes do not
# cover.
LOCKED = (
    "--no-deps",
    "--only-binary=:all:",
    "--require-hashes",
    "--progress-bar=off",
    "--requirement",
)
QUIET = ("--no-input", "--disable-pip-version-check")


def fill(folder: Path, lock: Path, checkout: Path, progress: Callable[[str], None]) -> None:
    """Install the environment of this Python into an empty folder of the cache; the log lies beside
    it.

    Raises MachineError if it cannot be made, and OSError if there is no room.
    """
    key = folder.name.partition(".tmp-")[0]
    log, downloads = folder.with_name(f"{key}.log"), folder / "downloads"
    downloads.mkdir()
    places = (checkout / WHEELS, checkout.parent / WHEELS)
    wheels = next((place for place in places if place.is_dir()), None)
    if wheels:
        progress(f"takes the wheels from {wheels}")
    with (
        log.open("w", encoding="utf-8") as output,
        folder.with_name(f"{key}.writers").open("ab") as writers,
    ):
        # pip outlives a bootstrap that is killed, and writes on into a folder that is already being
        # swept: so it holds this lock.
        fcntl.flock(writers, fcntl.LOCK_EX)
        for left in folder.parent.glob(f"{key}.tmp-*"):
            if left != folder:
                shutil.rmtree(left, ignore_errors=True)
        for argv in _commands(folder, lock, wheels):
            if _logged(argv, output, writers.fileno(), downloads):
                output.flush()
                raise MachineError(_sentence(log))
    shutil.rmtree(downloads)
    # Their first lines name the folder that the environment is built in; `python -m` needs none of
    # them. ruff is no script.
    for script in (folder / "bin").iterdir():
        if not script.name.startswith("python") and script.name != "ruff":
            script.unlink()


def _commands(folder: Path, lock: Path, wheels: Path | None) -> Iterator[list[str]]:
    """Return the commands that install it, with the pip of the wheels, of ensurepip or of this
    Python."""
    base = os.path.realpath(sys.executable)  # /usr/bin/python3 is another Python after an upgrade
    python = str(folder / "bin/python")
    packed = _pip_among(wheels, lock) if wheels else None
    with_ensurepip = not packed and find_spec("ensurepip") is not None
    yield [base, "-I", "-m", "venv", *([] if with_ensurepip else ["--without-pip"]), str(folder)]
    if packed:
        pip = [
            python,
            "-I",
            str(packed / "pip"),
        ]  # a folder is a program to Python, also while it is packed
    else:
        pip = (
            [python, "-I", "-m", "pip"] if with_ensurepip else [*_pip_of(base), "--python", python]
        )
    # As an address, for pip splits a path at its spaces.
    options = ["--no-index", f"--find-links={wheels.resolve().as_uri()}"] if wheels else []
    yield [*pip, *QUIET, "install", *options, *LOCKED, str(lock)]


def _pip_among(wheels: Path, lock: Path) -> Path | None:
    """Return the wheel of the locked pip, or None. It will run, so its hash must be the lock's."""
    text = lock.read_text(encoding="utf-8")
    for path in wheels.glob("pip-*.whl"):
        if f"--hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}" in text:
            return path
    return None


def _pip_of(base: str) -> list[str]:
    """Return the pip that is installed for this Python."""
    argv = [base, "-I", "-m", "pip"]
    if subprocess.run(
        [*argv, "--version"], stdin=subprocess.DEVNULL, capture_output=True
    ).returncode:
        raise MachineError(
            f"{base} has neither ensurepip nor pip: install Debian's python3-venv, or put the "
            f"wheels of the lock into a folder {WHEELS} beside the checkout (docs/machine.md)"
        )
    return argv


def _sentence(log: Path) -> str:
    """Return why it could not be made, from the last printed lines."""
    said = log.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = f" ({lines[-1]})" if lines else ""
    return f"the Python environment could not be made{last}; all that was said is in {log}"


def _logged(argv: Sequence[str], output: TextIO, lock: int, downloads: Path) -> int:
    """Run a command, holding the lock, with its output in the log; return its exit code."""
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "TMPDIR": str(downloads)},  # there may be no other folder to write in
        pass_fds=[lock],
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            output.write(line)
            _show(line)
    _show("")
    return process.returncode


def _show(line: str) -> None:
    """Show one line of another program's output in place."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 4
        print(
            f"\r\033[K  {line.strip()[:width]}" if line else "\r\033[K",
            end="",
            file=sys.stderr,
            flush=True,
        )
