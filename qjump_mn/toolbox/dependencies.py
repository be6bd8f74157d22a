"""Parse Debian's dependencies and compare its versions (Debian policy, sections 7.1 and 5.6.12)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ALTERNATIVE = re.compile(
    r"\s*([a-z0-9][a-z0-9+.-]*)(?::[a-z0-9]+)?(?:\s*\(\s*(<<|<=|=|>=|>>)\s*([^)\s]+)\s*\))?"
)

Key = tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]]


@dataclass(frozen=True)
class Need:
    """One alternative of a dependency: a package, and which of its versions will do (all, if
    ``operator`` is empty)."""

    name: str
    operator: str = ""
    version: str = ""

    def allows(self, version: str) -> bool:
        """Return whether that version of the package will do."""
        if not self.operator:
            return True
        own, other = key(version), key(self.version)
        return {
            "<<": own < other,
            "<=": own <= other,
            "=": own == other,
            ">=": own >= other,
            ">>": own > other,
        }[self.operator]


def parse(field: str) -> list[tuple[Need, ...]]:
    """Return the dependencies of a field such as Depends or Provides, each with its
    alternatives."""
    parsed = []
    for dependency in field.split(","):
        matches = (_ALTERNATIVE.match(alternative) for alternative in dependency.split("|"))
        if needs := tuple(Need(one[1], one[2] or "", one[3] or "") for one in matches if one):
            parsed.append(needs)
    return parsed


def key(version: str) -> Key:
    """Return the sort key of a version."""
    epoch, _, rest = version.rpartition(":")
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "0")
    return int(epoch) if epoch.isdecimal() else 0, _parts(upstream), _parts(revision)


def _parts(text: str) -> list[tuple[int, ...]]:
    """Return texts and numbers in turn. The end of a text sorts after `~` and before all else."""
    parts: list[tuple[int, ...]] = []
    for letters, digits in re.findall(r"(\D*)(\d*)", text):
        parts += [(*map(_order, letters), 0), (int(digits or 0),)]
    return parts


def _order(letter: str) -> int:
    """Return the rank of a character: `~`, the end (0), letters, others."""
    if letter == "~":
        return -1
    return ord(letter) if letter.isalpha() else ord(letter) + 256
