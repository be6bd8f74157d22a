"""Repeat the reference runs, and rewrite those whose results have changed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from qjump_mn.errors import LostError
from qjump_mn.process import temp_dirs
from qjump_mn.process.die_with_parent import wrap_module
from qjump_mn.resolve import loading
from qjump_mn.results import reference
from qjump_mn.results.reference import Reference

_VALID_EXIT_CODES = (0, 1)
"""Exit codes of a run that can be a reference: a claim that does not hold is a result, too."""


def renew(folder: Path, progress: Callable[[str], None]) -> None:
    """Repeat every reference run in ``folder``, and rewrite the files whose runs have changed.

    A change is one of the plan, a result or a value of a measure; ``progress`` gets a line for each
    run. Raises :class:`LostError` at the end if runs were invalid or lost; their files are kept.
    All take ten minutes on two cores.
    """
    lost = []
    for path in sorted(folder.glob("*.json")):
        try:
            current = _run(path.stem)
        except LostError as error:
            lost.append(f"{error}")
            progress(f"{path.stem}: {error}")
            continue
        difference = _difference(reference.read(path), current)
        if difference:
            reference.save(path, current)
        progress(f"{path.stem}: {difference or 'unchanged'}")
    if lost:
        raise LostError("; ".join(lost))


def ours() -> Path:
    """Return the folder with this checkout's reference runs."""
    return loading.folders("experiments")[-1] / "reference"


def _run(name: str) -> Reference:
    """Run ``EXPERIMENT-PRESET`` and return it as a reference run."""
    experiment, _, preset = name.rpartition("-")
    with temp_dirs.folder() as out:
        _call("qjump_mn.run", "run", experiment, "--preset", preset, "--out", out)
        _call("qjump_mn.analysis", f"{out}/last", "--reference", out)
        return reference.read(Path(out, f"{name}.json"))


def _difference(old: Reference, new: Reference) -> str:
    """Describe in a few words what has changed; return "" if nothing has."""
    if old.plan_sha256 != new.plan_sha256:
        return "the plan changed: rewritten"
    names = [name for name, trial in new.trials.items() if old.trials.get(name) != trial]
    if names:
        return f"results changed in {reference.first_names(names)}: rewritten"
    return "values of measures changed: rewritten" if old != new else ""


def _call(module: str, *arguments: str) -> None:
    """Run one of our modules as a command; hide its output unless it fails."""
    argv, environment = wrap_module(module, *arguments)
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in _VALID_EXIT_CODES:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise LostError(
            f"{' '.join(arguments)} ended with exit code {done.returncode}: {''.join(last)}"
        )
