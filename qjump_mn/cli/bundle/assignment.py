"""Read a course's assignment, and compare the plan of a bundle with it.

::

    experiment = "fig3a"
    preset = "course"
    settings = ["workloads.ping.payload=100B"]
    free = ["link.buffer", "seed"]

The plan of a bundle must be the one that these keys make. ``free`` names the settings that a
student chooses: their values come from the bundle's command line, and everything else must be as
assigned. ``seed = "student"`` gives each student another seed, by the name of ``run --student``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from qjump_mn import resolve, session
from qjump_mn.cli import command_lines
from qjump_mn.cli.options import check_added
from qjump_mn.errors import UsageError, reason_of
from qjump_mn.model import tables
from qjump_mn.model.differences import Difference, between
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import loading
from qjump_mn.resolve.toml_types import convert
from qjump_mn.results.manifest import Manifest

STUDENT = "student"
NUMBERS = ("seed", "replicates", "perturb")
"""Options that ``free`` may name, besides settings."""


class Assignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An assignment; the fields are named like the options of ``run``."""

    experiment: str
    preset: str = ""
    settings: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    seed: int | Literal["student"] = 1
    replicates: int | None = None
    perturb: int = 0
    backend: str = ""
    free: tuple[str, ...] = ()


def read(path: Path) -> Assignment:
    """Read an assignment from a TOML file; raise :class:`UsageError` if it is not valid."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"assignment {path} cannot be read: {reason_of(error)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"assignment {path}: {error}") from None
    return convert(raw, Assignment, f"assignment {path}", path)


def plan(assigned: Assignment, given: Mapping[str, Any] | None = None) -> Plan:
    """Resolve the assigned plan.

    ``given`` are the options of a run's command line, by name; the free ones are taken from there.
    Raises :class:`UsageError` if there is no such plan.
    """
    given = given or {}
    chosen = [setting for setting in given.get("settings") or () if _key(setting) in assigned.free]
    numbers = {
        name: given[name] if name in assigned.free and name in given else getattr(assigned, name)
        for name in NUMBERS
    }
    if numbers["seed"] == STUDENT:
        numbers["seed"] = given.get("seed", 1)  # the one that --student gives
    name = loading.experiment_called(assigned.experiment)
    preset = assigned.preset or loading.usual_preset(name, assigned.backend)
    spec, _ = loading.experiment(name, preset, list(assigned.settings), assigned.schemes)
    free_settings = (key for key in assigned.free if key not in NUMBERS)
    tables.check(spec, free_settings, f"assignment: free: experiment {name!r}")
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
    """Return a line for each difference between a run's plan and the assigned one.

    ``given`` are the options of the run's command line, by name. Raises :class:`UsageError` for an
    assignment that makes no plan.
    """
    if assigned.seed == STUDENT and not given.get("student"):
        return ["it was run without --student, which gives each student another seed"]
    try:
        expected = plan(assigned, given)
    except UsageError as error:
        plan(assigned)  # raises if the assignment is wrong, rather than the free settings
        return [f"the values of its command line for the free settings make no plan: {error}"]
    return [
        f"{different.path} is {different.second}, assigned is {different.first}"
        for different in _differences(expected, manifest)
    ]


def compared_here(manifest: Manifest) -> tuple[str, list[str]]:
    """Compare a run's plan with the one that its command line makes in this checkout.

    Returns what to print if nothing differs, and a line for each difference.
    """
    name = manifest.plan.shown.experiment
    if name not in loading.names("experiments"):
        return f"not compared: this checkout has no experiment {name}", []
    prefix = f"differs from this checkout's experiment {name}"
    try:
        expected = command_lines.plan(name, manifest.plan.shown.preset, manifest.argv)
    except UsageError as error:
        return "", [f"{prefix}, for which the run's command line makes no plan: {error}"]
    return (
        f"that of this checkout's experiment {name}",
        [
            f"{prefix}: {different.path} is {different.second}, there it is {different.first}"
            for different in _differences(expected, manifest)
        ],
    )


def _differences(expected: Plan, manifest: Manifest) -> list[Difference]:
    """Return the differences from the expected plan in what is run or judged."""
    actual = manifest.plan
    is_same = (actual.hash, actual.judged) == (expected.hash, expected.judged)
    return [] if is_same else between(expected, actual)


def _check(assigned: Assignment, assigned_plan: Plan) -> None:
    """Raise :class:`UsageError` for a plan that ``run`` refuses, as then nobody can have run it."""
    check_added(assigned.schemes, assigned.arms)
    session.check_plan(assigned_plan)
    session.backend_name(assigned_plan, assigned.backend)


def _key(setting: str) -> str:
    return setting.partition("=")[0].strip()
