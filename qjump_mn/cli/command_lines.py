"""Parse the command lines in manifests, and resolve the plans that they make with today's files."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from qjump_mn.cli.options import names
from qjump_mn.cli.run_command import options_of
from qjump_mn.errors import UsageError
from qjump_mn.model import tables, units
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import loading
from qjump_mn.results.manifest import Manifest
from qjump_mn.session import Request

OPTIONS = {
    "preset": "--preset",
    "seed": "--seed",
    "student": "--student",
    "replicates": "--replicates",
    "arms": "--arms",
    "schemes": "--scheme",
    "perturb": "--perturb",
    "backend": "--backend",
}
"""The options of ``run`` that change what is run or where, by the parser's names for them."""


def typed(manifest: Manifest) -> dict[str, str]:
    """Return the options and settings of the run's command line as they were typed.

    For example {"--seed": "--seed 3", "link.rate": "link.rate=1Gbit"}.
    """
    params = options_of(manifest.argv)
    options = {
        option: _text(option, params[name]) for name, option in OPTIONS.items() if params.get(name)
    }
    settings = [setting.partition("=") for setting in params.get("settings", ())]
    return options | {key.strip(): f"{key.strip()}={value.strip()}" for key, _, value in settings}


def settings(manifest: Manifest) -> dict[str, str]:
    """Return every setting of the run, in the form of :func:`typed`, from today's files.

    Returns {} if these no longer accept the command line.
    """
    params = options_of(manifest.argv)
    try:
        spec, _ = loading.experiment(
            manifest.plan.shown.experiment,
            manifest.plan.shown.preset,
            list(params.get("settings", ())),
            names(params.get("schemes")),
        )
    except UsageError:
        return {}
    values = tables.values(msgspec.to_builtins(spec, enc_hook=units.encode))
    return {value.partition("=")[0]: value for value in values if "=" in value}


def plan(experiment: str, preset: str, argv: Sequence[str]) -> Plan:
    """Resolve the plan of a command line for an experiment and a preset, from today's files.

    Raises :class:`UsageError` as a run does.
    """
    params = options_of(argv)
    return Request(
        experiment,
        preset,
        tuple(params.get("settings", ())),
        arms=names(params.get("arms")),
        schemes=names(params.get("schemes"), "--scheme"),
        **{
            name: params[name]
            for name in ("seed", "replicates", "backend", "perturb")
            if name in params
        },
    ).plan()


def _text(option: str, value: object) -> str:
    return f"{option} {','.join(names(value)) if isinstance(value, list) else value}"
