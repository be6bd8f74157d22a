"""``verify``: repeat trials of a run on this machine, and compare their files with the run's."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from qjump_mn import session
from qjump_mn.backends import estimate
from qjump_mn.cli import command_verification, repeated
from qjump_mn.errors import UsageError, command
from qjump_mn.install import provenance
from qjump_mn.model import suggestions
from qjump_mn.model.plan import Trial
from qjump_mn.process import temp_dirs
from qjump_mn.results import command_directory, directory, formatting, user_files
from qjump_mn.results.command_directory import CommandDirectory
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest


def verify(path: Path, out: Console, *, arms: Sequence[str] = (), sample: int = 0) -> int:
    """Repeat the finished trials of the run at ``path``, an experiment's or a command's, and print
    which files differ.

    ``arms`` selects arms, and ``sample`` that many trials at random. Returns the exit code of
    :func:`repeated.compare`. Raises :class:`UsageError` for a run or an arm that cannot be
    repeated, or that has no finished trial.
    """
    run = command_directory.existing(path)
    if isinstance(run, CommandDirectory):
        return command_verification.verify(run, out, arms=arms, sample=sample)
    manifest = run.manifest
    if manifest.clock == "real":
        raise UsageError(
            f"{run.path}: no two runs on the real clock are alike, so none can be verified"
        )
    if manifest.backend not in session.CONFINED_BACKENDS:
        raise UsageError(
            f"{run.path}: its manifest names the backend {manifest.backend!r}: a run is only "
            "verified in a guest or the simulator, where its programs can do no harm"
        )
    backend = session.backend_of(run, out)
    trials = _selected_trials(run, manifest, arms, sample)
    plan = manifest.plan
    hours = estimate.run(plan, backend, trials).seconds / 3600
    if hours > session.MAX_RUN_S / 3600:
        raise UsageError(
            f"{run.path}: to repeat {session.count(trials, 'trial')} would take about {hours:.0f} "
            "hours: choose fewer with --arms or --sample"
        )
    out.print(
        f"{formatting.experiment(plan)}, preset {plan.shown.preset}: {len(trials)} of "
        f"{len(plan.trials())} trials are run again",
        markup=False,
    )
    for name, file in user_files.files_of(plan):
        kept = run.path / user_files.FOLDER / name
        if kept.is_file() and kept.read_bytes() != file.read_bytes():
            out.print(f"{file} has changed since the run began: see {kept}", markup=False)
    with temp_dirs.folder() as folder, backend:
        repetition = _create_repetition(Path(folder), manifest)
        session.run_trials(backend, repetition, trials, out, medians=False)
        return repeated.compare(run, repetition, [trial.name for trial in trials], out)


def _selected_trials(
    run: RunDirectory, manifest: Manifest, arms: Sequence[str], sample: int
) -> list[Trial]:
    plan = manifest.plan
    arm_names = list(
        dict.fromkeys(name for arm in plan.run.arms for name in (arm.series, arm.name) if name)
    )
    for name in arms:
        if name not in arm_names:
            raise UsageError(
                f"--arms: the run has no arm {name!r}: {suggestions.nearest(name, arm_names)}"
            )
    done = [
        trial
        for trial in plan.trials()
        if run.is_done(trial.name) and (not arms or {trial.arm.name, trial.arm.series} & set(arms))
    ]
    if not done:
        of_arms = f" of {', '.join(arms)}" if arms else ""
        raise UsageError(
            f"{run.path}: no trial{of_arms} is done: run  {command('resume', run.path)}  first"
        )
    return repeated.sampled(done, sample)


def _create_repetition(folder: Path, manifest: Manifest) -> RunDirectory:
    """Create an empty run directory for the same plan."""
    return directory.create(
        folder,
        manifest.plan,
        backend=manifest.backend,
        clock=manifest.clock,
        argv=manifest.argv,
        git=manifest.git,
        versions=provenance.versions(),
        machine={},
        now=datetime.datetime.now(datetime.UTC),
    )
