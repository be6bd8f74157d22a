"""Run the reference runs again, and rewrite those whose results are others."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from qjump_mn.errors import LostError
from qjump_mn.model import loading
from qjump_mn.process import temp_dirs
from qjump_mn.process.die_with_parent import wrap_module
from qjump_mn.results import reference
from qjump_mn.results.reference import NAMED, Reference

_RUNS = (0, 1)
"""Exit codes of a run that may be a reference: that a claim does not hold is a result."""


def renew(folder: Path, progress: Callable[[str], None]) -> None:
    """Run every experiment that has a reference run in ``folder`` with its preset. A file is rewritten where
    the plan, a result or a value differs, and ``progress`` says what does. All take ten minutes on two cores.

    Raises :class:`LostError` at the end for runs that were not valid, or did not end: their files are kept.
    """
    lost = []
    for path in sorted(folder.glob("*.json")):
        try:
            made = _run(path.stem)
        except LostError as error:
            lost.append(f"{error}")
            progress(f"{path.stem}: {error}")
            continue
        difference = _difference(reference.read(path), made)
        if difference:
            reference.save(path, made)
        progress(f"{path.stem}: {difference or 'unchanged'}")
    if lost:
        raise LostError("; ".join(lost))


def ours() -> Path:
    """The folder with those of this checkout."""
    return loading.folders("experiments")[-1] / "reference"


def _run(name: str) -> Reference:
    """The reference run ``EXPERIMENT-PRESET`` as it is now."""
    experiment, _, preset = name.rpartition("-")
    with temp_dirs.folder() as out:
        _call("qjump_mn.run", "run", experiment, "--preset", preset, "--out", out)
        _call("qjump_mn.analysis", f"{out}/last", "--reference", out)
        return reference.read(Path(out, f"{name}.json"))


def _difference(before: Reference, now: Reference) -> str:
    """What differs, in a few words; "" if nothing does."""
    if before.plan_sha256 != now.plan_sha256:
        return "the plan changed: rewritten"
    names = [name for name, trial in now.trials.items() if before.trials.get(name) != trial]
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        return f"other results in {', '.join(names[:NAMED])}{more}: rewritten"
    return "other values of measures: rewritten" if before != now else ""


def _call(module: str, *arguments: str) -> None:
    """Call one of our commands; what it prints is nobody's business unless it fails."""
    argv, environment = wrap_module(module, *arguments)
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in _RUNS:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise LostError(f"{' '.join(arguments)} ended with exit code {done.returncode}: {''.join(last)}")
