"""What a course asks its students to run: a file that a bundle's plan is compared with.

::

    experiment = "fig3a"
    preset = "course"
    settings = ["workloads.ping.payload=100B"]
    free = ["link.buffer", "seed"]

The plan of a bundle must be the one that these give. ``free`` names the settings that a student chooses: what
the bundle's command line has for them is taken, and everything else must be as assigned.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from qjump_mn import session
from qjump_mn.cli import command_lines
from qjump_mn.cli.options import check_added
from qjump_mn.errors import UsageError, reason_of
from qjump_mn.model import loading, resolve, tables
from qjump_mn.model.differences import Difference, between
from qjump_mn.model.plan import Plan
from qjump_mn.model.toml_types import convert
from qjump_mn.results.manifest import Manifest

NUMBERS = ("seed", "replicates", "perturb")
"""Options that ``free`` may name beside settings."""


class Assignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The words are those of ``run``'s options."""

    experiment: str
    preset: str = ""
    settings: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    seed: int = 1
    replicates: int | None = None
    perturb: int = 0
    backend: str = ""
    free: tuple[str, ...] = ()


def read(path: Path) -> Assignment:
    """The assignment in a TOML file; raise :class:`UsageError` if it is none."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"assignment {path} cannot be read: {reason_of(error)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"assignment {path}: {error}") from None
    return convert(raw, Assignment, f"assignment {path}", path)


def plan(assigned: Assignment, given: Mapping[str, Any] | None = None) -> Plan:
    """The plan that is asked for; what is free is as ``given``, the options of a run's command line by name.

    Raises :class:`UsageError` where it makes no plan.
    """
    given = given or {}
    chosen = [one for one in given.get("settings") or () if _key(one) in assigned.free]
    numbers = {
        name: given[name] if name in assigned.free and name in given else getattr(assigned, name)
        for name in NUMBERS
    }
    name = loading.experiment_called(assigned.experiment)
    preset = assigned.preset or loading.usual_preset(name, assigned.backend)
    spec, _ = loading.experiment(name, preset, list(assigned.settings), assigned.schemes)
    tables.check(
        spec, (one for one in assigned.free if one not in NUMBERS), f"assignment: free: experiment {name!r}"
    )
    expected = resolve.plan(
        name,
        preset,
        [*assigned.settings, *chosen],
        only=assigned.arms,
        schemes=assigned.schemes,
        backend=assigned.backend,
        **numbers,
    )
    _check(assigned, expected)
    return expected


def differences(assigned: Assignment, manifest: Manifest, given: Mapping[str, Any]) -> list[str]:
    """What a run's plan has otherwise than the assignment asks for, a line each; none where it is the same.
    ``given`` are the options of the run's command line, by name.

    Raises :class:`UsageError` for an assignment that makes no plan.
    """
    try:
        expected = plan(assigned, given)
    except UsageError as error:
        plan(assigned)  # otherwise it is the assignment that is wrong
        return [f"what its command line has for the free settings makes no plan: {error}"]
    return [f"{one.path} is {one.second}, assigned is {one.first}" for one in _otherwise(expected, manifest)]


def compared_here(manifest: Manifest) -> tuple[str, list[str]]:
    """Compare a run's plan with the one that its command line makes of this checkout's experiment of that
    name. Returns what to say if nothing differs, and what differs, a line each."""
    name = manifest.plan.shown.experiment
    if name not in loading.names("experiments"):
        return f"not compared: this checkout has no experiment {name}", []
    where = f"differs from this checkout's experiment {name}"
    try:
        expected = command_lines.plan(name, manifest.plan.shown.preset, manifest.argv)
    except UsageError as error:
        return "", [f"{where}, which makes no plan of the run's command line: {error}"]
    differing = _otherwise(expected, manifest)
    return (
        f"that of this checkout's experiment {name}",
        [f"{where}: {one.path} is {one.second}, there it is {one.first}" for one in differing],
    )


def _otherwise(expected: Plan, manifest: Manifest) -> list[Difference]:
    """What is run or judged otherwise than expected."""
    found = manifest.plan
    same = (found.hash, found.judged) == (expected.hash, expected.judged)
    return [] if same else between(expected, found)


def _check(assigned: Assignment, made: Plan) -> None:
    """Raise :class:`UsageError` for what ``run`` would refuse: then nobody can have run it."""
    check_added(assigned.schemes, assigned.arms)
    session.check_plan(made)
    session.backend_name(made, assigned.backend)


def _key(setting: str) -> str:
    return setting.partition("=")[0].strip()
