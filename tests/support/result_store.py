"""Keep results of guests, of simulated trials and of long tests, so that later sessions need not
run them again.

A test session (conftest.py) names a folder in $QJUMP_MN_RESULTS. Each piece of work adds a line to
its file `log`. If the folder has a folder `kept`, results are read from there and new ones written
to it. A random twentieth of the hits is run again; a result that differs is a LostError with both
hashes.

The product knows nothing of this: `install` replaces `qjump_mn.guest.run` and
`SimulatorBackend.process` by functions that look here first. In processes that tests start,
startup/sitecustomize.py does it.
"""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import inspect
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

import msgspec
from msgspec.structs import replace

import qjump_mn
from qjump_mn import cache, syntax
from qjump_mn.errors import LostError, MachineError, UsageError
from qjump_mn.guest.job import Image, Job, Result, Setup, encode_job, encode_setup

if TYPE_CHECKING:  # qjump_mn.backends may be half imported when this is
    from qjump_mn.backends.simulator import Said, SimulatorBackend
    from qjump_mn.process.processes import Used

VARIABLE = "QJUMP_MN_RESULTS"
RERUN_SHARE = 0.05
"""The share of hits that is run again."""

GUEST, SIMULATOR = "guest", "simulator"
"""What the log calls results of guests and of simulated trials."""

PACKAGE = Path(qjump_mn.__file__).parent
GUEST_MODULES = ("__init__", "fence", "instance", "job", "result")
"""The modules of qjump_mn.guest that decide a result. What runs in the guest is in the image's
hashes."""

_ENTRY, _FILES = "entry.json", "files"

Outcome = TypeVar("Outcome")
_P = ParamSpec("_P")


def _text(outcome: object) -> list[str]:
    return [str(outcome)]


def _always(outcome: object) -> bool:
    return True


@dataclass(frozen=True)
class Kind(Generic[Outcome]):
    """A kind of work: its `name` in the log, and the type of its outcome.

    `compared` gives the texts of an outcome that must repeat, beside all files. An outcome for
    which `is_lasting` is false is not kept.
    """

    name: str
    outcome: type[Outcome]
    compared: Callable[[Outcome], list[str]] = _text
    is_lasting: Callable[[Outcome], bool] = _always


class Entry(msgspec.Struct, Generic[Outcome], frozen=True, forbid_unknown_fields=True):
    """A kept outcome; `sha256` is over all that must repeat."""

    outcome: Outcome
    sha256: str


