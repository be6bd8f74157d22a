"""Generate the section for Documentation/netlink/specs/tc.yaml from the qdisc's header.

The comments of the header give type and description of each attribute.
"""

from __future__ import annotations

import re

from upstream import insert
from upstream.single import TextError

SETS = {
    "TCA_QJUMP_": "qjump-attrs",
    "TCA_QJUMP_LEVEL_": "qjump-level-attrs",
    "TCA_QJUMP_STATS_": "qjump-stats-attrs",
    "TCA_QJUMP_LEVEL_STATS_": "qjump-level-stats-attrs",
}
"""The attribute sets, by the prefix of their names."""

NESTS = {"TCA_QJUMP_LEVEL": "qjump-level-attrs", "TCA_QJUMP_STATS_LEVEL": "qjump-level-stats-attrs"}

_LINE_WIDTH = 76


def written(text: str, header: str) -> str:
    """Insert the section into tc.yaml. Raises TextError if it or the header is not as expected."""
    where = "tc.yaml"
    sets = "".join(_attributes(prefix, name, header) for prefix, name in SETS.items())
    text = insert.before(text, "  -\n    name: red-attrs", sets, where)
    options = "      -\n        value: qjump\n        attribute-set: qjump-attrs\n"
    text = insert.before(
        text, "      -\n        value: red\n        attribute-set: red-attrs", options, where
    )
    options = options.replace("qjump-attrs", "qjump-stats-attrs")
    return insert.before(
        text, "      -\n        value: red\n        fixed-header: tc-red-xstats", options, where
    )


def _entries(start: str, header: str) -> list[tuple[str, str]]:
    """Return the entries of an enum with their comments; `start` is its beginning."""
    match = re.search(rf"{start}(.*?)\n}};", header, re.S)
    if not match:
        raise TextError(f"the header has no {start!r}: change the series with it")
    return re.findall(r"^\t(\w+),(?:[ \t]*/\* (.*?) \*/)?$", match[1], re.M)


def _attributes(prefix: str, name: str, header: str) -> str:
    lines = [
        f"  -\n    name: {name}\n    name-prefix: {prefix.lower().replace('_', '-')}\n    "
        "attributes:\n"
    ]
    for attribute, comment in _entries(rf"enum {{\n\t{prefix}UNSPEC,", header):
        if attribute.startswith("__"):
            continue
        lines.append(f"      -\n        name: {attribute.removeprefix(prefix).lower()}\n")
        lines += [f"        {line}\n" for line in _described(attribute, comment)]
    return "".join(lines)


def _described(attribute: str, comment: str) -> list[str]:
    """Return type and description of an attribute: `uint, ns: length ...` begins with the type."""
    if attribute in NESTS:
        return [
            "type: nest",
            f"nested-attributes: {NESTS[attribute]}",
            "multi-attr: true",
            *_doc(re.sub(r"^nest of \S+, ", "", comment)),
        ]
    match = re.fullmatch(r"(uint|u8\[\d+\])(?:[,:] ?(.*))?", comment)
    if not match:
        raise TextError(f"the comment of {attribute} begins with no type: {comment!r}")
    kind, words = match[1], match[2] or ""
    lines = [f"type: {kind}" if "[" not in kind else "type: binary"]
    return [*lines, *_doc(words)]


def _doc(words: str) -> list[str]:
    if not words:
        return []
    lines, line = ["doc: >-"], "  "
    for word in words.split():
        if len(line) + len(word) > _LINE_WIDTH - 8:
            lines.append(line.rstrip())
            line = "  "
        line += f"{word} "
    return [*lines, line.rstrip()]
