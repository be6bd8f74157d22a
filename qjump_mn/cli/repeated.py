"""Choose the trials of a run that are repeated, and print how the repetition differs from it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

from rich.console import Console

from qjump_mn import session
from qjump_mn.errors import LostError
from qjump_mn.results import repetition
from qjump_mn.results.directory import AnyRunDirectory
from qjump_mn.results.manifest import TrialRecord

DIFFERS = 1
"""The exit code if a file differs."""

T = TypeVar("T")


def sampled(done: Sequence[T], sample: int) -> list[T]:
    """Return ``sample`` of the finished trials, drawn at random, in their order; all for 0."""
    if not sample or sample >= len(done):
        return list(done)
    # Whoever made the run must not be able to predict the sample.
    chosen = random.SystemRandom().sample(range(len(done)), sample)
    return [done[position] for position in sorted(chosen)]


def compare(
    run: AnyRunDirectory[Any], again: AnyRunDirectory[Any], names: Sequence[str], out: Console
) -> int:
    """Print what differs between the trials ``names`` of a run and its repetition ``again``; return
    the exit code: 0, :data:`DIFFERS`, or 5 if a trial was lost."""
    if lost := again.lost():
        name, message = next(iter(lost.items()))
        out.print(
            f"not verified: {len(lost)} of {len(names)} trials did not end, {name}: {message}",
            markup=False,
        )
        return LostError.exit_code
    manifests = run.manifest, again.manifest
    files = differing = 0
    for name in names:
        compared = repetition.compare(run.path, again.path, name)
        files += compared.files
        records = (manifest.trials.get(name) for manifest in manifests)
        if difference := compared.difference or _ends_differ(*records):
            differing += 1
            out.print(f"{name} differs {difference}", markup=False)
    images = [manifest.machine.get("image", "") for manifest in manifests]
    if images[0] != images[1]:
        shown = [image[:12] or "none" for image in images]
        out.print(
            f"the run was made with image {shown[0]}, and this machine has {shown[1]}", markup=False
        )
    if differing:
        out.print(f"not the same: {differing} of {len(names)} trials differ", markup=False)
        return DIFFERS
    out.print(f"identical: all {files} files of {session.count(names, 'trial')}", markup=False)
    return 0


def _ends_differ(first: TrialRecord | None, second: TrialRecord | None) -> str:
    """Say how the exit codes of two executions differ; "" if they do not."""
    if first is None or second is None or first.exit_code == second.exit_code:
        return ""
    return f"in its exit code: {second.exit_code}, and {first.exit_code} in the run"
