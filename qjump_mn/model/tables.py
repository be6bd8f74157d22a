"""Find and change settings in an experiment's plain tables by name, "workloads.ping.interval"."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from typing import Any, get_origin

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model import suggestions, units
from qjump_mn.model.experiment import ExperimentSpec

FREE = (
    *("factors", "host_jitter_of", "loss_of", "jitter_of", "reorder_of", "trace_of"),
    *("queue", "host_queue", "pause", "transport"),
)
"""Tables that accept any key; a backend checks them."""


def merge(base: dict[str, Any], changes: dict[str, Any]) -> None:
    """Merge ``changes`` into ``base``, table by table."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            merge(base[key], value)
        else:
            base[key] = value


def at(table: Any, names: Sequence[str]) -> Any:
    """Return the value below these names in nested tables; None if there is none."""
    for name in names:
        table = table.get(name) if isinstance(table, dict) else None
    return table


def leave_out(raw: dict[str, Any], entry: str, where: str) -> None:
    """Remove an entry, such as "arms.probe". Raise :class:`UsageError` if it does not exist."""
    *parents, last = entry.split(".")
    table = at(raw, parents)
    if not isinstance(table, dict) or table.pop(last, None) is None:
        raise UsageError(f"{where}: there is no {entry!r} to leave out")


def check(spec: ExperimentSpec, keys: Iterable[str], where: str) -> None:
    """Raise :class:`UsageError` unless each of ``keys`` is a setting of the experiment ``spec``."""
    plain: dict[str, Any] = msgspec.to_builtins(spec, enc_hook=units.encode)
    for key in keys:
        place_of(plain, key, where)


def apply(plain: dict[str, Any], setting: str, experiment: str) -> None:
    """Apply a "key=value" of ``-s``. Raise :class:`UsageError` for an unknown or malformed
    setting."""
    key, equals, text = setting.partition("=")
    key = key.strip()
    if not equals or not key:
        raise UsageError(
            f"-s {setting!r} is not a setting: write key=value, such as -s link.rate=100Mbit"
        )
    see = f"qjump-mn explain {experiment} --all lists them"
    table, last = place_of(plain, key, f"experiment {experiment!r}", see)
    table[last] = _value(text.strip(), table.get(last))


def place_of(
    plain: dict[str, Any], key: str, where: str, see: str = ""
) -> tuple[dict[str, Any], str]:
    """Return the table that holds the setting ``key``, and the key's last part. ``see`` says where
    a user finds all settings. Raise :class:`UsageError` for an unknown setting.
    """
    *parents, last = key.split(".")
    table = at(plain, parents)
    free = bool(parents) and parents[-1] in FREE
    if not isinstance(table, dict) or (last not in table and not free):
        raise UsageError(f"{where} has no setting {key!r}: {_suggestion(key, _paths(plain), see)}")
    if isinstance(table.get(last), dict):
        within = next(iter(_paths(table[last], f"{key}.")), f"{key}.NAME")
        raise UsageError(
            f"{where}: {key} is a table, not a setting: set a value in it, such as {within}=VALUE"
        )
    return table, last


def _suggestion(key: str, paths: list[str], see: str) -> str:
    """Return the end of a sentence with the settings that end with ``key``, or else the similar
    ones.
    """
    matches = sorted(
        (path for path in paths if path.endswith(f".{key}")), key=lambda path: path.count(".")
    )
    if not matches:
        return suggestions.nearest(key, paths, see)
    if len(matches) == 1:
        return f"write the whole name, {matches[0]}"
    more = f"; {see}" if see and len(matches) > suggestions.FEW_NAMED else ""
    return f"write the whole name, one of {', '.join(matches[: suggestions.FEW_NAMED])}{more}"


def is_setting(key: str) -> bool:
    """Return whether every experiment has this setting, and it is not a table."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(ExperimentSpec)}
    return key in fields and get_origin(fields[key].type) is not dict


def values(plain: dict[str, Any]) -> list[str]:
    """Return every setting as ``-s`` takes it, "key=value"; only the key if it has no value or a
    list of tables.
    """
    settings = []
    for path in _paths(plain):
        value = at(plain, path.split("."))
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        has_tables = isinstance(value, list) and any(isinstance(entry, dict) for entry in value)
        settings.append(path if value is None or has_tables else f"{path}={text}")
    return settings


def matching(plain: dict[str, Any], pattern: str) -> list[str]:
    """Return the settings that ``pattern`` matches; each ``*`` in it stands for any name."""
    expression = re.compile(re.escape(pattern).replace(r"\*", r"[^.]+"))
    return (
        [path for path in _paths(plain) if expression.fullmatch(path)]
        if "*" in pattern
        else [pattern]
    )


def _value(text: str, before: Any) -> Any:
    """Parse a value from the command line: as text if the old value is text, else as TOML, else as
    text.
    """
    if isinstance(before, str):
        return text.strip("\"'")
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # or a number, or a nesting, that Python refuses
        if isinstance(before, list):
            return [part for part in re.split(r"\s*,\s*", text) if part]
        return text


def _paths(plain: dict[str, Any], prefix: str = "") -> list[str]:
    """Return the names of all settings. A key with a dot, such as a published number's, cannot be
    set.
    """
    paths = []
    for key, value in plain.items():
        if "." in key:
            continue
        if isinstance(value, dict):
            paths += _paths(value, f"{prefix}{key}.")
        else:
            paths.append(f"{prefix}{key}")
    return paths
