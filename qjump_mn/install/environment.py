"""Find, build and enter the Python environment of a checkout.

It has exactly the packages of requirements.lock, and lies in the cache under that file's hash, so
checkouts with the same lock share it. Any Python may import this module, before each command. So it
uses the standard library only, imported where it is needed, and syntax of old Pythons.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

BEGAN = time.monotonic()
"""When this process began: the command line imports this module first."""

OLDEST = (3, 11)
CHECKOUT = Path(__file__).resolve().parents[2]
LOCK = CHECKOUT / "requirements.lock"
LAUNCHER = Path("/usr/local/bin/qjump-mn")
PACKAGES = ("jinja2", "markdown_it", "matplotlib", "msgspec", "numpy", "pyarrow", "rich", "typer")

_MARK = "# Written by the bootstrap of qjump-mn"
_ENTERED = "QJUMP_MN_ENTERED"
_BUILDS = "QJUMP_MN_BUILDS"  # set by bootstrap where the machine can be built of packages
_BUILD_TIME = "half a minute"
_NEEDS_BYTES = 900 << 20  # 500 MB of environment beside 150 MB of downloads, and some air
_NEWEST_MINOR = 20
# tests/conftest.py says which tests go together, and in which order. "auto" is none for a debugger.
WORKERS = ("--numprocesses=auto", "--dist=loadscope", "--no-loadscope-reorder")


def ensure(module: str = "qjump_mn.run") -> None:
    """Continue as `python -m module` in the project's environment, unless this is it or an
    installed package.

    Call it before importing anything but the standard library. If this Python is too old, or there
    is no environment, it ends the process with one sentence and exit code 3.
    """
    if sys.version_info < OLDEST:
        _end(
            f"this is Python {sys.version.split()[0]}, qjump-mn needs 3.11 or newer: call that "
            "one, or qjump-mn"
        )
    _give_up_pycache()
    entered = os.environ.pop(_ENTERED, None)
    if not LOCK.is_file():  # a package that pip installed, with what it needs
        missing = _missing_packages()
        if missing:
            _end(
                f"{sys.executable} has no {', '.join(missing)}: install qjump-mn with its "
                "dependencies"
            )
        return
    environment = find()
    if environment is None:
        if _missing_packages():
            _end(
                f"the Python environment of {CHECKOUT} is not there yet: run  "
                f"{shlex.quote(str(CHECKOUT / 'bootstrap'))}"
            )
        return
    if _is_this(environment):
        if not (sys.flags.inspect or sys.flags.optimize):
            return
    elif entered:
        _end(
            f"the Python environment {environment} does not work: remove it and run  "
            f"{shlex.quote(str(CHECKOUT / 'bootstrap'))}"
        )
    _enter(environment, ["-m", module, *sys.argv[1:]], {_ENTERED: "1"})


@contextlib.contextmanager
def intact() -> Iterator[None]:
    """If an error in the block comes from a damaged environment, end the process with one sentence
    and exit code 3."""
    try:
        yield
    except Exception as error:
        damage = damage_behind(error)
        if damage is None or "--debug" in sys.argv:
            raise
        _end(damage[0])


def damage_behind(error: BaseException) -> tuple[str, int] | None:
    """Return a sentence and an exit code if the error comes from a damaged environment, else None.

    Comparing every file takes 2 s, so only import errors and errors within the environment are
    checked.
    """
    from qjump_mn.cache import sums

    folder = Path(sys.prefix)
    is_suspect = isinstance(error, (ImportError, SyntaxError)) or _is_raised_in(folder, error)
    if not (is_suspect and LOCK.is_file() and (folder / sums.NAME).exists()):
        return None
    damage = next(sums.damages(folder), None)
    if damage is None:
        return None
    remedy = f"remove that folder and run  {shlex.quote(str(CHECKOUT / 'bootstrap'))}"
    return f"the Python environment {folder} is damaged, {damage}: {remedy}", 3


def _is_raised_in(folder: Path, error: BaseException) -> bool:
    """Return whether a function in a file of the folder raised the error."""
    import traceback

    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(files) and files[-1].startswith(f"{folder}/")


def find() -> Path | None:
    """Return the environment for this checkout's lock: this Python's, else one of another
    Python."""
    from qjump_mn import cache

    minors = [sys.version_info[1], *range(OLDEST[1], _NEWEST_MINOR)]
    for minor in minors:
        environment = cache.find("environment", _key(minor))
        if environment and os.access(
            _python(environment), os.X_OK
        ):  # false when its Python was uninstalled
            return environment
    return None


def build(say: Callable[[str], None] = lambda line: None) -> Path:
    """Return the environment for this checkout's lock and this Python, built now if there is none.

    ``say`` prints progress. Raises MachineError if it cannot be built.
    """
    from qjump_mn import cache
    from qjump_mn.cache import holds
    from qjump_mn.install import installation

    key = _key(sys.version_info[1])
    existing = cache.find("environment", key)
    if existing and not os.access(_python(existing), os.X_OK):
        holds.release(existing)
        cache.remove(existing)
    return cache.artefact(
        "environment",
        key,
        lambda folder: installation.fill(folder, LOCK, CHECKOUT, say),
        needs_bytes=_NEEDS_BYTES,
        progress=say,
    )


def link(launcher: Path = LAUNCHER) -> None:
    """Install the command `qjump-mn` (install/launcher.py). A file of that name that is not ours
    stays.

    It starts the checkout that contains the current folder, else this one.
    """
    text = _launcher_text()
    if launcher.is_symlink() or launcher.exists():
        before = (
            launcher.read_text(errors="replace")
            if launcher.is_file() and not launcher.is_symlink()
            else ""
        )
        if before == text:
            return
        if _MARK not in before:
            command = f"python3 -m qjump_mn.run  in {CHECKOUT}"
            _say(f"{launcher} is another program and stays; start this one with  {command}")
            return
    launcher.parent.mkdir(parents=True, exist_ok=True)
    temporary = launcher.with_name(f".{launcher.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.chmod(0o755)
    temporary.replace(launcher)
    _link_manual(launcher.parent.parent / "share/man/man1/qjump-mn.1")


def _launcher_text() -> str:
    """Return install/launcher.py as a program whose first lines are shell, and a string to Python.

    A path may be too long for `#!`, or contain spaces.
    """
    python = os.path.realpath(sys.executable)
    module = (CHECKOUT / "qjump_mn/install/launcher.py").read_text(encoding="utf-8")
    body = module.partition("from __future__")[2]
    return f"""#!/bin/sh
