"""Extract numbers from a command's output, by a regular expression or a path into JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from qjump_mn.errors import LostError, UsageError

_STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[(\d+|\*)\]")

STATISTICS = {"mean": "mean", "p50": "median", "p99": "p99", "min": "least", "max": "greatest"}
"""Statistics of each number, named NAME_mean and so on, with their headings; there is also
NAME_count."""


class Number(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """Where to find a number: the first group of every match of ``regex``, or the value at the path
    ``json``; ``unit`` is its unit.

    A path looks like "end.streams[0].sender.bytes"; ``[*]`` stands for each element of a list.
    """

    regex: str = ""
    json: str = ""
    unit: str = ""

    def check(self, where: str) -> None:
        """Raise :class:`UsageError`, with the setting's name, if the number cannot be found in this
        way."""
        if bool(self.regex) == bool(self.json):
            raise UsageError(f"{where}: give either regex or json")
        if self.json:
            path(self.json, f"{where}.json")
            return
        try:
            groups = re.compile(self.regex).groups
        except re.error as error:
            raise UsageError(
                f"{where}.regex: {self.regex!r} is not a regular expression: {error}"
            ) from None
        if not groups:
            raise UsageError(
                f"{where}.regex: {self.regex!r} has no group: put the number in parentheses, such "
                "as 'time=([0-9.]+)'"
            )

    def headings(self, name: str) -> dict[str, str]:
        """The measures of the number called ``name``, with their headings. ``name`` itself is its
        value, if it has only one."""
        unit = f", {self.unit}" if self.unit else ""
        statistics = {f"{name}_{key}": f"{name} {word}{unit}" for key, word in STATISTICS.items()}
        return {name: f"{name}{unit}", **statistics, f"{name}_count": f"{name} count"}

    def read(self, name: str, text: str) -> list[float]:
        """All values in ``text``; raise :class:`LostError` if there is none, or one is not a
        number."""
        values = self._in_json(name, text) if self.json else self._matches(text)
        if not values:
            raise LostError(
                f"number {name!r} is not in the output: {self.regex or self.json!r} matches nothing"
            )
        try:
            return [float(value) for value in values]
        except (TypeError, ValueError):
            wrong = next(value for value in values if not _is_number(value))
            raise LostError(f"number {name!r}: {wrong!r} is not a number") from None

    def _matches(self, text: str) -> list[Any]:
        return [match[1] for match in re.finditer(self.regex, text, re.MULTILINE)]

    def _in_json(self, name: str, text: str) -> list[Any]:
        try:
            values = [json.loads(text)]
        except json.JSONDecodeError as error:
            raise LostError(f"number {name!r}: the output is not JSON: {error}") from None
        for step in path(self.json, name):
            try:
                values = [
                    inner
                    for value in values
                    for inner in (value if step is None else [value[step]])
                ]
            except (LookupError, TypeError):
                step_text = "[*]" if step is None else step
                raise LostError(
                    f"number {name!r} is not in the output: there is no {step_text!r} of "
                    f"{self.json!r}"
                ) from None
        return values


def path(text: str, where: str) -> list[str | int | None]:
    """Parse a path into names, positions, and None for each element; raise :class:`UsageError` if
    it is not valid."""
    steps: list[str | int | None] = []
    end = 0
    while end < len(text):
        match = _STEP.match(text, end)
        if match is None or (end == 0 and text[0] == "."):
            raise UsageError(
                f"{where}: {text!r} is not a path: character {end + 1} is wrong: write, for "
                "example, 'end.streams[0].bytes'"
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
