"""``verify``: run trials of a run again here, and compare what they leave with what they left, file by
file."""

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
"""The exit code where a file is not what it was."""

MOST_TEXT = 60
"""So much of a line that differs is shown."""

_BLOCK_BYTES = 1 << 16


def verify(path: Path, out: Console, *, arms: Sequence[str] = (), sample: int = 0) -> int:
    """Run the trials that are done in the run ``path`` again, those of ``arms`` or ``sample`` of them drawn
    at random, and say what differs; return 0 where nothing does, :data:`DIFFERS`, or 5 for a lost trial.

    Raises :class:`UsageError` for what cannot be run again, or has not been run.
    """
    run = directory.existing(path)
    manifest = run.manifest
    if manifest.clock == "real":
        raise UsageError(f"{run.path}: no two runs on the real clock are alike: nothing can be verified")
    if manifest.backend not in session.CONFINED_BACKENDS:
        raise UsageError(
            f"{run.path}: its manifest names the backend {manifest.backend!r}: a run is only verified in a "
            "guest or the simulator, where its programs can do no harm"
        )
    backend = session.backend_of(run, out)
    trials = _chosen(run, manifest, arms, sample)
    plan = manifest.plan
    hours = estimate.run(plan, backend, trials).seconds / 3600
    if hours > session.MAX_RUN_S / 3600:
        raise UsageError(
            f"{run.path}: to run {session.count(trials, 'trial')} again would take about {hours:.0f} "
            "hours: name fewer with --arms or --sample"
        )
    out.print(
        f"{formatting.experiment(plan)}, preset {plan.shown.preset}: {len(trials)} of "
        f"{len(plan.trials())} trials are run again",
        markup=False,
    )
    for name, file in user_files.files_of(plan):
        kept = run.path / user_files.FOLDER / name
        if kept.is_file() and kept.read_bytes() != file.read_bytes():
            out.print(f"{file} is not what it was when the run began: see {kept}", markup=False)
    with temp_dirs.folder() as folder, backend:
        again = _empty(Path(folder), manifest)
        session.run_trials(backend, again, trials, out, medians=False)
        return _compared(run, again, trials, out)


def _chosen(run: RunDirectory, manifest: Manifest, arms: Sequence[str], sample: int) -> list[Trial]:
    plan = manifest.plan
    known = list(dict.fromkeys(name for arm in plan.run.arms for name in (arm.series, arm.name) if name))
    for name in arms:
        if name not in known:
            raise UsageError(f"--arms: the run has no arm {name!r}: {suggestions.nearest(name, known)}")
    done = [
        trial
        for trial in plan.trials()
        if run.is_done(trial.name) and (not arms or {trial.arm.name, trial.arm.series} & set(arms))
    ]
    if not done:
        which = f" of {', '.join(arms)}" if arms else ""
        raise UsageError(f"{run.path}: no trial{which} is done: run  {command('resume', run.path)}  first")
    if not sample or sample >= len(done):
        return done
    # Whoever made the run must not know beforehand which they will be.
    names = {trial.name for trial in random.SystemRandom().sample(done, sample)}
    return [trial for trial in done if trial.name in names]


def _empty(folder: Path, manifest: Manifest) -> RunDirectory:
    """A run directory for the same plan."""
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


def _compared(run: RunDirectory, again: RunDirectory, trials: Sequence[Trial], out: Console) -> int:
    """Say what differs between the trials of two runs; the exit code."""
    if lost := again.lost():
        name, message = next(iter(lost.items()))
        out.print(
            f"not verified: {len(lost)} of {len(trials)} trials did not end, {name}: {message}", markup=False
        )
        return LostError.exit_code
    files = differing = 0
    for trial in trials:
        theirs, ours = contents.hashes(run.path, trial.name), contents.hashes(again.path, trial.name)
        files += len(theirs)
        others = [file for file in sorted({*theirs, *ours}) if theirs.get(file) != ours.get(file)]
        if others:
            differing += 1
            # The programs' own output tells more than what was read back, or the console.
            first = min(others, key=lambda file: (f"/{contents.RAW}/" not in file, file))
            told = difference(run.path / first, again.path / first)
            count = len({*theirs, *ours})
            out.print(
                f"{trial.name} differs in {len(others)} of {count} files, first in {first}: {told}",
                markup=False,
            )
    images = [one.manifest.machine.get("image", "") for one in (run, again)]
    if images[0] != images[1]:
        names = [image[:12] or "none" for image in images]
        out.print(f"the run was made with image {names[0]}, and this is {names[1]}", markup=False)
    if differing:
        out.print(f"not the same: {differing} of {len(trials)} trials differ", markup=False)
        return DIFFERS
    out.print(f"identical: all {files} files of {session.count(trials, 'trial')}", markup=False)
    return 0


def difference(theirs: Path, ours: Path) -> str:
    """Where two files differ first, in words: the line of a text, with both; the byte of what is none."""
    for path, which in ((theirs, "the run has no such file"), (ours, "run again, there is no such file")):
        if not path.is_file():
            return which
    at = _first_byte(theirs, ours)
    before, lines = 0, []
    for path in (theirs, ours):
        with path.open("rb") as file:
            head = file.read(at)
            before = head.count(b"\n")
            line = head[head.rfind(b"\n") + 1 :] + file.readline()
        try:
            lines.append(line.decode().rstrip("\n"))
        except UnicodeDecodeError:
            return f"byte {at + 1}"
    return f"line {before + 1} is {_shown(lines[1])}, and {_shown(lines[0])} in the run"


def _first_byte(one: Path, other: Path) -> int:
    """How many bytes from their beginning two files share."""
    shared = 0
    with one.open("rb") as first, other.open("rb") as second:
        while True:
            here, there = first.read(_BLOCK_BYTES), second.read(_BLOCK_BYTES)
            if here != there or not here:
                pairs = enumerate(zip(here, there, strict=False))
                length = min(len(here), len(there))
                return shared + next((index for index, (a, b) in pairs if a != b), length)
            shared += len(here)


def _shown(line: str) -> str:
    if not line:
        return "missing"
    return repr(line if len(line) <= MOST_TEXT else f"{line[: MOST_TEXT - 1]}…")
