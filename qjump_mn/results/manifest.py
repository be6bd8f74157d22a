"""Read and write ``manifest.json``: the plan or command, the machine, how trials ended, and their
files' hashes."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn

import msgspec

from qjump_mn import __version__
from qjump_mn.errors import UsageError, reason_of
from qjump_mn.install.provenance import Git
from qjump_mn.model import words
from qjump_mn.model.command import Command
from qjump_mn.model.plan import Plan
from qjump_mn.model.topology import Network
from qjump_mn.process.files import write_atomically
from qjump_mn.programs import registry

NAME = "manifest.json"
SCHEMA = 3
COMMANDS_BACKEND = "guest"
"""The backend of commands."""

_CONTROL = re.compile(rb"\\u00(?:[01][0-9a-f]|7f|[89][0-9a-f])|\x7f|\xc2[\x80-\x9f]", re.IGNORECASE)
"""Control characters in JSON. Newline and tab are allowed: JSON escapes them differently."""

Clock = Literal["virtual", "real"]
Status = Literal["done", "lost", "invalid"]


class TrialRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a trial ended. ``invalid``: the network was not built as planned. ``lost``: a program or
    the guest died.

    ``virtual_s`` is on the clock of the network under test, ``wall_s`` on that of the machine that
    ran it. ``cpu_s`` is the processor time used, ``memory_mb`` the peak memory.
    """

    status: Status
    exit_code: int
    message: str = ""
    virtual_s: float | None = None
    wall_s: float | None = None
    cpu_s: float | None = None
    memory_mb: int | None = None


class RunManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a run was made and how it ended, complete or not; times are UTC in ISO 8601, paths are
    relative to the run directory.

    ``machine`` has the hashes of what ran, such as kernel and initrd; ``image`` combines those that
    another machine can have too. ``order`` is the order in which the trials were started. ``files``
    has the SHA-256 of every file that a trial left.
    """

    schema: Literal[3] = 3
    backend: str
    clock: Clock
    started_utc: str
    ended_utc: str | None = None
    argv: tuple[str, ...]
    git: Git
    versions: dict[str, str] = {}
    machine: dict[str, str] = {}
    order: tuple[str, ...] = ()
    trials: dict[str, TrialRecord] = {}
    files: dict[str, str] = {}


class Manifest(RunManifest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A run of an experiment, complete or not; times are UTC in ISO 8601, paths are relative to the
    run directory.

    ``machine`` has the hashes of what ran, such as kernel and initrd; ``image`` combines those that
    another machine can have too. ``order`` is the order in which the trials were started.

    ``plan_sha256`` covers what the plan runs, ``judged_sha256`` what it judges: results are valid
    for these only. ``files`` has the SHA-256 of every file that a trial left.
    """

    plan: Plan
    plan_sha256: str
    judged_sha256: str

    @property
    def trial_names(self) -> tuple[str, ...]:
        """The names of all trials."""
        return tuple(trial.name for trial in self.plan.trials())

    @property
    def result_names(self) -> tuple[str, ...]:
        """The names of the trials whose output is a result: perturbed runs are none."""
        return tuple(trial.name for trial in self.plan.unperturbed.trials())


