"""Read and write ``manifest.json``: the plan, the machine, how trials ended, and their files'
hashes."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from qjump_mn import __version__
from qjump_mn.errors import UsageError, reason_of
from qjump_mn.install.provenance import Git
from qjump_mn.model import words
from qjump_mn.model.plan import Plan
from qjump_mn.model.topology import Network
from qjump_mn.process.files import write_atomically
from qjump_mn.programs import registry

NAME = "manifest.json"
SCHEMA = 3

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


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A run, complete or not; times are UTC in ISO 8601, paths are relative to the run directory.

    ``machine`` has the hashes of what ran, such as kernel and initrd; ``image`` combines those that
    another machine can have too. ``order`` is the order in which the trials were started.

    ``plan_sha256`` covers what the plan runs, ``judged_sha256`` what it judges: results are valid
    for these only. ``files`` has the SHA-256 of every file that a trial left.
    """

    schema: Literal[3] = 3
    plan: Plan
    plan_sha256: str
    judged_sha256: str
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
    """Return the manifest of the run in ``folder``.

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
    try:
        manifest = msgspec.json.decode(content, type=Manifest, dec_hook=registry.decode)
    except msgspec.DecodeError as error:
        _check_programs(path, content, outline)
        problem = registry.sentence(error)
        raise UsageError(
            f"{path} is no manifest of this version: {problem}: use {outline.maker}"
        ) from None
    _check_names(path, manifest.plan)
    return manifest


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


def write(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of the run in ``folder`` atomically.

    Raises :class:`UsageError` for control characters.
    """
    content = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    _check_printable(folder / NAME, content)
    write_atomically(folder / NAME, content)


class _Outline(msgspec.Struct):
    """The keys that manifests of all versions have."""

    schema: int
    versions: dict[str, str] = {}
    git: dict[str, str | bool] | None = None

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
