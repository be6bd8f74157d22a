"""Settings in an experiment's plain tables, as files and ``-s`` name them: "workloads.ping.interval"."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from typing import Any, get_origin

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model import suggestions, units
from qjump_mn.model.experiment import ExperimentSpec

FREE = ("factors", "host_jitter_of", "queue", "host_queue", "pause", "transport")
"""Tables that have what is put there; a backend knows what they may have."""


def merge(base: dict[str, Any], changes: dict[str, Any]) -> None:
    """Lay ``changes`` over ``base``, table by table."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            merge(base[key], value)
        else:
            base[key] = value


def at(table: Any, names: Sequence[str]) -> Any:
    """What lies in a table below these names; None where there is nothing."""
    for name in names:
        table = table.get(name) if isinstance(table, dict) else None
    return table


def leave_out(raw: dict[str, Any], entry: str, where: str) -> None:
    """Take out what a preset has not, such as "arms.probe"; raise :class:`UsageError` if there is none."""
    *folder, last = entry.split(".")
    place = at(raw, folder)
    if not isinstance(place, dict) or place.pop(last, None) is None:
        raise UsageError(f"{where}: there is no {entry!r} to leave out")


def check(spec: ExperimentSpec, keys: Iterable[str], where: str) -> None:
    """Raise :class:`UsageError` unless each of ``keys`` is a setting of the experiment ``spec``."""
    plain: dict[str, Any] = msgspec.to_builtins(spec, enc_hook=units.encode)
    for key in keys:
        place_of(plain, key, where)


def apply(plain: dict[str, Any], setting: str, experiment: str) -> None:
    """Carry out a "key=value" as ``-s`` has it; raise :class:`UsageError` for what is none."""
    key, equals, text = setting.partition("=")
    key = key.strip()
    if not equals or not key:
        raise UsageError(f"-s {setting!r} is no setting: write key=value, such as -s link.rate=100Mbit")
    see = f"qjump-mn explain {experiment} --all lists them"
    place, last = place_of(plain, key, f"experiment {experiment!r}", see)
    place[last] = _value(text.strip(), place.get(last))


def place_of(plain: dict[str, Any], key: str, where: str, see: str = "") -> tuple[dict[str, Any], str]:
    """The table that holds the setting ``key``, and its last part; ``see`` says where all are listed."""
    *folder, last = key.split(".")
    place = at(plain, folder)
    free = bool(folder) and folder[-1] in FREE
    if not isinstance(place, dict) or (last not in place and not free):
        raise UsageError(f"{where} has no setting {key!r}: {_suggestion(key, _paths(plain), see)}")
    if isinstance(place.get(last), dict):
        within = next(iter(_paths(place[last], f"{key}.")), f"{key}.NAME")
        raise UsageError(f"{where}: {key} is a table, no setting: set what is in it, such as {within}=VALUE")
    return place, last


def _suggestion(key: str, paths: list[str], see: str) -> str:
    """A sentence's end: the settings that ``key`` is the last part of, or those that are like it."""
    whole = sorted((path for path in paths if path.endswith(f".{key}")), key=lambda path: path.count("."))
    if not whole:
        return suggestions.nearest(key, paths, see)
    if len(whole) == 1:
        return f"write the whole name, {whole[0]}"
    more = f"; {see}" if see and len(whole) > suggestions.FEW_NAMED else ""
    return f"write the whole name, one of {', '.join(whole[: suggestions.FEW_NAMED])}{more}"


def is_setting(key: str) -> bool:
    """Whether every experiment has a setting of this name, which is no table."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(ExperimentSpec)}
    return key in fields and get_origin(fields[key].type) is not dict


def values(plain: dict[str, Any]) -> list[str]:
    """Every setting with its value, "key=value" as ``-s`` has it; without a value, or with a list of tables,
    the key alone."""
    found = []
    for path in _paths(plain):
        value = at(plain, path.split("."))
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        has_tables = isinstance(value, list) and any(isinstance(one, dict) for one in value)
        found.append(path if value is None or has_tables else f"{path}={text}")
    return found


def matching(plain: dict[str, Any], pattern: str) -> list[str]:
    """The settings that ``pattern`` stands for, each ``*`` in it for any name."""
    expression = re.compile(re.escape(pattern).replace(r"\*", r"[^.]+"))
    return [path for path in _paths(plain) if expression.fullmatch(path)] if "*" in pattern else [pattern]


def _value(text: str, before: Any) -> Any:
    """What the user meant: text where text stood, else a TOML value, else text."""
    if isinstance(before, str):
        return text.strip("\"'")
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # also a number, or a nesting, that Python refuses
        if isinstance(before, list):
            return [part for part in re.split(r"\s*,\s*", text) if part]
        return text


def _paths(plain: dict[str, Any], prefix: str = "") -> list[str]:
    """The settings; what has a name with a dot, as published numbers have, cannot be set."""
    found = []
    for key, value in plain.items():
        if "." in key:
            continue
        if isinstance(value, dict):
            found += _paths(value, f"{prefix}{key}.")
        else:
            found.append(f"{prefix}{key}")
    return found
