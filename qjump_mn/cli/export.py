"""``export``: write the frames of a watched run for Wireshark and Perfetto."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qjump_mn.errors import LostError, UsageError
from qjump_mn.model import suggestions
from qjump_mn.model.plan import Trial
from qjump_mn.process.files import write_atomically
from qjump_mn.results import directory, frames, pcapng, perfetto, tables
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.frames import Frames


def export(
    path: Path, out: Path, *, as_pcapng: bool, as_perfetto: bool, arms: Sequence[str]
) -> list[Path]:
    """Write a file of each chosen kind for each arm of the run at ``path`` into the folder ``out``,
    and return the files.

    Raises :class:`UsageError` for a run or an arm without frames, and without a kind.
    """
    if not (as_pcapng or as_perfetto):
        raise UsageError("export needs a kind of file: add --pcapng, --perfetto or both")
    run = directory.existing(path)
    trials = _trials(run, arms)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for trial in trials:
        found, zero_ns = _frames(run, trial), tables.facts(run, trial).began_ns
        ends = trial.network.ways()
        rates = {device: link.rate_bps for device, link in trial.network.by_device().items()}
        name = f"{run.path.name}-{trial.arm.name}"
        if as_pcapng:
            written.append(out / f"{name}.pcapng")
            write_atomically(written[-1], b"".join(pcapng.blocks(found, ends, zero_ns)))
        if as_perfetto:
            written.append(out / f"{name}.perfetto.json")
            text = perfetto.lines(found, ends, rates, zero_ns)
            write_atomically(written[-1], b"".join(text))
    return written


def _trials(run: RunDirectory, arms: Sequence[str]) -> list[Trial]:
    """Return the watched trials of the ``arms``, by default all that are done."""
    plan = run.manifest.plan
    if plan.run.watch is None:
        raise UsageError(f"{run.path}: no frames were recorded: run it with --watch")
    known = [arm.name for arm in plan.run.arms]
    for name in arms:
        if name not in known:
            raise UsageError(
                f"--arms: the run has no arm {name!r}: {suggestions.nearest(name, known)}"
            )
    trials = [
        trial
        for trial in plan.trials()
        if trial.watch and run.is_done(trial.name) and (not arms or trial.arm.name in arms)
    ]
    if not trials:
        raise UsageError(f"{run.path}: no watched trial is done: resume the run first")
    return trials


def _frames(run: RunDirectory, trial: Trial) -> Frames:
    try:
        found = frames.read(run.trial(trial.name))
    except (OSError, ValueError) as error:
        raise LostError(f"{trial.name}: its frames cannot be read: {error}") from None
    if found is None:
        raise LostError(f"{trial.name}: its file of frames is missing")
    return found.known()
