"""A run as its experiment's file judges and words it today. Its raw files stay what they are: only a plan
that runs the same is laid over them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from qjump_mn.analysis import pipeline
from qjump_mn.commands import options_of
from qjump_mn.errors import UsageError
from qjump_mn.model import identity
from qjump_mn.model.plan import Plan
from qjump_mn.options import names
from qjump_mn.results import directory, manifest
from qjump_mn.results.manifest import Manifest
from qjump_mn.session import Request


def judged_today(path: Path, scratch: Path) -> Path:
    """The run itself where nothing has changed, or where its experiment runs something else today; else a
    copy in `scratch`, judged and drawn anew."""
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
    """What the run's own command line makes today; None of what runs something else."""
    try:
        plan = asked(before.plan.experiment, before.plan.preset, before.argv)
    except UsageError:  # an arm or a scheme that there is no more
        return None
    return plan if plan.hash == before.plan_sha256 else None


def asked(experiment: str, preset: str, argv: Sequence[str]) -> Plan:
    """What this command line makes of an experiment and its preset today. Raises UsageError as a run does."""
    options = options_of(argv)
    return Request(
        experiment,
        preset,
        tuple(options.get("settings", ())),
        arms=names(options.get("arms", "")),
        schemes=names(options.get("schemes", ""), "--scheme"),
        **{
            option: options[option]
            for option in ("seed", "replicates", "backend", "perturb")
            if option in options
        },
    ).plan()
