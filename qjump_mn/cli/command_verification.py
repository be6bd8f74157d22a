"""``verify`` for a command's run: run it again with its seeds, and compare the files."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console

from qjump_mn import session
from qjump_mn.cli import repeated
from qjump_mn.errors import UsageError
from qjump_mn.guest import Stop
from qjump_mn.install import provenance
from qjump_mn.model.command import CommandTrial
from qjump_mn.process import temp_dirs
from qjump_mn.results import command_directory
from qjump_mn.results.command_directory import CommandDirectory
from qjump_mn.results.manifest import CommandManifest, TrialRecord


def verify(
    run: CommandDirectory, out: Console, *, arms: Sequence[str] = (), sample: int = 0
) -> int:
    """Run the command again with each finished seed, and print which files differ.

    ``sample`` takes that many seeds at random. Returns the exit codes of :func:`repeated.compare`.
    Raises :class:`UsageError` for a run that cannot be repeated, or that has no finished seed.
    """
    if arms:
        raise UsageError(
            "--arms: a command has none: leave it out, or choose some of its seeds with --sample"
        )
    done = finished(run)
    if not done:
        raise UsageError(f"{run.path}: no seed is done: run the command again")
    return repeat(run, repeated.sampled(done, sample), out)


def finished(run: CommandDirectory) -> list[CommandTrial]:
    """Return the trials of the run that are done."""
    return [trial for trial in run.manifest.command.trials() if run.is_done(trial.name)]


def repeat(
    run: CommandDirectory, trials: Sequence[CommandTrial], out: Console, stop: Stop | None = None
) -> int:
    """Run these trials again in a temporary folder, as many at a time as there are cores; print
    which files differ, and return the exit code of :func:`repeated.compare`.

    Raises :class:`UsageError` if what went into the run was changed.
    """
    # It imports the guest's parts, which other commands of the command line do without.
    from qjump_mn.mn import running

    manifest = run.manifest
    command = manifest.command
    if problems := command_directory.problems(run.path, manifest):
        raise UsageError(f"{run.path}: {problems[0]}: run the command anew")
    seeds = session.count(command.seeds, "seed")
    line = f"{shlex.join(command.argv)}: {len(trials)} of {seeds} run again"
    out.print(line, markup=False)
    image = running.prepare(command, run.own, lambda line: out.print(line, markup=False))
    with temp_dirs.folder() as folder:
        again = _create_repetition(Path(folder), manifest)
        again.enter_machine({"image": image.identity})
        ending = stop or Stop()

        def rerun(trial: CommandTrial) -> TrialRecord:
            target = again.prepare(trial.name)
            return running.trial(
                image, command, run.own, trial.seed, target, show=lambda data: None, stop=ending
            )

        with ThreadPoolExecutor() as pool:  # each waits for a core of its own
            try:
                for trial, record in zip(trials, pool.map(rerun, trials), strict=True):
                    again.finish(trial.name, record)
            except BaseException:
                ending.now()
                pool.shutdown(cancel_futures=True)
                raise
        return repeated.compare(run, again, [trial.name for trial in trials], out)


def _create_repetition(folder: Path, manifest: CommandManifest) -> CommandDirectory:
    """Create an empty run directory for the same command."""
    return command_directory.create(
        folder,
        manifest.command,
        {},
        argv=manifest.argv,
        git=manifest.git,
        versions=provenance.versions(),
        machine={},
        now=datetime.datetime.now(datetime.UTC),
    )