''':'
{_MARK}, from qjump_mn/install/launcher.py of the checkout that ran it last.
python={shlex.quote(python)}
[ -x "$python" ] || {{
    echo "qjump-mn: $python is gone: run the bootstrap of a checkout again" >&2
    exit 3
}}
exec "$python" -I -S "$0" "$@"
'''
from __future__{body}

launch({str(CHECKOUT)!r}, {python!r})
"""


def _link_manual(page: Path) -> None:
    """Link this checkout's manual page for man(1), unless another's is there."""
    ours = CHECKOUT / "docs" / page.name
    if not ours.is_file() or (page.exists() and not page.is_symlink()):
        return
    page.parent.mkdir(parents=True, exist_ok=True)
    temporary = page.with_name(f".{page.name}.{os.getpid()}")
    temporary.symlink_to(ours)
    temporary.replace(page)


def main(arguments: list[str]) -> NoReturn:
    """Do what `bootstrap` does once the system has its packages: environment, launcher, then the
    command.

    Without arguments, build everything that can be built, then run `doctor`.
    """
    from qjump_mn.install import launcher
    from qjump_mn.process import variables

    variables.settle(launcher.BREAKS_PYTHON)
    if arguments == ["--is-here"]:
        sys.exit(find() is None)
    environment = _prepared()
    if arguments == ["--prepare"]:
        sys.exit(0)
    if arguments[:1] == ["test"]:
        os.chdir(CHECKOUT)
        workers = {"PYTEST_XDIST_AUTO_NUMWORKERS": str(len(os.sched_getaffinity(0)))}
        _enter(
            environment, ["-m", "pytest", *WORKERS, *arguments[1:]], {**workers, **_test_caches()}
        )
    if not arguments and os.environ.get(_BUILDS):
        _build_machine(environment)
    _enter(environment, ["-m", "qjump_mn.run", *(arguments or ["doctor"])], {})


def _prepared() -> Path:
    """Return the environment, built now if there is none; root also links the launcher.

    Ends the process if it cannot be built.
    """
    from qjump_mn.errors import MachineError
    from qjump_mn.process.heartbeat import heartbeat

    try:
        environment = find()
        if environment is None:
            with heartbeat(_say) as say:
                say(f"makes the Python environment ({_BUILD_TIME})")
                environment = build(say)
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):  # a convenience only: /usr may be read-only
                link()
    except MachineError as error:
        _end(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    return environment


def _build_machine(environment: Path) -> None:
    """Build the virtual machine and the simulator; if that fails, end the process with its exit
    code."""
    import subprocess

    argv, variables = _command(environment, ["-m", "qjump_mn.run", "machine", "build"], {})
    try:
        status = subprocess.run(argv, env=variables, stdout=sys.stderr).returncode
    except KeyboardInterrupt:
        status = 130
    if status:
        sys.exit(status if status > 0 else 130)


def _key(minor: int) -> str:
    from qjump_mn import cache

    return cache.hash_of(LOCK.read_bytes(), f"3.{minor}", os.uname().machine)


def _python(environment: Path) -> str:
    return str(environment / "bin" / "python")


def _is_this(environment: Path) -> bool:
    return os.path.samefile(sys.prefix, environment)


def _missing_packages() -> list[str]:
    from importlib.util import find_spec

    return [name for name in PACKAGES if find_spec(name) is None]


def _enter(environment: Path, arguments: list[str], variables: dict[str, str]) -> NoReturn:
    """Replace this process with the environment's Python."""
    argv, variables = _command(environment, arguments, variables)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(argv[0], argv, variables)


