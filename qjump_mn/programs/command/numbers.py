"""Numbers out of the text that a command left: by a regular expression, or by a path into JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from qjump_mn.errors import LostError, UsageError

_STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[(\d+|\*)\]")

STATISTICS = {"mean": "mean", "p50": "median", "p99": "p99", "min": "least", "max": "greatest"}
"""What a number becomes, NAME_mean and so on, each with its heading; beside these there is NAME_count."""


class Number(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Where a number stands: the first group of every match of ``regex``, or what is at ``json``, with its
    ``unit``.

    A path is such as "end.streams[0].sender.bytes"; ``[*]`` stands for each element of a list.
    """

    regex: str = ""
    json: str = ""
    unit: str = ""

    def check(self, where: str) -> None:
        """Raise :class:`UsageError` with the place of what cannot be read."""
        if bool(self.regex) == bool(self.json):
            raise UsageError(f"{where}: give either regex or json")
        if self.json:
            path(self.json, f"{where}.json")
            return
        try:
            groups = re.compile(self.regex).groups
        except re.error as error:
            raise UsageError(f"{where}.regex: {self.regex!r} is no regular expression: {error}") from None
        if not groups:
            raise UsageError(
                f"{where}.regex: {self.regex!r} has no group: put the number in parentheses, such as "
                "'time=([0-9.]+)'"
            )

    def headings(self, name: str) -> dict[str, str]:
        """The measures of the number called ``name``. ``name`` itself is its value where it has only one."""
        unit = f", {self.unit}" if self.unit else ""
        statistics = {f"{name}_{key}": f"{name} {word}{unit}" for key, word in STATISTICS.items()}
        return {name: f"{name}{unit}", **statistics, f"{name}_count": f"{name} count"}

    def read(self, name: str, text: str) -> list[float]:
        """Every value in ``text``; raise :class:`LostError` if there is none, or something that is no
        number."""
        values = self._in_json(name, text) if self.json else self._matches(text)
        if not values:
            raise LostError(f"number {name!r} is not in it: {self.regex or self.json!r} matches nothing")
        try:
            return [float(value) for value in values]
        except (TypeError, ValueError):
            wrong = next(value for value in values if not _is_number(value))
            raise LostError(f"number {name!r}: {wrong!r} is no number") from None

    def _matches(self, text: str) -> list[Any]:
        return [match[1] for match in re.finditer(self.regex, text, re.MULTILINE)]

    def _in_json(self, name: str, text: str) -> list[Any]:
        try:
            places = [json.loads(text)]
        except json.JSONDecodeError as error:
            raise LostError(f"number {name!r}: the text is no JSON: {error}") from None
        for step in path(self.json, name):
            try:
                places = [inner for place in places for inner in (place if step is None else [place[step]])]
            except (LookupError, TypeError):
                shown = "[*]" if step is None else step
                raise LostError(
                    f"number {name!r} is not in it: there is no {shown!r} of {self.json!r}"
                ) from None
        return places


def path(text: str, where: str) -> list[str | int | None]:
    """The steps of a path: names, positions, and None for each element; raise :class:`UsageError` for
    nonsense."""
    steps: list[str | int | None] = []
    end = 0
    while end < len(text):
        match = _STEP.match(text, end)
        if match is None or (end == 0 and text[0] == "."):
            raise UsageError(
                f"{where}: {text!r} is no path: character {end + 1} is wrong: write such as "
                "'end.streams[0].bytes'"
            )
        steps.append(match[1] or (None if match[2] == "*" else int(match[2])))
        end = match.end()
    return steps


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
