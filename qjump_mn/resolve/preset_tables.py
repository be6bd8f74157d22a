"""Apply a preset's table to an experiment's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qjump_mn.errors import UsageError
from qjump_mn.model import suggestions, tables
from qjump_mn.resolve import toml_locations

OWN = ("about", "like", "without")
"""The keys of a preset that are not settings."""


def apply(
    raw: dict[str, Any], presets: Mapping[str, dict[str, Any]], name: str, where: str
) -> list[toml_locations.Laid]:
    """Change the experiment's tables ``raw`` as the preset ``name`` of ``presets`` says: as the
    preset that its ``like`` names does, then leave out what ``without`` names, then override.

    Returns the tables that override, the last one first. Raises :class:`UsageError` for a preset
    that does not exist, or that is like itself.
    """
    laid: list[toml_locations.Laid] = []
    for each in reversed(_line(presets, name, where)):
        table = presets[each]
        for entry in table.get("without", ()):
            tables.leave_out(raw, entry, f"{where}: presets.{each}.without")
        changes = {key: value for key, value in table.items() if key not in OWN}
        tables.merge(raw, changes)
        laid.insert(0, toml_locations.Laid(f"presets.{each}", changes))
    return laid


def _line(presets: Mapping[str, dict[str, Any]], name: str, where: str) -> list[str]:
    """Return the preset ``name``, the one that it is like, and so on."""
    found: list[str] = []
    said = where
    while name:
        if name in found:
            raise UsageError(f"{said}: {name!r} would be like itself: name another preset")
        if name not in presets:
            raise UsageError(
                f"{said} has no preset {name!r}: {suggestions.nearest(name, list(presets))}"
            )
        found.append(name)
        said = f"{where}: presets.{name}.like"
        name = presets[name].get("like", "")
    return found
