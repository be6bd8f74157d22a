"""Insert new lines into the files of a tree."""

from __future__ import annotations

import re

from upstream.single import ANOTHER_TREE, TextError


def after(text: str, line: str, new: str, where: str) -> str:
    """Insert lines after the first line that matches. Raises TextError if none does."""
    match = re.search(rf"^{line}\n", text, re.M)
    if not match:
        raise TextError(f"{where} has no line {line!r}: {ANOTHER_TREE}")
    return text[: match.end()] + new + text[match.end() :]


def before(text: str, line: str, new: str, where: str) -> str:
    """Insert lines before the last line that matches. Raises TextError if none does."""
    matches = list(re.finditer(rf"^{line}\n", text, re.M))
    if not matches:
        raise TextError(f"{where} has no line {line!r}: {ANOTHER_TREE}")
    start = matches[-1].start()
    return text[:start] + new + text[start:]


def maintainers(text: str, title: str, lines: str) -> str:
    """Insert a section into MAINTAINERS, in alphabetical order of titles."""
    head, start, sections = text.partition("\n3C59X NETWORK DRIVER\n")
    if not start:
        raise TextError(f"MAINTAINERS does not begin with 3C59X NETWORK DRIVER: {ANOTHER_TREE}")
    parts = (start.lstrip("\n") + sections).split("\n\n")
    place = next(
        (
            i
            for i, part in enumerate(parts)
            if part.partition("\n")[0].casefold() > title.casefold()
        ),
        len(parts) - 1,
    )
    parts.insert(place, f"{title}\n{lines.rstrip()}")
    return head + "\n" + "\n\n".join(parts)