def session() -> Path | None:
    """The test session's folder; None outside a session, and for a user who may not write it."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named and os.access(named, os.W_OK) else None


def once(
    session: Path,
    kind: Kind[Outcome],
    key: str,
    work: Callable[[Path], Outcome],
    out: Path | None = None,
) -> Outcome:
    """Return the kept outcome for `key`, or call `work` with a folder that does not exist yet. The
    files that work leaves in that folder are copied into `out`.

    Raises LostError if a rerun differs, and MachineError for a damaged entry.
    """
    whole_key = cache.hash_of(key, cache.hash_of_code(Path(__file__)))
    entry = session / "kept" / f"{kind.name.replace(' ', '-')}-{whole_key}"
    with tempfile.TemporaryDirectory(prefix="qjump-mn-") as folder:
        files = Path(folder, _FILES)
        try:
            return _outcome(session, kind, entry, files, work)
        finally:
            if out is not None and files.is_dir():
                shutil.copytree(files, out, dirs_exist_ok=True)


def _outcome(
    session: Path, kind: Kind[Outcome], path: Path, files: Path, work: Callable[[Path], Outcome]
) -> Outcome:
    """The outcome; its files are in the folder `files`."""
    kept = _read(kind, path)
    if kept and random.SystemRandom().random() >= RERUN_SHARE:
        os.utime(path)
        if (path / _FILES).is_dir():
            shutil.copytree(path / _FILES, files, copy_function=shutil.copyfile)
        if _digest(kind, kept.outcome, files) != kept.sha256:
            raise MachineError(f"{path} is damaged: remove it")
        _log(session, kind, "taken")
        return kept.outcome
    _log(session, kind, "compared" if kept else "run")
    try:
        outcome = work(files)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)  # a result that cannot be repeated is dropped
        raise
    if not kind.is_lasting(outcome):
        return outcome
    new = Entry(outcome, _digest(kind, outcome, files))
    if not kept and path.parent.is_dir():
        kept = _publish(kind, new, files, path)
    if kept and kept.sha256 != new.sha256:
        path.rename(path.with_name(f"{path.name}.differs-{os.getpid()}"))  # never a hit again
        raise LostError(
            f"the {kind.name} does not repeat itself: its result was {kept.sha256} and is "
            f"{new.sha256}; see {path}.differs-*"
        )
    return outcome


def _read(kind: Kind[Outcome], path: Path) -> Entry[Outcome] | None:
    try:
        text = (path / _ENTRY).read_bytes()
    except FileNotFoundError:
        return None
    entry: Entry[Outcome] = msgspec.json.decode(
        text,
        type=Entry[kind.outcome],  # type: ignore[name-defined]
        dec_hook=lambda wanted, value: wanted(value),
    )
    return entry


def _publish(
    kind: Kind[Outcome], entry: Entry[Outcome], files: Path, path: Path
) -> Entry[Outcome] | None:
    """Write an entry. If another process has written it meanwhile, keep and return that one."""
    with tempfile.TemporaryDirectory(prefix=f"{path.name}.tmp-", dir=path.parent) as folder:
        whole = Path(folder, "whole")
        whole.mkdir()
        if files.is_dir():
            shutil.copytree(files, whole / _FILES)
        (whole / _ENTRY).write_bytes(msgspec.json.encode(entry, enc_hook=str))
        try:
            whole.rename(path)
        except OSError:
            return _read(kind, path)
    return None


def _digest(kind: Kind[Outcome], outcome: Outcome, folder: Path) -> str:
    """One hash over the compared texts of an outcome and every file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [f"{path.relative_to(folder)} {cache.hash_of_file(path)}" for path in files]
    return cache.hash_of(*kind.compared(outcome), *names)


def _log(session: Path, kind: Kind[Outcome], word: str) -> None:
    with (session / "log").open("a") as log:
        log.write(f"{kind.name} {word}\n")


def install(module: ModuleType) -> None:
    """Make the module look into the store: qjump_mn.guest or qjump_mn.backends.simulator."""
    if module.__name__ == "qjump_mn.guest":
        _wrap(module, "run", kept_guest)
    else:
        _wrap(module.SimulatorBackend, "process", kept_process)


def _wrap(owner: object, name: str, wrap: Callable[..., object]) -> None:
    """Once only: conftest.py and sitecustomize.py may both do it."""
    original = getattr(owner, name)
    if inspect.unwrap(original) is original:
        setattr(owner, name, wrap(original))


def kept_guest(run: Callable[_P, Result]) -> Callable[_P, Result]:
    """Wrap `qjump_mn.guest.run`, or a function with its arguments, to look into the store first."""

    @functools.wraps(run)
    def stored(*args: _P.args, **kwargs: _P.kwargs) -> Result:
        folder = session()
        # A terminal shows what happens while it does.
        if folder is None or kwargs.get("terminal") is not None:
            return run(*args, **kwargs)
        call = inspect.signature(run).bind(*args, **kwargs)
        call.apply_defaults()
        out: Path = call.arguments["out"]

        def work(files: Path) -> Result:
            call.arguments["out"] = files
            return run(*call.args, **call.kwargs)

        kind = Kind(GUEST, Result, _compared)
        result = once(folder, kind, guest_key(call.arguments), work, out)
        return replace(result, console=out / "console.log")

    return stored


def _compared(result: Result) -> list[str]:
    """Exit code, virtual time and hashes of what goes in and comes out; the console is a file."""
    hashes = {
        name: value for name, value in result.sha256.items() if name not in ("kernel", "initrd")
    }
    return [str(result.exit_code), str(result.virtual_s), str(sorted(hashes.items()))]


def guest_key(arguments: dict[str, object]) -> str:
    """The hash of everything that decides a result; `arguments` are those of `run`, by name."""
    image, setup, job = (arguments[name] for name in ("image", "setup", "job"))
    assert isinstance(image, Image) and isinstance(setup, Setup) and isinstance(job, Job)
    memory = str(arguments["memory_mb"])
    return cache.hash_of(
        *describe(image), encode_setup(setup), encode_job(job), memory, *guest_code()
    )


