"""Merge local headers into the C file that includes them; drop what only out-of-tree builds need.

The sources are edited as text. An edit that no longer finds its place raises `TextError`, so that
a series is either complete or not written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_LOCAL = re.compile(r'^#include "(.+)"\n', re.M)
_SYSTEM = re.compile(r"^#include <(.+)>\n", re.M)
_NAME = re.compile(
    r"#define (\w+)|(?:struct|enum) (\w+) \{|\w.*?(\w+)(?:\[.*?\])* = |\w[^(]*?(\w+)\("
)


ANOTHER_TREE = "the series is for another version of this tree"


class TextError(Exception):
    """A file is not as this program expects it; the message says which and where."""


def read(path: Path) -> str:
    """Return the text of a file. Raises TextError if it cannot be read."""
    try:
        return path.read_text()
    except OSError as error:
        raise TextError(f"{path} cannot be read ({error.strerror}): {ANOTHER_TREE}") from error


def replaced(text: str, pattern: str, by: str, where: str) -> str:
    """Replace the only match of a pattern. Raises TextError unless there is exactly one."""
    found = len(re.findall(pattern, text, re.M | re.S))
    if found != 1:
        raise TextError(
            f"{where}: {found} places match {pattern!r}, and one must: change the series with its "
            "source"
        )
    return re.sub(pattern, lambda _: by, text, count=1, flags=re.M | re.S)


def chosen(text: str, defined: Iterable[str]) -> str:
    """Resolve #if, #ifdef and #ifndef on the given names as defined; keep other conditions."""
    names, lines = set(defined), []
    branches: list[
        tuple[bool, bool]
    ] = []  # of each condition: whether this branch stays, whether that is decided
    for line in text.splitlines(keepends=True):
        word, _, rest = line.strip().partition(" ")
        is_decided = False
        if word in ("#ifdef", "#ifndef", "#if"):
            is_decided = word != "#if" and rest in names
            branches.append((not is_decided or word == "#ifdef", is_decided))
        elif word == "#else":
            stays, is_decided = branches[-1]
            branches[-1] = (not stays if is_decided else stays, is_decided)
        elif word == "#endif":
            is_decided = branches.pop()[1]
        if not is_decided and all(stays for stays, _ in branches):
            lines.append(line)
    return "".join(lines)


def body(header: str) -> str:
    """Return a header without licence, opening comment and include guard."""
    text = re.sub(r"\A/\* SPDX.*?\*/\n", "", header)
    text = re.sub(r"\A/\*.*?\*/\n", "", text, flags=re.S)
    return re.sub(r"\A#ifndef (\w+)\n#define \1\n(.*)\n#endif\n\Z", r"\2\n", text, flags=re.S)


def definitions(text: str) -> list[tuple[set[str], str]]:
    """Return names and text, with the comment before it, of each definition in a header.

    Definitions are functions, macros, types and tables, not declarations of functions.
    """
    found: list[tuple[set[str], str]] = []
    chunk: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line or sum(one.count("{") - one.count("}") for one in chunk) > 0:
            chunk.append(line)
        elif chunk:
            names = {
                name
                for one in chunk
                if (match := _NAME.match(one))
                for name in match.groups()
                if name
            }
            if names and (any("{" in one for one in chunk) or chunk[-1].startswith("#")):
                found.append((names, "\n".join(chunk)))
            chunk = []
    return found


def used(parts: Sequence[tuple[set[str], str]], by: str) -> list[tuple[set[str], str]]:
    """Return the definitions that a text uses, directly or through others, in their order."""
    taken: list[int] = []
    while True:
        words = set(re.findall(r"\w+", "\n".join([by, *(parts[i][1] for i in taken)])))
        more = [i for i, (names, _) in enumerate(parts) if i not in taken and names & words]
        if not more:
            return [parts[i] for i in sorted(taken)]
        taken += more


@dataclass(frozen=True)
class Merged:
    """A file without includes, the definitions it uses of local headers, and all system headers."""

    main: str
    helpers: str
    system: list[str]

    @property
    def includes(self) -> str:
        return "".join(f"#include <{name}>\n" for name in self.system)


def outlined(text: str) -> str:
    """Make an inline function of a header an ordinary static one, and re-align its parameters."""
    first, inline, rest = text.partition("static inline ")
    if not inline:
        return text
    head, brace, body = rest.partition("\n{")
    lines = head.split("\n")
    for i in range(1, len(lines)):
        width = len(lines[i].expandtabs()) - len(lines[i].lstrip()) - len("inline ")
        lines[i] = "\t" * (width // 8) + " " * (width % 8) + lines[i].lstrip()
    return first + "static " + "\n".join(lines) + brace + body


def merged(path: Path, *, defined: Iterable[str] = (), absent: Iterable[str]) -> Merged:
    """Merge a file with its local headers.

    `defined` are the features that the tree has; `absent` are headers, and names in headers, that
    the tree declares elsewhere.
    """
    left_out, texts, system = set(absent), dict[str, str](), set[str]()

    def read(name: str) -> None:
        texts[name] = ""
        text = chosen((path.parent / name).read_text(), defined)
        for other in _LOCAL.findall(text):
            if other not in texts and other not in left_out:
                read(other)
        system.update(_SYSTEM.findall(text))
        texts[name] = texts.pop(name) + _LOCAL.sub("", _SYSTEM.sub("", text))  # after its includes

    read(path.name)
    main = texts.pop(path.name)
    parts = [
        part
        for text in texts.values()
        for part in definitions(body(text))
        if not part[0] & left_out
    ]
    helpers = "\n\n".join(outlined(text) for _, text in used(parts, main))
    return Merged(main, helpers, sorted(system))
