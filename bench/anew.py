"""Judge and describe a run by its experiment's file of today. Raw files do not change, and the
plan only where it runs the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from qjump_mn.analysis import pipeline
from qjump_mn.cli import command_lines
from qjump_mn.errors import UsageError
from qjump_mn.model import identity
from qjump_mn.model.plan import Plan
from qjump_mn.results import directory, manifest
from qjump_mn.results.manifest import Manifest


def judged_today(path: Path, scratch: Path) -> Path:
    """Return the run itself if nothing has changed, or if its experiment runs something else today;
    else a copy in `scratch`, judged and drawn anew."""
    before = directory.existing(path).manifest
    plan = today(before)
    if plan is None or (plan.judged, plan.shown) == (before.plan.judged, before.plan.shown):
        return path
    copy = scratch / path.resolve().name
    shutil.copytree(path, copy, symlinks=True)
    judged = identity.sha256(plan.judged)
    manifest.write(copy, msgspec.structs.replace(before, plan=plan, judged_sha256=judged))
    pipeline.analyse(copy)
    return copy


def today(before: Manifest) -> Plan | None:
    """Return the plan that the run's own command line makes today; None if it runs something
    else."""
    try:
        plan = command_lines.plan(
            before.plan.shown.experiment, before.plan.shown.preset, before.argv
        )
    except UsageError:  # an arm or a scheme that there is no more
        return None
    return plan if plan.hash == before.plan_sha256 else None
