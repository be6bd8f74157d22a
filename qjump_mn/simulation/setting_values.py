"""Read the settings of experiments as values for the simulator's types."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Mapping
from typing import Any

import qjump_sim
from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model import units
from qjump_mn.model.scheme import Setting
from qjump_mn.model.topology import Link

_TIME = "Duration"
"""Settings of this unit are in ps in the simulator, and have a unit in experiments."""
_TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number"}
_NONE = "none"
"""Stands for None in the simulator: no limit, no delayed ACK, never."""
_BUFFER_BYTES = "buffer-bytes"
"""The buffer of a port in bytes; "buffer" is the same in full packets."""

Settings = Mapping[str, Setting]


def changed(where: str, base: Any, settings: Settings, link: Link) -> Any:
    return (
        dataclasses.replace(base, **_values(where, type(base), settings, link))
        if settings
        else base
    )


def made(where: str, kind: type[Any], settings: Settings, link: Link) -> Any:
    values = _values(where, kind, settings, link)
    missing = [
        field.name
        for field in dataclasses.fields(kind)
        if field.name not in values and field.default is dataclasses.MISSING
    ]
    if missing:
        raise UsageError(f"{where}: it needs {', '.join(missing)}")
    return kind(**values)


def _values(where: str, kind: type[Any], settings: Settings, link: Link) -> dict[str, Any]:
    """Return the settings as values for the fields of ``kind``."""
    types, units_of = typing.get_type_hints(kind), qjump_sim.UNITS.get(kind.__name__, {})
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in types:
            raise UsageError(
                f"{where}.{name}: there is no such setting: known are {', '.join(types)}"
            )
        if value == "buffer" and name == "packets":
            value = link.buffer_bytes // link.mtu_bytes
        if value == _BUFFER_BYTES and name == "bytes":
            value = link.buffer_bytes
        kinds = (types[name], *typing.get_args(types[name]))
        if value == _NONE and type(None) in kinds:
            values[name] = None
        elif units_of.get(name) == _TIME:
            values[name] = parse_time(f"{where}.{name}", value)
        else:
            values[name] = _value(f"{where}.{name}", value, kinds, link)
    return values


def _value(where: str, value: Setting, kinds: tuple[Any, ...], link: Link) -> Any:
    """Return a setting's value. For a :class:`qjump_sim.Limit`, text is a time, a number of
    packets, or the buffer of a port in full packets.
    """
    if any(typing.get_origin(kind) is typing.Literal for kind in kinds):
        return value
    limit = qjump_sim.Packets in kinds
    if not limit and (isinstance(value, str) or (isinstance(value, bool) and bool not in kinds)):
        raise wrong(where, value, kinds)
    if not isinstance(value, str):
        return value
    if value == "buffer":
        return qjump_sim.Packets(link.buffer_bytes // link.mtu_bytes)
    if value == _BUFFER_BYTES:
        return link.buffer_bytes
    if packets := re.fullmatch(r"([0-9]+)pkt", value):
        return qjump_sim.Packets(int(packets[1]))
    if share := re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)% of buffer", value):
        return qjump_sim.Packets(
            round(float(share[1]) / 100 * link.buffer_bytes / theory.frame_bytes(link.mtu_bytes))
        )
    try:
        return qjump_sim.Time(parse_time(where, value))
    except UsageError:
        raise UsageError(
            f"{where}: {value!r} is not a size: write 150000 (bytes), '65pkt', '7% of buffer', "
            "'buffer' or '200us' (of sending)"
        ) from None


def wrong(where: str, value: Setting, kinds: tuple[Any, ...]) -> UsageError:
    expected = next((text for kind, text in _TYPE_NAMES.items() if kind in kinds), "a list")
    return UsageError(f"{where}: {value!r} is not {expected}")


def parse_time(where: str, value: Setting) -> int:
    """Parse a time; return it in ps."""
    try:
        return int(units.Duration.parse(value)) * qjump_sim.NS
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
