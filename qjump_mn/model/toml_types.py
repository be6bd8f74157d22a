"""A table of a file, as the type that it must be: what does not fit is told with its place and its line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model import suggestions, toml_locations, words
from qjump_mn.programs import registry

T = TypeVar("T")


def convert(
    raw: dict[str, Any],
    kind: type[T],
    where: str,
    file: Path | None = None,
    laid: toml_locations.Laid = toml_locations.NOTHING_LAID,
) -> T:
    """``raw`` as ``kind``; raise :class:`UsageError` with the place of what does not fit, and its line where
    it is written in ``file``, or in what of it was ``laid`` over the rest.

    The class variable ``WORDS`` of ``kind`` has the kinds of its words (:mod:`qjump_mn.model.words`)."""
    for place, problem in words.problems(raw, getattr(kind, "WORDS", {})):
        raise UsageError(f"{where}: {problem}{toml_locations.told('', place, file, laid)}")
    for place, value in _not_finite(raw, ""):
        raise UsageError(
            f"{where}: {place}: {value} is no number{toml_locations.told('', place, file, laid)}"
        )
    try:
        return msgspec.convert(raw, kind, dec_hook=registry.decode)
    except msgspec.ValidationError as error:
        message, place = suggestions.placed(registry.sentence(error), raw, kind, registry.decode)
        said = suggestions.sentence(message, place, raw, kind)
        raise UsageError(f"{where}: {said}{toml_locations.told(message, place, file, laid)}") from None


def _not_finite(raw: Any, place: str) -> Iterator[tuple[str, float]]:
    """The places of what TOML has as nan and inf."""
    if isinstance(raw, float) and not math.isfinite(raw):
        yield place, raw
    for key, value in raw.items() if isinstance(raw, dict) else ():
        yield from _not_finite(value, f"{place}.{key}" if place else str(key))
    for number, value in enumerate(raw) if isinstance(raw, list) else ():
        yield from _not_finite(value, f"{place}[{number}]")
