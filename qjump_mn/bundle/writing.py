"""``bundle``: a run in one file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qjump_mn import extensions
from qjump_mn.bundle import archive, crate
from qjump_mn.errors import UsageError
from qjump_mn.model import loading
from qjump_mn.model.plan import Plan
from qjump_mn.results import contents, directory, outcome

ENDING = ".qjump.zip"
MOST_OWN_BYTES = 1 << 20
"""Of a user's own file that goes with a run: sources are smaller."""


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
    files: dict[str, Path | bytes] = {name: run.path / name for name in contents.hashes(run.path)}
    marks = (f"{contents.TRIALS}/{trial.name}/{contents.MARK}" for trial in told.plan.trials())
    figures = (file for drawing in judged.drawings for file in drawing.files.values())
    timelines = (contents.timeline(trial) for trial in told.plan.unperturbed.trials())
    for name in (*marks, *figures, *timelines, *archive.FILES):
        if (run.path / name).is_file():
            files[name] = run.path / name
    files |= {f"{archive.OWN}/{name}": file for name, file in _own(told.plan)}
    files["CITATION.cff"] = crate.citation(told, judged)
    files["ro-crate-metadata.json"] = crate.metadata(told, judged, files)
    target = target or Path(f"{run.path.name}{ENDING}")
    archive.write(target, files)
    directory.hand_over(target)
    return target


def _own(plan: Plan) -> Iterator[tuple[str, Path]]:
    """The user's own files that the plan is of, and the extensions, as they are now, by their names."""
    wanted = {
        "experiments": {plan.experiment},
        "topologies": {arm.network.topology for arm in plan.run.arms},
        "schemes": {arm.scheme.name for arm in plan.run.arms},
    }
    for kind, names in wanted.items():
        *folders, ours = loading.folders(kind)
        users = [folder for folder in folders if folder.resolve() != ours.resolve()]
        for name in sorted(names):
            file = next(
                (folder / f"{name}.toml" for folder in users if (folder / f"{name}.toml").is_file()), None
            )
            if file is not None:
                yield f"{kind}/{name}.toml", file
    for name, folder in extensions.packages().items():
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and file.stat().st_size <= MOST_OWN_BYTES:
                yield f"extensions/{name}/{file.relative_to(folder).as_posix()}", file
