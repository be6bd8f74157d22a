"""Create and change a run directory, and give it to the right user.

``results/<experiment>-<UTC time>-<plan hash>/``: ``manifest.json``,
``trials/<arm>/<seed>/{raw,asbuilt,data}/``, ``trial.json`` and ``DONE`` beside them, ``fig/``,
``timeline/``, ``verdicts.json``, ``report.html``, ``report.md``, ``log.jsonl``. ``results/last``
points to the newest.

:mod:`qjump_mn.results.command_directory` does it for commands.
"""

from __future__ import annotations

import abc
import contextlib
import datetime
import fcntl
import os
import pwd
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from qjump_mn.errors import MachineError, UsageError, is_full, reason_of
from qjump_mn.install.provenance import Git
from qjump_mn.model import identity
from qjump_mn.model.plan import Plan
from qjump_mn.process.caller import Caller, caller
from qjump_mn.process.files import write_atomically
from qjump_mn.results import contents
from qjump_mn.results import manifest as manifests
from qjump_mn.results.manifest import AnyManifest, Clock, CommandManifest, Manifest, TrialRecord

NEEDS_BYTES = 200 << 20
"""Free space needed to start a run: nine arms with five replicates leave about 60 MB."""

HASH_LETTERS = 12
"""The letters of the plan's or the command's hash in a folder's name."""

_TRIES = 100


M = TypeVar("M", Manifest, CommandManifest)