def describe(image: Image) -> list[str]:
    """What decides the results of an image: its identity, in which prose does not count; else the
    hashes of its files, each after its name."""
    return (
        [image.identity]
        if image.identity
        else [f"{name} {value}" for name, value in sorted(image.sha256.items())]
    )


def guest_code() -> list[str]:
    """The hashes of the modules that start a guest and read its results."""
    return [cache.hash_of_code(PACKAGE / "guest" / f"{name}.py") for name in GUEST_MODULES]


def kept_process(
    process: Callable[..., tuple[Said, Used | None]],
) -> Callable[..., tuple[Said, Used | None]]:
    """Wrap `SimulatorBackend.process` to look into the store first; a hit has used nothing."""

    @functools.wraps(process)
    def stored(
        backend: SimulatorBackend,
        text: bytes,
        progress: Callable[[str], None],
        out: Path | None = None,
    ) -> tuple[Said, Used | None]:
        used: Used | None = None

        def work(folder: Path | None) -> Said:
            nonlocal used
            said, used = process(backend, text, progress, folder if out else None)
            return said

        return simulated(backend.package, text, work, out), used

    return stored


def simulated(
    simulator: Path, text: bytes, work: Callable[[Path | None], Said], out: Path | None = None
) -> Said:
    """Return the kept outcome of the simulator's process for the input `text`, or call `work`.

    `simulator` is the folder that `qjump_sim` is imported from; its name in the cache identifies
    it. The check of a plan has no `out`.
    """
    from qjump_mn.backends.simulator import Said

    folder = session()
    if folder is None or _is_extended():
        return work(out)
    what = "a trial" if out else "a plan"
    key = cache.hash_of(*_installed(), str(simulator), *simulator_code(), what, text)
    return once(folder, Kind(SIMULATOR, Said, is_lasting=_has_ended), key, work, out)


def _has_ended(said: Said) -> bool:
    """Whether the process ended by itself: nobody has killed it."""
    return said.exit_code in (0, UsageError.exit_code)


@functools.cache
def simulator_modules() -> dict[str, Path]:
    """The modules of qjump_mn that the simulator's process may import, by their import statements;
    it imports those of programs by name."""
    from qjump_mn.programs import registry

    programs = [f"{PACKAGE.name}.programs.{name}" for name in registry.OURS]
    names = [f"{program}.{module}" for program in programs for module in ("program", "simulated")]
    waiting, reached = [f"{PACKAGE.name}.simulation.__main__", *names], dict[str, Path]()
    while waiting:
        name = waiting.pop()
        path = _file(name)
        if path and name not in reached:
            reached[name] = path
            waiting += [name.rpartition(".")[0], *_imported(path)]
    return reached


def _file(name: str) -> Path | None:
    """The file of a module of qjump_mn; None for any other name."""
    top, _, rest = name.partition(".")
    path = PACKAGE.joinpath(*rest.split("."))
    files = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in files if file.is_file()), None) if top == PACKAGE.name else None


def _imported(path: Path) -> Iterator[str]:
    """The names in a module's import statements, also in those that only a type checker reads."""
    package = (PACKAGE.name, *path.parent.relative_to(PACKAGE).parts)
    with syntax.PARSING:
        module = ast.parse(path.read_bytes())
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join((*above, *filter(None, [node.module])))
            yield source
            yield from (f"{source}.{alias.name}" for alias in node.names)


@functools.cache
def simulator_code() -> list[str]:
    """The hashes of what these modules do, each after its name."""
    return [
        f"{name} {cache.hash_of_code(path)}" for name, path in sorted(simulator_modules().items())
    ]


@functools.cache
def _installed() -> list[str]:
    """This Python, and every distribution that it has."""
    distributions = importlib.metadata.distributions()
    return [sys.version, *sorted(f"{one.name}={one.version}" for one in distributions)]


def _is_extended() -> bool:
    """Whether others add programs, whose code is not in the key."""
    from qjump_mn import extensions
    from qjump_mn.programs import registry, user_programs

    return bool(extensions.every(registry.PROGRAMS_GROUP) or user_programs.folders())
