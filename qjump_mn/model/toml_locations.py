"""Where in a TOML file something stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple


class Laid(NamedTuple):
    """A table of a file, such as "presets.course", whose content was laid over what stands above it."""

    name: str
    table: dict[str, Any]


NOTHING_LAID = Laid("", {})


def line(text: str, place: str) -> int | None:
    """The number of the line of ``place``, such as "workloads.ping.interval", or of the table that it would
    be in; None where neither is written as a table of its own or a key of one."""
    parts = [part for part in re.split(r"[.\[\]]+", place) if part]
    for cut in range(len(parts), -1, -1):
        begin, table = _table(text, parts[:cut])
        if table is None:
            continue
        if cut == len(parts):
            return begin if parts else None
        # The whole of a dotted key, or the first key that begins as it does.
        for end in range(len(parts), cut, -1):
            rest = r"[ \t]*\.[ \t]*".join(map(_key, parts[cut:end]))
            key = re.compile(rf"^[ \t]*{rest}[ \t]*[.=]", re.MULTILINE).search(table)
            if key:
                return begin + table[: key.start()].count("\n")
        return begin if cut else None
    return None


def _key(part: str) -> str:
    """An expression for a key as a file may write it."""
    return rf"[\"']?{re.escape(part)}[\"']?"


def _table(text: str, parts: list[str]) -> tuple[int, str | None]:
    """The line of a table's head, and what is below it up to the next head; of no parts, what is above all
    heads."""
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


def told(message: str, place: str, file: Path | None, laid: Laid = NOTHING_LAID) -> str:
    """The file and, where there is one, the line of what msgspec's ``message`` about ``place`` is of, in
    words."""
    if file is None:
        return ""
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message)
    key = ".".join(filter(None, [place, unknown[1] if unknown else ""]))
    if _has(laid.table, key):
        key = f"{laid.name}.{key}"
    number = line(file.read_text(encoding="utf-8"), key)
    return f" ({file}, line {number})" if number else f" ({file})"


def _has(table: Any, key: str) -> bool:
    """Whether a table has something at a ``key`` such as "workloads.ping.interval"."""
    for part in filter(None, re.split(r"[.\[\]]+", key)):
        if isinstance(table, list):
            return True
        if not isinstance(table, dict) or part not in table:
            return False
        table = table[part]
    return bool(key)
