"""``compare`` for runs of commands: print how the commands differ, and what they left."""

from __future__ import annotations

import shlex
import string
import tarfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from qjump_mn.cli import compare
from qjump_mn.console import Table
from qjump_mn.errors import UsageError
from qjump_mn.model import words
from qjump_mn.model.command import Command
from qjump_mn.results import command_directory, contents, formatting, repetition
from qjump_mn.results.command_directory import FOLDER, PACKAGES, TYPED, CommandDirectory
from qjump_mn.results.manifest import CommandManifest

TEXTS = {PACKAGES: "packages", TYPED: "typed text"}
"""Files of own/ that are compared line by line, and what to call them."""


class Run(NamedTuple):
    """A command's run, and the letter that names it."""

    letter: str
    path: Path
    directory: CommandDirectory
    manifest: CommandManifest


def read(paths: Sequence[Path]) -> list[Run]:
    """Read the runs in these directories; return [] if they are experiments'.

    Raises :class:`UsageError` if they cannot be compared.
    """
    compare.check_number(paths)
    found = [command_directory.existing(path) for path in paths]
    of_commands = [run for run in found if isinstance(run, CommandDirectory)]
    if of_commands and len(of_commands) < len(found):
        experiment = next(run for run in found if not isinstance(run, CommandDirectory))
        raise UsageError(
            f"{of_commands[0].path} is the run of a command and {experiment.path} that of an "
            "experiment: compare runs of one kind"
        )
    return [
        Run(letter, path, run, run.manifest)
        for letter, path, run in zip(string.ascii_uppercase, paths, of_commands, strict=False)
    ]


def show(runs: Sequence[Run], out: Console) -> None:
    """Print the runs, how the commands differ from the first one's, and how their output does.

    Raises :class:`UsageError` if no seed is done in all runs.
    """
    first = runs[0]
    names = [
        trial.name
        for trial in first.manifest.command.trials()
        if all(run.directory.is_done(trial.name) for run in runs)
    ]
    if not names:
        raise UsageError("the runs cannot be compared: no seed is done in all of them")
    for run in runs:
        command = run.manifest.command
        about = f"{shlex.join(command.argv)}, {formatting.seeds(command.seeds)}"
        out.print(f"{run.letter}  {run.path}: {words.plain(about)}", markup=False)
    for run in runs[1:]:
        lines = list(_differences(first, run)) or [
            f"{run.letter} has the command of {first.letter}"
        ]
        for line in lines:
            out.print(words.plain(line), markup=False)
    for name in names:
        for run in runs[1:]:
            out.print(_outputs(first, run, name), markup=False)
    out.print("")
    out.print(_table(runs, names))


def _differences(first: Run, other: Run) -> Iterator[str]:
    """Yield a line for each difference between the commands, and the machines, of two runs."""
    letters = first.letter, other.letter
    commands = first.manifest.command, other.manifest.command
    images = [run.manifest.machine.get("image", "")[:12] or "none" for run in (first, other)]
    if images[0] != images[1]:
        yield f"{letters[1]} was made with image {images[1]}, {letters[0]} with {images[0]}"
    argv = [shlex.join(command.argv) for command in commands]
    if argv[0] != argv[1]:
        yield f"{letters[1]} ran  {argv[1]}, {letters[0]}  {argv[0]}"
    for settings in zip(*map(_settings, commands), strict=True):
        if settings[0] != settings[1]:
            yield f"{letters[1]} has {settings[1]}, {letters[0]} {settings[0]}"
    if commands[0].folder_sha256 != commands[1].folder_sha256:
        yield f"{letters[1]}'s folder {_folders_differ(first, other)}"
    for name, noun in TEXTS.items():
        field = command_directory.FILES[name]
        if getattr(commands[0], field) != getattr(commands[1], field):
            paths = first.directory.own / name, other.directory.own / name
            text = repetition.difference(*paths, names=repetition.Names(*letters))
            yield f"{letters[1]} has other {noun} in {contents.OWN}/{name}: {text}"
    mininets = [command.mininet_sha256[:12] or "the machine's" for command in commands]
    if mininets[0] != mininets[1]:
        yield f"{letters[1]} ran with Mininet {mininets[1]}, {letters[0]} with {mininets[0]}"


def _settings(command: Command) -> list[str]:
    """Return each setting of a command with its name."""
    link = f"link {command.link or 'of Mininet'}"
    deadline = f"deadline {command.deadline_ns / 1e9:g} s"
    return [link, formatting.seeds(command.seeds), deadline, f"memory {command.memory_mb} MB"]


def _folders_differ(first: Run, other: Run) -> str:
    """Say which file of the folders that went in differs."""
    try:
        firsts, others = (_entries(run.directory.own / FOLDER) for run in (first, other))
    except (OSError, tarfile.TarError) as error:
        return f"is another, and cannot be read: {error}"
    names = sorted({*firsts, *others})
    different = [name for name in names if firsts.get(name) != others.get(name)]
    if not different:
        return "has the same files, in another order or with other folders"
    name = different[0]
    reason = "which differs"
    if name not in others:
        reason = f"which only {first.letter} has"
    elif name not in firsts:
        reason = f"which {first.letter} has not"
    return f"differs in {len(different)} of {len(names)} files, first in {name}, {reason}"


def _entries(path: Path) -> dict[str, tuple[object, ...]]:
    """Return what identifies each entry of a tar file that is no folder, by name.

    Nothing is unpacked.
    """
    with tarfile.open(path, "r:") as archive:
        return {
            entry.name: (entry.type, entry.mode, entry.linkname, _sha256(archive, entry))
            for entry in archive
            if not entry.isdir()
        }


def _sha256(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> str:
    if entry.issparse():  # it may say that it has an exabyte, and a stranger made it
        raise tarfile.ReadError(f"{entry.name} is a sparse file")
    file = archive.extractfile(entry) if entry.isreg() else None
    return sha256(file.read()).hexdigest() if file else ""


def _outputs(first: Run, other: Run, name: str) -> str:
    """Say how the output of one seed differs in two runs."""
    letters = repetition.Names(first.letter, other.letter)
    paths = first.directory.path, other.directory.path
    files, text = repetition.compare(*paths, name, part=contents.RAW, names=letters)
    if text:
        return f"{name}: {other.letter} differs from {first.letter} {text}"
    return f"{name}: identical in {first.letter} and {other.letter}, all {files} files"


def _table(runs: Sequence[Run], names: Sequence[str]) -> Table:
    """Return the exit code and the virtual time of each seed in each run."""
    table = Table(box=None, pad_edge=False)
    for column in ("trial", "value"):
        table.add_column(column, overflow="fold")
    for run in runs:
        table.add_column(run.letter, justify="right", overflow="fold")
    for name in names:
        records = [run.manifest.trials.get(name) for run in runs]
        times = [record and record.virtual_s for record in records]
        table.add_row(
            name, "exit code", *("" if one is None else f"{one.exit_code}" for one in records)
        )
        table.add_row("", "virtual s", *("" if time is None else f"{time:.6g}" for time in times))
    return table
