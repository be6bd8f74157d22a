"""``bundle``: pack a run into one file."""

from __future__ import annotations

from pathlib import Path

from qjump_mn.cli.bundle import archive
from qjump_mn.errors import UsageError, command
from qjump_mn.report import notes
from qjump_mn.results import command_directory, contents, directory, outcome
from qjump_mn.results.command_directory import CommandDirectory
from qjump_mn.results.directory import RunDirectory

ENDING = ".qjump.zip"


def write(path: Path, target: Path | None = None) -> Path:
    """Write the run at ``path`` into the bundle ``target``, or NAME.qjump.zip in the current
    folder.

    Returns the bundle's path. Raises :class:`UsageError` for an experiment's run that was not
    judged, a run whose files have changed since its trials ended, and one with a file whose name
    no bundle has.
    """
    run = command_directory.existing(path)
    if isinstance(run, CommandDirectory):
        names, repair = _of_command(run), "run the command again"
    else:
        names, repair = _of_experiment(run), f"run  {command('resume', run.path)}  first"
    manifest = run.manifest
    if changes := contents.discrepancies(run.path, manifest):
        raise UsageError(f"{run.path} is not as its trials left it: {changes[0]}")
    if unfinished := contents.unmarked(run.path, manifest):
        raise UsageError(f"{run.path}: {unfinished[0]}: {repair}")
    marks = (f"{contents.TRIALS}/{name}/{contents.MARK}" for name in manifest.trial_names)
    pictures = (path.name for path in run.path.iterdir() if notes.kind_of(path))
    users = (path.relative_to(run.path) for path in (run.path / contents.OWN).rglob("*"))
    own = sorted(path.as_posix() for path in users)
    left = contents.hashes(run.path)
    if refusal := archive.refusal(left):
        raise UsageError(f"{run.path}: {refusal}")
    files: dict[str, Path | bytes] = {
        name: run.path / name
        for name in (*left, *marks, *names, *pictures, *archive.FILES, *own)
        if (run.path / name).is_file()
    }
    target = target or Path(f"{run.path.name}{ENDING}")
    if target.is_dir():
        target = target / f"{run.path.name}{ENDING}"
    if target.resolve().is_relative_to(run.path):
        raise UsageError(f"--out: {target} is inside the run: name a file elsewhere")
    archive.write(target, files)
    directory.hand_over(target)
    return target


def _of_experiment(run: RunDirectory) -> list[str]:
    """Return the names of the figures and time lines of a run, which must have been judged."""
    judged = outcome.read(run.path)
    figures = (file for drawing in judged.drawings for file in drawing.files.values())
    timelines = (contents.timeline(trial) for trial in run.manifest.plan.unperturbed.trials())
    return [*figures, *timelines]


def _of_command(run: CommandDirectory) -> list[str]:
    """Check what went into a command's run; it has no figures."""
    if problems := command_directory.problems(run.path, run.manifest):
        raise UsageError(f"{run.path} is not as it began: {problems[0]}")
    return []