class AnyRunDirectory(abc.ABC, Generic[M]):
    """One run's folder. Methods that change it may be called from several threads of one
    process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    @property
    @abc.abstractmethod
    def manifest(self) -> M:
        """The manifest on disk now. Raises :class:`UsageError` if there is none of this kind."""

    def trial(self, name: str) -> Path:
        """Return the folder of the trial called ``name`` ("arm/seed")."""
        return self.path / contents.TRIALS / name

    def raw(self, name: str) -> Path:
        """Return the folder of the programs' verbatim output in a trial."""
        return self.trial(name) / contents.RAW

    def prepare(self, name: str) -> Path:
        """Return an empty folder for a trial; what an interrupted attempt left there is removed."""
        folder = self.trial(name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def is_done(self, name: str) -> bool:
        """Whether the trial is marked done, so that it is not run again."""
        return (self.trial(name) / contents.MARK).is_file()

    def unmark(self, name: str) -> None:
        """Remove the mark, so that the trial is run again."""
        (self.trial(name) / contents.MARK).unlink(missing_ok=True)

    def finish(self, name: str, record: TrialRecord) -> None:
        """Record how a trial ended and the hashes of its files; last, mark it done if it is."""
        files = contents.hashes(self.path, name)

        def with_trial(now: M) -> M:
            others = {
                path: sha
                for path, sha in now.files.items()
                if not path.startswith(f"{contents.TRIALS}/{name}/")
            }
            return msgspec.structs.replace(
                now,
                trials={**now.trials, name: record},
                files=dict(sorted({**others, **files}.items())),
            )

        self._change(with_trial)
        done = self.trial(name) / contents.MARK
        if record.status == "done":
            write_atomically(done, manifests.digest(files).encode() + b"\n")
        else:
            done.unlink(missing_ok=True)
        # Only this trial's files and its parent folders: other threads prepare other trials now.
        owner = owner_of(self.path)
        hand_over(self.trial(name), owner)
        for folder in self.trial(name).parents[: 1 + name.count("/")]:
            _give(folder, owner)

    def enter_machine(self, machine: Mapping[str, str]) -> None:
        """Add facts about the machine to the manifest."""
        self._change(lambda now: msgspec.structs.replace(now, machine={**now.machine, **machine}))

    def close(self, ended: datetime.datetime, machine: Mapping[str, str] | None = None) -> None:
        """Record when the run ended, and add facts about the machine."""
        self._change(
            lambda now: msgspec.structs.replace(
                now, ended_utc=iso(ended), machine={**now.machine, **(machine or {})}
            )
        )

    def lost(self) -> dict[str, str]:
        """Return the message of each trial that was lost or is invalid, by name."""
        return {
            name: record.message
            for name, record in self.manifest.trials.items()
            if record.status != "done"
        }

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Lock the run directory, so that no other process runs its trials within the block.

        The lock ends with this process. Raises :class:`UsageError` if another process holds it.
        """
        handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"{self.path} is being run by another process: wait for its end"
                ) from None
            yield
        finally:
            os.close(handle)

    def log(self, event: str, **fields: object) -> None:
        """Append one event to ``log.jsonl``, with the time."""
        line = (
            msgspec.json.encode(
                {"utc": iso(datetime.datetime.now(datetime.UTC)), "event": event, **fields}
            )
            + b"\n"
        )
        # No lock: the kernel never interleaves two single writes to a file opened for appending.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        handle = os.open(self.path / "log.jsonl", flags, 0o644)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)

    def _change(self, change: Callable[[M], M]) -> None:
        with self._lock:
            manifests.write(self.path, change(self.manifest))
        hand_over(self.path / manifests.NAME, owner_of(self.path))


class RunDirectory(AnyRunDirectory[Manifest]):
    """The folder of an experiment's run."""

    @property
    def manifest(self) -> Manifest:
        """The manifest on disk now. Raises :class:`UsageError` if this is not a run directory, or
        a command's."""
        return manifests.read(self.path)

    @property
    def figures(self) -> Path:
        """The folder of the figures."""
        return self.path / "fig"

    def asbuilt(self, name: str) -> Path:
        """Return the folder of the network's state as it was read back in a trial."""
        return self.trial(name) / "asbuilt"

    def data(self, name: str) -> Path:
        """Return the folder of a trial's tables."""
        return self.trial(name) / contents.DATA


def create(
    out: Path,
    plan: Plan,
    *,
    backend: str,
    clock: Clock,
    argv: tuple[str, ...],
    git: Git,
    versions: Mapping[str, str],
    machine: Mapping[str, str],
    now: datetime.datetime,
    needs_bytes: int = NEEDS_BYTES,
) -> RunDirectory:
    """Create a run directory with its manifest in ``out``; ``now`` is an aware UTC time.

    Raises the errors of :func:`make_room`.
    """
    make_room(out, needs_bytes)
    path = new_folder(out, plan.shown.experiment, now, plan.hash)
    manifest = Manifest(
        plan=plan,
        plan_sha256=plan.hash,
        judged_sha256=identity.sha256(plan.judged),
        backend=backend,
        clock=clock,
        started_utc=iso(now),
        argv=argv,
        git=git,
        versions=dict(versions),
        machine=dict(machine),
        order=tuple(trial.name for trial in plan.trials()),
    )
    begin(path, manifest)
    return RunDirectory(path)


def begin(path: Path, manifest: AnyManifest) -> None:
    """Write the first manifest of a new run directory, which is then the newest."""
    manifests.write(path, manifest)
    _point_last_to(path)
    hand_over(path)


def make_room(out: Path, needs_bytes: int = NEEDS_BYTES) -> None:
    """Create the folder ``out`` for run directories if it does not exist.

    Raises :class:`UsageError` if it cannot be written, :class:`MachineError` if the disk is full.
    """
    for folder in _make(out):
        hand_over(folder)
    free = shutil.disk_usage(out).free
    if free < needs_bytes:
        raise MachineError(
            f"no room for the results: {out} has {free >> 20} MiB of the {needs_bytes >> 20} MiB "
            "that a run may take; use --out"
        )


def existing(path: Path) -> RunDirectory:
    """Return the run directory of an experiment at ``path``.

    Raises :class:`UsageError` if there is none, or if it is a command's.
    """
    run = RunDirectory(folder(path))
    run.manifest  # noqa: B018 - raises for a command's
    return run


def folder(path: Path) -> Path:
    """Return the absolute path of a run directory; raise :class:`UsageError` if there is none."""
    if not path.is_dir():
        raise UsageError(f"there is no run directory {path}")
    return path.resolve()


def owner_of(run: Path) -> Caller | None:
    """Return the user who gets the run directory and analyses it: sudo's caller, else its owner.

    None if that is the user of this process.
    """
    if (user := caller()) or os.geteuid() != 0 or not run.is_dir():
        return user
    status = run.stat()
    if status.st_uid == 0:
        return None
    try:
        return Caller(status.st_uid, pwd.getpwuid(status.st_uid).pw_gid)
    except KeyError:
        return Caller(status.st_uid, status.st_gid or status.st_uid)


def hand_over(path: Path, user: Caller | None = None) -> None:
    """Give ``path`` and all below it to ``user``, by default to sudo's caller, if there is one."""
    user = user or caller()
    if user is None:
        return
    _give(path, user)
    for _, folders, files, handle in os.fwalk(path):
        for name in (
            *folders,
            *files,
        ):  # relative to the open folder: its path may have been replaced
            os.chown(name, *user, dir_fd=handle, follow_symlinks=False)


def _give(path: Path, user: Caller | None) -> None:
    """Give ``path``, but nothing below it, to the user, if there is one."""
    if user:
        # Do not follow a link: its target may belong to anybody.
        os.chown(path, *user, follow_symlinks=False)


def _make(out: Path) -> list[Path]:
    """Create ``out`` and its missing parents; return the new folders, the outermost first."""
    try:
        missing = [folder for folder in (out, *out.parents) if not folder.exists()]
        out.mkdir(parents=True, exist_ok=True)
        probe = out / f".write-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise _refusal(out, error) from None
    return list(reversed(missing))


def _refusal(out: Path, error: OSError) -> UsageError | MachineError:
    if is_full(error):
        return MachineError(
            f"no room for the results: the disk of {out} is full; make room or use --out"
        )
    return UsageError(
        f"results cannot be written to {out} ({reason_of(error)}): use --out with a folder that "
        "you may write"
    )


def new_folder(out: Path, name: str, now: datetime.datetime, sha256: str) -> Path:
    """Create the folder of a run called ``name`` in ``out``; ``sha256`` is that of its plan or
    command."""
    name = f"{name}-{now:%Y%m%dT%H%M%SZ}-{sha256[:HASH_LETTERS]}"
    for attempt in range(1, _TRIES):  # two runs of one plan may start in one second
        path = out / (name if attempt == 1 else f"{name}-{attempt}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise _refusal(out, error) from None
        return path
    raise UsageError(f"{out} has {_TRIES} runs of this plan that started in one second: use --out")


def _point_last_to(path: Path) -> None:
    link = path.parent / "last"
    if link.exists() and not link.is_symlink():
        return  # somebody's own file or folder of that name
    temporary = path.parent / f".last-{os.getpid()}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(path.name)
    os.replace(temporary, link)
    if os.geteuid() == 0:
        hand_over(link)


def iso(time: datetime.datetime) -> str:
    """Return a time as manifests have it: UTC in ISO 8601, without fractions."""
    return time.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