def _command(
    environment: Path, arguments: list[str], variables: dict[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return the command line and variables for the environment's Python.

    It sees the checkout's package, and nothing of the caller's.
    """
    variables = {**os.environ, **variables, "PYTHONPATH": str(CHECKOUT)}
    if os.geteuid() == 0 and CHECKOUT.stat().st_uid != 0:
        # The owner of the checkout could not remove what root writes there.
        variables["PYTHONDONTWRITEBYTECODE"] = "1"
    return [_python(environment), "-P", *arguments], variables


def _give_up_pycache() -> None:
    # This module itself was compiled before anything could be said against it; what comes next is
    # not.
    status = CHECKOUT.stat()
    if os.geteuid() == 0 and status.st_uid != 0:
        sys.dont_write_bytecode = True
        for folder in Path(__file__).resolve().parents[:2]:
            with contextlib.suppress(OSError):
                os.chown(
                    folder / "__pycache__", status.st_uid, status.st_gid, follow_symlinks=False
                )


def _test_caches() -> dict[str, str]:
    """Return variables that move the test tools' caches out of a checkout that is not root's."""
    from qjump_mn import cache

    if os.geteuid() != 0:
        return {}
    folder = cache.roots()[0] / "tests"
    names = {
        "MYPY_CACHE_DIR": "mypy",
        "RUFF_CACHE_DIR": "ruff",
        "HYPOTHESIS_STORAGE_DIRECTORY": "hypothesis",
    }
    variables = {name: str(folder / below) for name, below in names.items()}
    options = (
        f"{os.environ.get('PYTEST_ADDOPTS', '')} -o cache_dir={shlex.quote(str(folder / 'pytest'))}"
    )
    return {**variables, "PYTEST_ADDOPTS": options.strip()}


def _say(line: str) -> None:
    print(f"bootstrap: {line}", file=sys.stderr, flush=True)


def _end(sentence: str) -> NoReturn:
    print(f"qjump-mn: {sentence}", file=sys.stderr)
    raise SystemExit(3)


if __name__ == "__main__":
    main(sys.argv[1:])
