"""Validate all text from outside: the characters and the length that each kind of word may have.

A word is a name, a label, a tc line or any other text in a file, a setting or a stranger's run. A
kind is as strict as the strictest use of its words: as a file's name, in an expression of a claim,
as an interface's name, in a shell script, on a terminal or on a page.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from qjump_mn.errors import UsageError
from qjump_mn.model.expression import FUNCTIONS

MAX_DEPTH = 30
"""Nested tables and lists; our experiments have 7 levels."""

MAX_QUOTED = 60
"""The characters of a wrong word that a message quotes."""

_CONTROLS = {"Cc", "Cs", "Zl", "Zp"}
"""Unicode's categories of characters that move a cursor, end a line or are half a character."""
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""These make a terminal or a page show other words than a program reads."""


class Kind(NamedTuple):
    """The rules for a word: it must match ``pattern``, or without one, be printable text, with line
    ends and tabs only if ``lines`` is true. ``reserved`` words are refused.
    """

    noun: str
    max_bytes: int
    rule: str
    pattern: re.Pattern[str] | None = None
    lines: bool = False
    reserved: frozenset[str] = frozenset()

    def problem(self, word: str) -> str:
        """Return what is wrong with ``word``, as the end of a sentence; empty if nothing is."""
        quoted = repr(word if len(word) <= MAX_QUOTED else f"{word[:MAX_QUOTED]}…")
        if word in self.reserved:
            return f"{quoted} is reserved: choose another name"
        size = len(word.encode(errors="surrogatepass"))
        if size > self.max_bytes:
            return f"{quoted} has {size} bytes: {self.noun} has at most {self.max_bytes}"
        if not self._fits(word):
            return f"{quoted} is not {self.noun}: {self.rule}"
        return ""

    def _fits(self, word: str) -> bool:
        if self.pattern is not None:
            return self.pattern.fullmatch(word) is not None
        allowed = "\n\t" if self.lines else ""
        return all(
            letter in allowed
            or (unicodedata.category(letter) not in _CONTROLS and letter not in _BIDI)
            for letter in word
        )


FILE = Kind(
    "a valid name",
    80,
    "start with a letter, a digit or _, then use letters, digits and _ . + -",
    re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"),
)
"""The name of an experiment, preset, scheme, topology or claim. It may become the name of a file or
folder.
"""

WORD = Kind(
    "a valid name",
    80,
    "start with a letter or _, then use letters, digits and _",
    re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
    reserved=frozenset({*keyword.kwlist, *FUNCTIONS, "x"}),
)
"""The name of an arm, a workload or a number. It becomes a part of names in claims and of files."""

NODE = Kind(
    "a valid node name",
    8,
    "start with a letter, then use letters and digits",
    re.compile(r"[A-Za-z][A-Za-z0-9]*"),
    reserved=frozenset({"lo", "switches"}),
)
"""The name of a host or a switch, of its namespace or bridge, and the prefix of its interfaces'
names. Results call the machine's own namespace ``switches``, and every namespace has an interface
``lo``.
"""

DEVICE = Kind(
    "an interface's name",
    15,
    "use letters, digits and . -",
    re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*"),
)
"""The name of a node's interface (Linux: IFNAMSIZ - 1 bytes)."""

CONGESTION_CONTROL = Kind(
    "a kernel's name of a congestion control",
    15,
    "use lower-case letters, digits and _, such as 'dctcp'",
    re.compile("[a-z0-9_]+"),
)
"""The name of a congestion control, part of a module's name (Linux: TCP_CA_NAME_MAX - 1 bytes)."""

MODULE = Kind(
    "the name of a module's source",
    60,
    "use lower-case letters, digits and _, then .c, such as 'tcp_mine.c'",
    re.compile(r"[a-z][a-z0-9_]*\.c"),
)
"""The name of a C file that becomes a kernel module of the same name."""

LAW = Kind(
    "the name of a law's file",
    60,
    "use letters, digits and _ . + -, then .wasm or .wat, such as 'mine.wasm'",
    re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*\.(wasm|wat)"),
)
"""The name of a file with a law of congestion control in WebAssembly, binary or text."""

LINE = Kind(
    "one line of text", 1000, "leave out line ends, tabs, control and bidirectional characters"
)
"""A label, a title, a key, or a line for tc."""

