"""Find earlier runs of an experiment, or of a command, in a folder."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model import command as commands
from qjump_mn.model.command import Command
from qjump_mn.results import contents, outcome, repetition
from qjump_mn.results.command_directory import CommandDirectory
from qjump_mn.results.directory import HASH_LETTERS, RunDirectory
from qjump_mn.results.manifest import CommandManifest, Manifest
from qjump_mn.results.outcome import Outcome

_NAMES = repetition.Names("that run", "this run")


class EarlierRun(NamedTuple):
    """A run directory with its manifest, as read when it was found."""

    directory: RunDirectory
    manifest: Manifest

    @property
    def left(self) -> int:
        """The number of trials that are not done."""
        return sum(not self.directory.is_done(name) for name in self.manifest.order)

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the whole run; None if trials are missing, or were in its last
        analysis."""
        if self.left:
            return None
        try:
            result = outcome.read(self.directory.path)
        except UsageError:
            return None
        return None if result.missing else result


def newest_first(folder: Path, experiment: str) -> list[EarlierRun]:
    """Return the runs of ``experiment`` in ``folder``, without those that this version cannot
    read."""
    runs = []
    for path in folder.glob(f"{experiment}-*"):
        run = RunDirectory(path.resolve())
        try:
            manifest = run.manifest
        except UsageError:
            continue
        if (
            manifest.plan.shown.experiment == experiment
        ):  # the pattern for hadoop also matches hadoop-codel
            runs.append(EarlierRun(run, manifest))
    # Of two runs that started in the same second, the later one has a numeric suffix.
    return sorted(
        runs,
        key=lambda run: (
            run.manifest.started_utc,
            len(run.directory.path.name),
            run.directory.path.name,
        ),
        reverse=True,
    )


def earlier(out: Path, run: CommandDirectory) -> str:
    """Compare the output of a command's run with the newest run in ``out`` of the same command that
    has its seeds.

    Returns the end of a sentence, such as "identical to your run of 12:03:05"; "" if there is none.
    """
    manifest = run.manifest
    results = contents.results(run.path, manifest).trials
    other = _newest_with(out, run, manifest, results) if results else None
    if other is None:
        return ""
    other_manifest = other.manifest
    other_results = contents.results(other.path, other_manifest).trials
    images = {each.machine.get("image") for each in (manifest, other_manifest)}
    its = f"your run of {_time(other_manifest, manifest)}"
    its += ", made by another machine" if len(images) > 1 else ""
    different = [name for name, digest in results.items() if other_results.get(name) != digest]
    if not different:
        return f"identical to {its}"
    if len(images) > 1:
        return f"differs from {its}"
    trial = next(trial for trial in manifest.command.trials() if trial.name in different)
    seed = f" with seed {trial.seed}" if len(manifest.command.seeds) > 1 else ""
    _, text = repetition.compare(other.path, run.path, trial.name, part=contents.RAW, names=_NAMES)
    return f"differs from {its}{seed} {text}"


def _newest_with(
    out: Path, run: CommandDirectory, manifest: CommandManifest, names: Collection[str]
) -> CommandDirectory | None:
    """Return the newest other run of the command in ``out`` in which these trials are done."""
    for path in _of_command(out, manifest.command):
        other = CommandDirectory(path.resolve())
        if other.path == run.path.resolve() or not all(map(other.is_done, names)):
            continue
        try:
            if other.manifest.command_sha256 == manifest.command_sha256:
                return other
        except UsageError:
            continue
    return None


def _of_command(out: Path, command: Command) -> Iterator[Path]:
    """Yield the folders in ``out`` whose names are those of a command's runs, the newest first.

    Nothing is read: there may be a thousand. A run whose input was typed by a person got its name
    before that.
    """
    named = {command.hash, msgspec.structs.replace(command, typed_sha256="").hash}
    hashes = "|".join(sha256[:HASH_LETTERS] for sha256 in named)
    name = re.compile(rf"{commands.NAME}-([0-9]{{8}}T[0-9]{{6}}Z)-(?:{hashes})(?:-([0-9]+))?")
    found = ((name.fullmatch(path.name), path) for path in out.iterdir())
    order = [(match[1], int(match[2] or 1), path) for match, path in found if match]
    yield from (path for *_, path in sorted(order, reverse=True))


def _time(manifest: CommandManifest, now: CommandManifest) -> str:
    """Return the time at which a run began, on the user's clock, with the day if that is not the
    day of ``now``."""
    began, today = (
        datetime.datetime.fromisoformat(each.started_utc).astimezone() for each in (manifest, now)
    )
    return f"{began:%H:%M:%S}" if began.date() == today.date() else f"{began:%Y-%m-%d %H:%M:%S}"
