"""The reference runs, made anew: after a change of the machine, or of what a plan runs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from qjump_mn import scratch, session
from qjump_mn.backends import registry
from qjump_mn.errors import LostError
from qjump_mn.leash import of_ours
from qjump_mn.model import loading, resolve
from qjump_mn.results import reference

_WELL = (0, 1)
"""Exit codes of a run that may be a reference: that a claim does not hold is a result."""


def renew(folder: Path, progress: Callable[[str], None]) -> None:
    """Run every experiment that has a reference run in ``folder`` with its preset, and put that run in its
    place. What is of this machine and this plan stays, so that an interrupted renewal goes on. All take
    half an hour on two slow cores.

    Raises :class:`LostError` at the end for runs that were not valid, or did not end: theirs are as before.
    """
    lost = []
    for path in sorted(folder.glob("*.json")):
        experiment, _, preset = path.stem.rpartition("-")
        if _is_of_now(path, experiment, preset, progress):
            progress(f"{path.stem}: is of this machine")
            continue
        try:
            with scratch.folder() as out:
                _call("qjump_mn.run", "run", experiment, "--preset", preset, "--out", out)
                _call("qjump_mn.analysis", f"{out}/last", "--reference", str(folder))
        except LostError as error:
            lost.append(f"{error}")
            progress(f"{path.stem}: {error}")
        else:
            progress(f"{path.stem}: sha256 {reference.read(path).results_sha256}")
    if lost:
        raise LostError("; ".join(lost))


def ours() -> Path:
    """Where those of this checkout lie."""
    return loading.folders("experiments")[-1] / "reference"


def _is_of_now(path: Path, experiment: str, preset: str, progress: Callable[[str], None]) -> bool:
    plan, before = resolve.plan(experiment, preset, []), reference.read(path)
    with registry.make(session.backend_name(plan)) as backend:
        backend.check(plan, progress)
        image = backend.prepare(plan, progress).get("image", "")
    return (before.plan_sha256, before.image) == (plan.hash, image)


def _call(module: str, *arguments: str) -> None:
    """Call one of our commands; what it prints is nobody's business unless it fails."""
    argv, environment = of_ours(module, *arguments)
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in _WELL:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise LostError(f"{' '.join(arguments)} ended with exit code {done.returncode}: {''.join(last)}")
