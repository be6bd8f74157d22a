"""``bundle``: a run in one file."""

from __future__ import annotations

from pathlib import Path

from qjump_mn.cli.bundle import archive
from qjump_mn.errors import UsageError, command
from qjump_mn.report import notes
from qjump_mn.results import contents, directory, outcome, user_files

ENDING = ".qjump.zip"


def write(path: Path, target: Path | None = None) -> Path:
    """Write the run ``path`` into the bundle ``target``, or NAME.qjump.zip in this folder; return where it
    is.

    Raises :class:`UsageError` for a run that was not judged, or is not what it was when its trials ended.
    """
    run = directory.existing(path)
    told = run.manifest
    judged = outcome.read(run.path)
    if changed := contents.discrepancies(run.path, told):
        raise UsageError(f"{run.path} is not as its trials left it: {changed[0]}")
    if lacking := contents.unmarked(run.path, told):
        raise UsageError(f"{run.path}: {lacking[0]}: run  {command('resume', run.path)}  first")
    files: dict[str, Path | bytes] = {name: run.path / name for name in contents.hashes(run.path)}
    marks = (f"{contents.TRIALS}/{trial.name}/{contents.MARK}" for trial in told.plan.trials())
    figures = (file for drawing in judged.drawings for file in drawing.files.values())
    timelines = (contents.timeline(trial) for trial in told.plan.unperturbed.trials())
    shown = (path.name for path in run.path.iterdir() if notes.kind_of(path))
    for name in (*marks, *figures, *timelines, *shown, *archive.FILES):
        if (run.path / name).is_file():
            files[name] = run.path / name
    owned = sorted(path for path in (run.path / user_files.FOLDER).rglob("*") if path.is_file())
    files |= {path.relative_to(run.path).as_posix(): path for path in owned}
    target = target or Path(f"{run.path.name}{ENDING}")
    if target.is_dir():
        target = target / f"{run.path.name}{ENDING}"
    if target.resolve().is_relative_to(run.path):
        raise UsageError(f"--out: {target} lies in the run itself: name a file elsewhere")
    archive.write(target, files)
    directory.hand_over(target)
    return target
