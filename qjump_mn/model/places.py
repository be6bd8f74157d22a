"""Where in a TOML file something stands."""

from __future__ import annotations

import re
from pathlib import Path


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
        key = re.compile(rf"^[ \t]*{re.escape(parts[cut])}[ \t]*[.=]", re.MULTILINE).search(table)
        if key:
            return begin + table[: key.start()].count("\n")
        return begin if cut else None
    return None


def _table(text: str, parts: list[str]) -> tuple[int, str | None]:
    """The line of a table's head, and what is below it up to the next head; of no parts, what is above all
    heads."""
    heads = re.compile(r"^[ \t]*\[", re.MULTILINE)
    if not parts:
        end = heads.search(text)
        return 1, text[: end.start()] if end else text
    head = re.search(rf"^[ \t]*\[+[ \t]*{re.escape('.'.join(parts))}[ \t]*\]", text, re.MULTILINE)
    if head is None:
        return 0, None
    end = heads.search(text, head.end())
    begin = text[: head.end()].count("\n") + 1
    return begin, text[head.end() : end.start() if end else len(text)]


def told(message: str, place: str, file: Path | None) -> str:
    """The file and, where there is one, the line of what msgspec's ``message`` about ``place`` is of, in
    words."""
    if file is None:
        return ""
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message)
    number = line(file.read_text(encoding="utf-8"), f"{place}.{unknown[1]}" if unknown else place)
    return f" ({file}, line {number})" if number else f" ({file})"