TEXT = Kind("text", 10_000, "leave out control and bidirectional characters", lines=True)
"""Anything else."""

SOURCE = TEXT._replace(max_bytes=256 << 10)
"""A C file; the longest qdisc of Linux has 90 kB."""

COMMAND = TEXT._replace(max_bytes=100_000)
"""A word of a command line (Linux: MAX_ARG_STRLEN)."""

Kinds = Mapping[str, Kind]
"""The kinds of words by location: "arms{}" are the names in the table ``arms``, "arms.*.label" is a
value in each of its entries, "host[]" are the elements of a list. Other names are LINE, other
values TEXT.
"""

OF_TOPOLOGIES: Kinds = {"switches{}": NODE, "switches.*[]": NODE, "cables[][]": NODE}

OF_SCHEMES: Kinds = {
    "label": LINE,
    "parameters{}": WORD,
    "congestion_control": CONGESTION_CONTROL,
    "host[]": LINE,
    "switch_port[]": LINE,
    "vlan[]": LINE,
    "module": MODULE,
    "module_parameters": LINE,
}

OF_EXPERIMENTS: Kinds = {
    "topology": FILE,
    "title": LINE,
    "reproduces": LINE,
    "presets{}": FILE,
    "arms{}": WORD,
    "arms.*.label": LINE,
    "arms.*.scheme": FILE,
    "workloads{}": WORD,
    "workloads.*.label": LINE,
    "workloads.*.numbers{}": WORD,
    "workloads.*.command": COMMAND,
    "workloads.*.command[]": COMMAND,
    "workloads.*.ready.says": LINE,
    "workloads.*.ready.exists": LINE,
    "workloads.*.congestion_control": CONGESTION_CONTROL,
    "qjump{}": FILE,
    "sweeps{}": FILE,
    "sweeps.*.label": LINE,
    "claims{}": FILE,
    "schemes{}": FILE,
    **{f"schemes.*.{place}": kind for place, kind in OF_SCHEMES.items()},
    "figure.quantity": LINE,
    "figure.panels[].label": LINE,
    "figure.panels[].title": LINE,
}


def plain(text: str) -> str:
    """Replace control characters in a stranger's text, which a terminal would obey."""
    return "".join(character if character.isprintable() else "?" for character in text)


def check(kind: Kind, where: str, *words: str) -> None:
    """Raise :class:`UsageError` that begins with ``where`` for a word that is not of ``kind``."""
    for word in words:
        if problem := kind.problem(word):
            raise UsageError(f"{where}: {problem}")


def check_distinct(where: str, words: Iterable[str]) -> None:
    """Raise :class:`UsageError` that begins with ``where`` for a word that occurs twice."""
    if duplicates := [word for word, count in Counter(words).items() if count > 1]:
        raise UsageError(f"{where}: two have the name {duplicates[0]!r}: rename one of them")


def problems(raw: Any, kinds: Kinds) -> Iterator[tuple[str, str]]:
    """Yield the location of each wrong word in the tables of a file, and a message with this
    location.

    Nothing below a wrong name is checked, so that a location has printable words only.
    """
    yield from _problems(raw, kinds, "", "", 0)


def _problems(
    value: Any, kinds: Kinds, pattern: str, place: str, depth: int
) -> Iterator[tuple[str, str]]:
    if depth > MAX_DEPTH:
        shown = f"{place[:MAX_QUOTED]}…"
        yield (
            place,
            f"{shown}: tables and lists are nested too deeply: use at most {MAX_DEPTH} levels",
        )
    elif isinstance(value, dict):
        named = kinds.get(f"{pattern}{{}}")
        for key, inner in value.items():
            below = f"{place}.{key}" if place else key
            if problem := (named or LINE).problem(key):
                yield below, f"{place}: {problem}" if place else problem
                continue
            step = "*" if named else key
            yield from _problems(
                inner, kinds, f"{pattern}.{step}" if pattern else step, below, depth + 1
            )
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _problems(inner, kinds, f"{pattern}[]", f"{place}[{number}]", depth + 1)
    elif isinstance(value, str) and (problem := kinds.get(pattern, TEXT).problem(value)):
        yield place, f"{place}: {problem}"
