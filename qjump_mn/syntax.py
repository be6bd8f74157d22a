"""Reduce source files to what they do: their tokens, without comments, docstrings and formatting.

Identities of machines and simulators are hashes of this text (cache.hash_of_code), so that prose moves
none of them. In doubt a file keeps what could matter: then two texts differ that do the same, which costs
a build and no result. The standard library only, for cache.py needs it.
"""

from __future__ import annotations

import ast
import re
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

PARSING = threading.Lock()
"""Held while something is parsed: of two threads in `ast.parse` at once Python 3.11 may end one with a
SystemError, if it collects garbage meanwhile (CPython's issue 106905)."""

_LATER_FIELDS = ("type_params", "is_lazy")
"""Of the syntax of Python 3.12 and 3.15."""

_TOKEN = re.compile(
    r"""
    (?P<comment> // (?: \\\n | [^\n] )* | /\* )
  | (?P<text>    b?r(?P<fence>\#*)" .*? "(?P=fence)            # a raw string of Rust
               | " (?: \\. | [^"\\] )* "
               | ' (?: \\ (?: u\{\w+\} | [^\n] ) | [^'\\\n] ) [^'\n]{0,8}? ' )
  | (?P<gap>     (?: \s | \\\n )+ )
  | (?P<word>    \w+ | [-+*%&|^<>=!~?:.]+ | /=? | . )
    """,
    re.DOTALL | re.VERBOSE,
)
_BLOCK = re.compile(r"/\*|\*/")
_DIFF = re.compile(r"^diff --git .*\n(?:(?!diff --git |-- $).*\n?)*", re.MULTILINE)
_HUNK = re.compile(r"^@@ .*\n", re.MULTILINE)


def reduced(path: Path) -> str:
    """What the file at ``path`` does, by the kind of source that its name tells; all its text for other
    kinds.

    Manual pages are prose: nothing is left of them. Raises SyntaxError for Python and TOML that do not
    parse.
    """
    kind = _KINDS.get(path.suffix) or _KINDS.get(path.name, str)
    return kind(path.read_text())


def python(source: str | bytes) -> str:
    """A Python program as text that is the same whatever Python reads it. Raises SyntaxError."""
    with PARSING:
        program = ast.parse(source)
    return _dump(program)


def _dump(node: object) -> str:
    """What `ast.dump` of Python 3.11 says. Later ones leave out what is empty, and have fields that are empty
    in what 3.11 can read."""
    if isinstance(node, list):
        return f"[{', '.join(_dump(one) for one in node if not _is_prose(one))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = []
    for name in node._fields:
        value = getattr(node, name, None)
        is_optional = value is None and getattr(type(node), name, ...) is None
        if not is_optional and (value or name not in _LATER_FIELDS):
            fields.append(f"{name}={_dump(value)}")
    return f"{type(node).__name__}({', '.join(fields)})"


def _is_prose(node: object) -> bool:
    """Whether a statement is a string alone: a docstring, of a module, class, function or variable."""
    is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_constant and isinstance(node.value.value, str)  # type: ignore[attr-defined]


def c(source: str) -> str:
    """The tokens of a C file, each directive of the preprocessor on its own line."""
    return " ".join(_tokens(source))


def rust(source: str) -> str:
    """The tokens of a Rust file, without rustfmt's comma before a closing bracket on another line."""
    return re.sub(r" , \n (?=[])}])", " ", " ".join(_tokens(source, nested=True))).replace(" \n", "")


def _tokens(source: str, *, nested: bool = False) -> Iterator[str]:
    """The tokens of C or Rust, of which block comments are ``nested``. A line's end is a token where it ends
    a directive in C, and after a comma in Rust."""
    place, ends_line = 0, False
    while match := _TOKEN.match(source, place):
        place, token = match.end(), match[0]
        if match["comment"]:
            if token == "/*":
                place = _after_comment(source, place, nested=nested)
            continue
        if match["gap"]:
            if ends_line and "\n" in token.replace("\\\n", ""):
                yield "\n"
                ends_line = False
            continue
        ends_line = token == "," if nested else ends_line or token == "#"
        yield token


def _after_comment(source: str, place: int, *, nested: bool) -> int:
    """Where the block comment ends in which ``place`` is; at the end of the source if nothing ends it."""
    depth = 1
    for mark in _BLOCK.finditer(source, place):
        depth += (1 if nested else 0) if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return len(source)


def lines(source: str) -> str:
    """The lines of a shell script, a makefile or a kernel's configuration that are no comments; there
    `# CONFIG_X is not set` is none. A line loses its indentation where that is not part of a string."""
    kept, quotes = [], 0
    has_heredoc = "<<" in source
    for number, line in enumerate(source.splitlines()):
        text = line.rstrip()
        is_open = bool(quotes % 2)
        if has_heredoc or is_open:
            pass
        elif re.match(r"\s*#(?! CONFIG_)", text) and not (number == 0 and text.startswith("#!")):
            continue
        else:
            text = _without_remark(text)
            text = text if text.startswith("\t") else text.lstrip()
        quotes += len(re.findall(r"""(?<!\\)["']""", text))
        kept.append(text)
    return "\n".join(filter(None, kept))


def _without_remark(line: str) -> str:
    """A line without a comment at its end, if what is before it holds no open string."""
    before, mark, _ = line.partition(" # ")
    is_open = before.count('"') % 2 or before.count("'") % 2
    return line if not mark or is_open else before.rstrip()


def toml(source: str) -> str:
    """The values of a TOML file. Raises SyntaxError where there are none."""
    try:
        return repr(tomllib.loads(source))
    except tomllib.TOMLDecodeError as error:
        raise SyntaxError(str(error)) from error


def patch(source: str) -> str:
    """What a patch changes, in tokens before and after; its message, line numbers and hunks that only move
    comments do not count."""
    changes = []
    for diff in _DIFF.findall(source):
        heading, *hunks = _HUNK.split(diff)
        name = heading.partition("\n")[0].rpartition(" b/")[2]
        kind = _KINDS.get(Path(name).suffix, lines)
        for hunk in hunks:
            before, after = (kind(_side(hunk, sign)) for sign in "-+")
            if before != after:
                changes.append(f"{name}\n{before}\n{after}")
    return "\n".join(changes)


def _side(hunk: str, sign: str) -> str:
    """A hunk before the change (``-``) or after it (``+``); a comment that began above it is no code."""
    text = "".join(line[1:] for line in hunk.splitlines(keepends=True) if line[:1] in (" ", sign))
    comment, end, code = text.partition("*/")
    return code if end and "/*" not in comment else text


def _nothing(source: str) -> str:
    return ""


_KINDS: dict[str, Callable[[str], str]] = {
    ".py": python,
    ".pyi": python,
    ".c": c,
    ".h": c,
    ".rs": rust,
    ".toml": toml,
    "Cargo.lock": toml,
    ".patch": patch,
    **dict.fromkeys((".sh", ".mk", "Makefile", "Kbuild", "config"), lines),
    **dict.fromkeys((".1", ".8"), _nothing),
}
"""By the suffix or the name of a file."""
