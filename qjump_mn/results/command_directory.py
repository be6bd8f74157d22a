"""Create and open the run directory of a command.

``results/mn-<UTC time>-<command hash>/``: ``manifest.json``, ``own/`` with what went in,
``trials/mn/<seed>/`` with ``raw/`` and ``DONE``, ``log.jsonl``.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.install.provenance import Git
from qjump_mn.model import command as commands
from qjump_mn.model import words
from qjump_mn.model.command import Command
from qjump_mn.results import contents, directory
from qjump_mn.results import manifest as manifests
from qjump_mn.results.directory import AnyRunDirectory, RunDirectory
from qjump_mn.results.manifest import CommandManifest, TrialRecord

FOLDER, PACKAGES, TYPED, MININET = "folder.tar", "packages.lock", "typed", "mininet.tar"
FILES = {
    FOLDER: "folder_sha256",
    PACKAGES: "packages_sha256",
    TYPED: "typed_sha256",
    MININET: "mininet_sha256",
}
"""The files of own/, and the field of the command with the SHA-256 of each; "" there: no file."""

_NAME = words.LINE._replace(noun="a file's name")


class CommandDirectory(AnyRunDirectory[CommandManifest]):
    """The folder of a command's run."""

    @property
    def manifest(self) -> CommandManifest:
        """The manifest on disk now. Raises :class:`UsageError` if this is not a run directory, or
        an experiment's."""
        return manifests.read_command(self.path)

    @property
    def own(self) -> Path:
        """The folder of what went in: the command's folder, what is typed, packages."""
        return self.path / contents.OWN

    def finish(self, name: str, record: TrialRecord) -> None:
        """Record how a trial ended, as for every run.

        Raises :class:`UsageError` for a file whose name no run can have: commands may write any.
        """
        for path in self.trial(name).rglob("*"):
            if problem := _NAME.problem(path.name):
                raise UsageError(
                    f"the command wrote a file whose name a run cannot have, in {path.parent}: "
                    f"{problem}"
                )
        super().finish(name, record)

    def enter_typed(self, typed: bytes) -> None:
        """Record what was typed into the command, if anything was."""
        if not typed:
            return
        (self.own / TYPED).write_bytes(typed)
        digest = hashlib.sha256(typed).hexdigest()

        def with_typed(now: CommandManifest) -> CommandManifest:
            command = msgspec.structs.replace(now.command, typed_sha256=digest)
            return msgspec.structs.replace(now, command=command, command_sha256=command.hash)

        self._change(with_typed)


def create(
    out: Path,
    command: Command,
    own: Mapping[str, bytes],
    *,
    argv: tuple[str, ...],
    git: Git,
    versions: Mapping[str, str],
    machine: Mapping[str, str],
    now: datetime.datetime,
) -> CommandDirectory:
    """Create the run directory of a command in ``out``, with its manifest and the files ``own``, by
    name, of its folder own/; ``now`` is an aware UTC time.

    Raises the errors of :func:`directory.make_room`.
    """
    directory.make_room(out)
    run = CommandDirectory(directory.new_folder(out, commands.NAME, now, command.hash))
    run.own.mkdir()
    for name, content in own.items():
        (run.own / name).write_bytes(content)
    manifest = CommandManifest(
        command=command,
        command_sha256=command.hash,
        backend=manifests.COMMANDS_BACKEND,
        clock="virtual",
        started_utc=directory.iso(now),
        argv=argv,
        git=git,
        versions=dict(versions),
        machine=dict(machine),
        order=tuple(trial.name for trial in command.trials()),
    )
    directory.begin(run.path, manifest)
    return run


def existing(path: Path) -> RunDirectory | CommandDirectory:
    """Return the run directory at ``path``, an experiment's or a command's.

    Raises :class:`UsageError` if there is none.
    """
    path = directory.folder(path)
    is_command = isinstance(manifests.read_any(path), CommandManifest)
    return CommandDirectory(path) if is_command else RunDirectory(path)


def problems(run: Path, manifest: CommandManifest) -> list[str]:
    """Return a sentence for each file in own/ that is not the command's, and one if the command is
    not the one that was run; none for a run as it was made."""
    command = manifest.command
    changed = "the command is not the one that was run" * (command.hash != manifest.command_sha256)
    own = run / contents.OWN
    found = {path.relative_to(own).as_posix() for path in own.rglob("*") if path.is_file()}
    named = {name for name, field in FILES.items() if getattr(command, field)}
    return [
        *filter(None, [changed]),
        *(f"{contents.OWN}/{name} is gone" for name in sorted(named - found)),
        *(f"{contents.OWN}/{name} does not belong to the run" for name in sorted(found - named)),
        *(
            f"{contents.OWN}/{name} is not what the run began with"
            for name in sorted(named & found)
            if manifests.sha256_of(own / name) != getattr(command, FILES[name])
        ),
    ]
