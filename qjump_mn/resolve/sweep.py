"""Expand settings with several values, ``-s link.rate=10Mbit,100Mbit``, to one run for each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model import tables, units
from qjump_mn.resolve import loading

MAX_RUNS = 100


def combinations(experiment: str, preset: str, settings: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the settings of each run: all combinations of the values, in the given order.

    Commas separate the values of a setting, unless the experiment's own value is a list or a text
    that may contain commas. Raises :class:`UsageError` for an unknown experiment or preset, and for
    too many runs.
    """
    if not any("," in setting for setting in settings):
        return [tuple(settings)]
    spec, _ = loading.experiment(experiment, preset, [])
    plain = msgspec.to_builtins(spec, enc_hook=units.encode)
    runs = list(itertools.product(*(_values(plain, setting) for setting in settings)))
    if len(runs) > MAX_RUNS:
        raise UsageError(
            f"the settings make {len(runs)} runs, more than {MAX_RUNS}: leave some of their values "
            "out"
        )
    return runs


def _values(plain: dict[str, Any], setting: str) -> list[str]:
    """Return the setting once with each of its values."""
    key, _, text = setting.partition("=")
    own = tables.at(plain, key.strip().split("."))
    is_single = isinstance(own, int | float) or (isinstance(own, str) and own and "," not in own)
    if not is_single:
        return [setting]
    values = [value.strip() for value in text.split(",")]
    if not all(values):
        raise UsageError(f"-s {setting!r} has an empty value: write key=value,value")
    return [f"{key.strip()}={value}" for value in dict.fromkeys(values)]
