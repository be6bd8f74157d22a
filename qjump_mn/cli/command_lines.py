"""Read the command lines in the manifests of runs: what was typed, and the plan that it makes today."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from qjump_mn.cli.options import names
from qjump_mn.errors import UsageError
from qjump_mn.model import loading, tables, units
from qjump_mn.model.plan import Plan
from qjump_mn.results.manifest import Manifest
from qjump_mn.session import Request

OPTIONS = {
    "preset": "--preset",
    "seed": "--seed",
    "replicates": "--replicates",
    "arms": "--arms",
    "schemes": "--scheme",
    "perturb": "--perturb",
    "backend": "--backend",
}
"""The options of ``run`` that change what is run or where, by their names in the parser."""


def typed(manifest: Manifest) -> dict[str, str]:
    """The options and settings of the run's command line as they are typed: "--seed 3" is that of "--seed",
    "link.rate=1Gbit" that of "link.rate"."""
    given = _options(manifest.argv)
    options = {option: _text(option, given[name]) for name, option in OPTIONS.items() if given.get(name)}
    settings = [setting.partition("=") for setting in given.get("settings", ())]
    return options | {key.strip(): f"{key.strip()}={value.strip()}" for key, _, value in settings}


def settings(manifest: Manifest) -> dict[str, str]:
    """Every setting of the run in the same form, with today's files; none where these refuse it."""
    given = _options(manifest.argv)
    try:
        spec, _ = loading.experiment(
            manifest.plan.shown.experiment,
            manifest.plan.shown.preset,
            list(given.get("settings", ())),
            names(given.get("schemes")),
        )
    except UsageError:
        return {}
    values = tables.values(msgspec.to_builtins(spec, enc_hook=units.encode))
    return {value.partition("=")[0]: value for value in values if "=" in value}


def plan(experiment: str, preset: str, argv: Sequence[str]) -> Plan:
    """The plan that a command line makes of an experiment and its preset with today's files; raise
    :class:`UsageError` as a run does."""
    given = _options(argv)
    return Request(
        experiment,
        preset,
        tuple(given.get("settings", ())),
        arms=names(given.get("arms")),
        schemes=names(given.get("schemes"), "--scheme"),
        **{name: given[name] for name in ("seed", "replicates", "backend", "perturb") if name in given},
    ).plan()


def _options(argv: Sequence[str]) -> dict[str, Any]:
    from qjump_mn.cli.commands import options_of  # whose commands read this module

    return options_of(argv)


def _text(option: str, value: object) -> str:
    return f"{option} {','.join(names(value)) if isinstance(value, list) else value}"
