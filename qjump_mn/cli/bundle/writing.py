"""``bundle``: pack a run into one file."""

from __future__ import annotations

from pathlib import Path

from qjump_mn.cli.bundle import archive
from qjump_mn.errors import UsageError, command
from qjump_mn.report import notes
from qjump_mn.results import contents, directory, outcome, user_files

ENDING = ".qjump.zip"


def write(path: Path, target: Path | None = None) -> Path:
    """Write the run at ``path`` into the bundle ``target``, or NAME.qjump.zip in the current
    folder.

    Returns the bundle's path. Raises :class:`UsageError` for a run that was not judged, or whose
    files have changed since its trials ended.
    """
    run = directory.existing(path)
    manifest = run.manifest
    judged = outcome.read(run.path)
    if changes := contents.discrepancies(run.path, manifest):
        raise UsageError(f"{run.path} is not as its trials left it: {changes[0]}")
    if unfinished := contents.unmarked(run.path, manifest):
        raise UsageError(f"{run.path}: {unfinished[0]}: run  {command('resume', run.path)}  first")
    files: dict[str, Path | bytes] = {name: run.path / name for name in contents.hashes(run.path)}
    marks = (f"{contents.TRIALS}/{trial.name}/{contents.MARK}" for trial in manifest.plan.trials())
    figures = (file for drawing in judged.drawings for file in drawing.files.values())
    timelines = (contents.timeline(trial) for trial in manifest.plan.unperturbed.trials())
    pictures = (path.name for path in run.path.iterdir() if notes.kind_of(path))
    for name in (*marks, *figures, *timelines, *pictures, *archive.FILES):
        if (run.path / name).is_file():
            files[name] = run.path / name
    users = sorted(path for path in (run.path / user_files.FOLDER).rglob("*") if path.is_file())
    files |= {path.relative_to(run.path).as_posix(): path for path in users}
    target = target or Path(f"{run.path.name}{ENDING}")
    if target.is_dir():
        target = target / f"{run.path.name}{ENDING}"
    if target.resolve().is_relative_to(run.path):
        raise UsageError(f"--out: {target} is inside the run: name a file elsewhere")
    archive.write(target, files)
    directory.hand_over(target)
    return target