class CommandManifest(RunManifest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A run of a command, complete or not: what other runs have, with a command for the plan.

    A trial is one execution of the command, with one seed. It is done whenever the command itself
    ended; ``exit_code`` is then the command's own. ``command_sha256`` covers all of the command but
    the list of seeds.
    """

    command: Command
    command_sha256: str

    @property
    def trial_names(self) -> tuple[str, ...]:
        """The names of all trials."""
        return tuple(trial.name for trial in self.command.trials())

    @property
    def result_names(self) -> tuple[str, ...]:
        """The names of the trials whose output is a result: all."""
        return self.trial_names


AnyManifest = Manifest | CommandManifest


def digest(files: Mapping[str, str]) -> str:
    """Return the SHA-256 over the sorted lines "<sha256>  <path>", as sha256sum prints them."""
    return hashlib.sha256(
        "".join(f"{files[path]}  {path}\n" for path in sorted(files)).encode()
    ).hexdigest()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(folder: Path) -> Manifest:
    """Return the manifest of an experiment's run in ``folder``.

    Raises :class:`UsageError` if there is none, if it is a command's, or if this version cannot
    read it.
    """
    manifest = read_any(folder)
    if isinstance(manifest, CommandManifest):
        raise UsageError(
            f"{folder} is the run of a command, not of an experiment: verify, compare, bundle and "
            "check take it"
        )
    return manifest


def read_command(folder: Path) -> CommandManifest:
    """Return the manifest of a command's run in ``folder``.

    Raises :class:`UsageError` if there is none, if it is an experiment's, or if this version cannot
    read it.
    """
    manifest = read_any(folder)
    if isinstance(manifest, Manifest):
        raise UsageError(
            f"{folder} is the run of experiment {manifest.plan.shown.experiment}, not of a command"
        )
    return manifest


def read_any(folder: Path) -> AnyManifest:
    """Return the manifest of the run in ``folder``, an experiment's or a command's.

    Raises :class:`UsageError` if there is none, or if this version cannot read it.
    """
    path = folder / NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"{folder} is no run directory: it has no {NAME}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {reason_of(error)}") from None
    _check_printable(path, content)
    try:
        outline = msgspec.json.decode(content, type=_Outline)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is no manifest: {error}") from None
    if outline.schema != SCHEMA:
        raise UsageError(
            f"{path} has schema {outline.schema}, this qjump-mn reads schema {SCHEMA}: use "
            f"{outline.maker}"
        )
    return (_read_command if outline.command else _read)(path, content, outline)


def _read(path: Path, content: bytes, outline: _Outline) -> Manifest:
    try:
        manifest = msgspec.json.decode(content, type=Manifest, dec_hook=registry.decode)
    except msgspec.DecodeError as error:
        _check_programs(path, content, outline)
        _refuse(path, registry.sentence(error), outline)
    manifest.plan.check_size(str(path))
    _check_names(path, manifest.plan)
    return manifest


def _read_command(path: Path, content: bytes, outline: _Outline) -> CommandManifest:
    try:
        manifest = msgspec.json.decode(content, type=CommandManifest)
    except msgspec.DecodeError as error:
        _refuse(path, str(error), outline)
    manifest.command.check(str(path))
    if (manifest.backend, manifest.clock) != (COMMANDS_BACKEND, "virtual"):
        raise UsageError(
            f"{path} names backend {manifest.backend!r} and clock {manifest.clock}, and commands "
            "run in the guest: it was edited"
        )
    return manifest


def _refuse(path: Path, problem: str, outline: _Outline) -> NoReturn:
    raise UsageError(f"{path} is no manifest of this version: {problem}: use {outline.maker}")


def _check_printable(path: Path, content: bytes) -> None:
    """Raise :class:`UsageError` for control characters: a stranger's run could command the
    terminal."""
    if _CONTROL.search(content):
        raise UsageError(f"{path} has control characters: a run's names and words have none")


def _check_programs(path: Path, content: bytes, outline: _Outline) -> None:
    """Raise :class:`UsageError` if a program of the plan is missing here or cannot be used.

    It is a user's own program, unless another version, which may have more programs, made the run.
    """
    try:
        arms = msgspec.json.decode(content, type=_Programs).plan.run.arms
    except msgspec.DecodeError:
        return
    used = dict.fromkeys(workload.program for arm in arms for workload in arm.workloads)
    registry.check(used)
    missing = [name for name in used if name not in registry.names() and name.isidentifier()]
    if missing and outline.versions.get("qjump-mn") == __version__:
        name = missing[0]
        raise UsageError(
            f"{path}: program {name!r} is not found here: start from the folder that has "
            f"programs/{name}, set QJUMP_MN_PATH to it, or install the package that brings it"
        )


def _check_names(path: Path, plan: Plan) -> None:
    """Raise :class:`UsageError` for a name that would lead out of the run's folder.

    The run may be a stranger's.
    """
    arms = itertools.chain(plan.run.arms, *plan.run.varied.values())
    of_arms = (
        name
        for arm in arms
        for name in (arm.name, *(workload.name for workload in arm.workloads), *_nodes(arm.network))
    )
    words.check(
        words.FILE, f"{path}", plan.shown.experiment, plan.shown.preset, *dict.fromkeys(of_arms)
    )


def _nodes(network: Network) -> tuple[str, ...]:
    """Return the names of hosts and switches in the plan; those of a fabric are generated, not
    read."""
    return () if network.fabric else (*network.hosts, *network.switches)


def write(folder: Path, manifest: AnyManifest) -> None:
    """Replace the manifest of the run in ``folder`` atomically.

    Raises :class:`UsageError` for control characters.
    """
    content = msgspec.json.format(msgspec.json.encode(_ordered(manifest)), indent=1) + b"\n"
    _check_printable(folder / NAME, content)
    write_atomically(folder / NAME, content)


def _ordered(manifest: AnyManifest) -> dict[str, Any]:
    """Return the manifest's fields: the schema and what was run before what all runs have."""
    fields = msgspec.structs.asdict(manifest)
    common = RunManifest.__struct_fields__[1:]
    return {name: fields[name] for name in sorted(fields, key=lambda name: name in common)}


class _Outline(msgspec.Struct):
    """The keys that manifests of all versions have, and the one that a command's has."""

    schema: int
    versions: dict[str, str] = {}
    git: dict[str, str | bool] | None = None
    command: msgspec.Raw = msgspec.Raw()

    @property
    def maker(self) -> str:
        """The version, and the commit if known, that wrote the manifest."""
        commit = f", commit {self.git['commit']}" if self.git and "commit" in self.git else ""
        return f"the one that made it, {self.versions.get('qjump-mn', 'unknown')}{commit}"


class _Workload(msgspec.Struct):
    program: str


class _Arm(msgspec.Struct):
    workloads: list[_Workload]


class _Arms(msgspec.Struct):
    arms: list[_Arm]


class _Planned(msgspec.Struct):
    run: _Arms


class _Programs(msgspec.Struct):
    """The names of the programs in a manifest's plan, installed or not."""

    plan: _Planned
