"""``verify``: repeat trials of a run on this machine, and compare their files with the run's."""

from __future__ import annotations

import datetime
import platform
import random
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from qjump_mn import __version__, session
from qjump_mn.backends import estimate
from qjump_mn.errors import LostError, UsageError, command
from qjump_mn.model import suggestions
from qjump_mn.model.plan import Trial
from qjump_mn.process import temp_dirs
from qjump_mn.results import contents, directory, formatting, user_files
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest

DIFFERS = 1
"""The exit code if a file differs."""

MAX_TEXT = 60
"""The most characters that are printed of a line that differs."""

_BLOCK_BYTES = 1 << 16


def verify(path: Path, out: Console, *, arms: Sequence[str] = (), sample: int = 0) -> int:
    """Repeat the finished trials of the run at ``path``, and print which files differ.

    ``arms`` selects arms, and ``sample`` that many trials at random. Returns 0 if nothing differs,
    :data:`DIFFERS` if a file does, and 5 if a trial was lost. Raises :class:`UsageError` for a run
    or an arm that cannot be repeated, or that has no finished trial.
    """
    run = directory.existing(path)
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
        return _compare(run, repetition, trials, out)


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
    if not sample or sample >= len(done):
        return done
    # Whoever made the run must not be able to predict the sample.
    names = {trial.name for trial in random.SystemRandom().sample(done, sample)}
    return [trial for trial in done if trial.name in names]


def _create_repetition(folder: Path, manifest: Manifest) -> RunDirectory:
    """Create an empty run directory for the same plan."""
    return directory.create(
        folder,
        manifest.plan,
        backend=manifest.backend,
        clock=manifest.clock,
        argv=manifest.argv,
        git=manifest.git,
        versions={"qjump-mn": __version__, "python": platform.python_version()},
        machine={},
        now=datetime.datetime.now(datetime.UTC),
    )


def _compare(
    run: RunDirectory, repetition: RunDirectory, trials: Sequence[Trial], out: Console
) -> int:
    """Print what differs between the trials of a run and its repetition; return the exit code."""
    if lost := repetition.lost():
        name, message = next(iter(lost.items()))
        out.print(
            f"not verified: {len(lost)} of {len(trials)} trials did not end, {name}: {message}",
            markup=False,
        )
        return LostError.exit_code
    files = differing = 0
    for trial in trials:
        theirs, ours = (
            contents.hashes(run.path, trial.name),
            contents.hashes(repetition.path, trial.name),
        )
        files += len(theirs)
        different = [
            file for file in sorted({*theirs, *ours}) if theirs.get(file) != ours.get(file)
        ]
        if different:
            differing += 1
            # The output of programs explains more than the network read back, or the console.
            first = min(different, key=lambda file: (f"/{contents.RAW}/" not in file, file))
            text = difference(run.path / first, repetition.path / first)
            count = len({*theirs, *ours})
            out.print(
                f"{trial.name} differs in {len(different)} of {count} files, first in {first}: "
                f"{text}",
                markup=False,
            )
    images = [either.manifest.machine.get("image", "") for either in (run, repetition)]
    if images[0] != images[1]:
        names = [image[:12] or "none" for image in images]
        out.print(
            f"the run was made with image {names[0]}, and this machine has {names[1]}", markup=False
        )
    if differing:
        out.print(f"not the same: {differing} of {len(trials)} trials differ", markup=False)
        return DIFFERS
    out.print(f"identical: all {files} files of {session.count(trials, 'trial')}", markup=False)
    return 0


def difference(theirs: Path, ours: Path) -> str:
    """Describe the first difference between two files: both lines of a text, or a byte's number."""
    absences = ((theirs, "the run has no such file"), (ours, "the repetition has no such file"))
    for path, absence in absences:
        if not path.is_file():
            return absence
    position = _shared_bytes(theirs, ours)
    newlines, lines = 0, []
    for path in (theirs, ours):
        with path.open("rb") as file:
            head = file.read(position)
            newlines = head.count(b"\n")
            line = head[head.rfind(b"\n") + 1 :] + file.readline()
        try:
            lines.append(line.decode().rstrip("\n"))
        except UnicodeDecodeError:
            return f"byte {position + 1}"
    return f"line {newlines + 1} is {_quote(lines[1])}, and {_quote(lines[0])} in the run"


def _shared_bytes(first: Path, second: Path) -> int:
    """Return the length of the common prefix of two files, in bytes."""
    shared = 0
    with first.open("rb") as first_file, second.open("rb") as second_file:
        while True:
            first_block, second_block = (
                first_file.read(_BLOCK_BYTES),
                second_file.read(_BLOCK_BYTES),
            )
            if first_block != second_block or not first_block:
                pairs = enumerate(zip(first_block, second_block, strict=False))
                length = min(len(first_block), len(second_block))
                return shared + next((index for index, (a, b) in pairs if a != b), length)
            shared += len(first_block)


def _quote(line: str) -> str:
    if not line:
        return "missing"
    return repr(line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 1]}…")
