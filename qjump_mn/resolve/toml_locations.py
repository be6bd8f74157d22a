"""Find the line of a key or a table in a TOML file, for error messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Laid(NamedTuple):
    """A table of a file, such as "presets.course", whose content overrides the top level."""

    name: str
    table: dict[str, Any]


def line(text: str, place: str) -> int | None:
    """Return the line number of ``place``, such as "workloads.ping.interval", or of the table that
    would contain it; None if the file has neither.
    """
    parts = [part for part in re.split(r"[.\[\]]+", place) if part]
    for cut in range(len(parts), -1, -1):
        begin, table = _table(text, parts[:cut])
        if table is None:
            continue
        # The whole dotted key, or the first key with the longest common prefix.
        for end in range(len(parts), cut, -1):
            rest = r"[ \t]*\.[ \t]*".join(map(_key, parts[cut:end]))
            key = re.compile(rf"^[ \t]*{rest}[ \t]*[.=]", re.MULTILINE).search(table)
            if key:
                return begin + table[: key.start()].count("\n")
        return begin if cut else None
    return None


def _key(part: str) -> str:
    """Return a regular expression for the ways to write a key in a file."""
    return rf"[\"']?{re.escape(part)}[\"']?"


def _table(text: str, parts: list[str]) -> tuple[int, str | None]:
    """Return the line of a table's header, and the text from there to the next header. Without
    ``parts``, return the text above all headers.
    """
    heads = re.compile(r"^[ \t]*\[", re.MULTILINE)
    if not parts:
        end = heads.search(text)
        return 1, text[: end.start()] if end else text
    name = r"\.".join(map(_key, parts))
    head = re.search(rf"^[ \t]*\[+[ \t]*{name}[ \t]*\]", text, re.MULTILINE)
    if head is None:
        return 0, None
    end = heads.search(text, head.end())
    begin = text[: head.end()].count("\n") + 1
    return begin, text[head.end() : end.start() if end else len(text)]


def suffix(message: str, place: str, file: Path | None, laid: Sequence[Laid] = ()) -> str:
    """Return " (FILE, line N)" for msgspec's ``message`` about ``place``; without the line if it is
    unknown, and empty without a file.
    """
    if file is None:
        return ""
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message)
    key = ".".join(filter(None, [place, unknown[1] if unknown else ""]))
    key = next((f"{each.name}.{key}" for each in laid if _has(each.table, key)), key)
    number = line(file.read_text(encoding="utf-8"), key)
    return f" ({file}, line {number})" if number else f" ({file})"


def _has(table: Any, key: str) -> bool:
    """Return whether nested tables have an entry ``key`` such as "workloads.ping.interval"."""
    for part in filter(None, re.split(r"[.\[\]]+", key)):
        if isinstance(table, list):
            return True
        if not isinstance(table, dict) or part not in table:
            return False
        table = table[part]
    return bool(key)
