"""Convert a table of a file to its type, and report errors with their location and line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model import words
from qjump_mn.programs import registry
from qjump_mn.resolve import toml_locations, type_errors

T = TypeVar("T")


def convert(
    raw: dict[str, Any],
    kind: type[T],
    where: str,
    file: Path | None = None,
    laid: Sequence[toml_locations.Laid] = (),
) -> T:
    """Return ``raw`` as ``kind``. Raise :class:`UsageError` with the location of an error, and its
    line in ``file``. ``laid`` are tables of the file that override the top level, such as
    presets, the last one first.

    The class variable ``WORDS`` of ``kind`` has the kinds of its words
    (:mod:`qjump_mn.model.words`).
    """
    for place, problem in words.problems(raw, getattr(kind, "WORDS", {})):
        raise UsageError(f"{where}: {problem}{toml_locations.suffix('', place, file, laid)}")
    for place, value in _not_finite(raw, ""):
        raise UsageError(
            f"{where}: {place}: {value} is not a finite "
            f"number{toml_locations.suffix('', place, file, laid)}"
        )
    try:
        return msgspec.convert(raw, kind, dec_hook=registry.decode)
    except msgspec.ValidationError as error:
        message, place = type_errors.placed(registry.sentence(error), raw, kind, registry.decode)
        problem = type_errors.sentence(message, place, raw, kind)
        raise UsageError(
            f"{where}: {problem}{toml_locations.suffix(message, place, file, laid)}"
        ) from None


def _not_finite(raw: Any, place: str) -> Iterator[tuple[str, float]]:
    """Yield the locations and values of nan and inf."""
    if isinstance(raw, float) and not math.isfinite(raw):
        yield place, raw
    for key, value in raw.items() if isinstance(raw, dict) else ():
        yield from _not_finite(value, f"{place}.{key}" if place else str(key))
    for number, value in enumerate(raw) if isinstance(raw, list) else ():
        yield from _not_finite(value, f"{place}[{number}]")
