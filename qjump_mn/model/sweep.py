"""Settings with several values, ``-s link.rate=10Mbit,100Mbit``: a run for each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model import loading, tables, units

MOST_RUNS = 100


def combinations(experiment: str, preset: str, settings: Sequence[str]) -> list[tuple[str, ...]]:
    """The settings of each run: every value of one with every value of the others, in the order that was
    given.

    A setting has several values where these are separated by commas and the experiment's own is neither a
    list nor a text that may have commas itself. Raises :class:`UsageError` for an experiment or a preset that
    is not there, and for too many runs.
    """
    if not any("," in setting for setting in settings):
        return [tuple(settings)]
    spec, _ = loading.experiment(experiment, preset, [])
    plain = msgspec.to_builtins(spec, enc_hook=units.encode)
    found = list(itertools.product(*(_values(plain, setting) for setting in settings)))
    if len(found) > MOST_RUNS:
        raise UsageError(f"the settings make {len(found)} runs: {MOST_RUNS} are the most, leave values out")
    return found


def _values(plain: dict[str, Any], setting: str) -> list[str]:
    """The setting with each of its values."""
    key, _, text = setting.partition("=")
    place = tables.at(plain, key.strip().split("."))
    is_single = isinstance(place, int | float) or (isinstance(place, str) and place and "," not in place)
    if not is_single:
        return [setting]
    values = [value.strip() for value in text.split(",")]
    if not all(values):
        raise UsageError(f"-s {setting!r} has an empty value: write key=value,value")
    return [f"{key.strip()}={value}" for value in dict.fromkeys(values)]
