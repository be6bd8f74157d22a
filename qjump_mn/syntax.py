"""Reduce source files to what they do: their tokens, without comments, docstrings and formatting.

Identities of machines and simulators are hashes of the reduced text (cache.hash_of_code), so prose
does not change them. If in doubt, text is kept: an unnecessary difference costs a build, but never
a result. This module uses the standard library only, because the cache imports it.
"""

from __future__ import annotations

import ast
import re
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

PARSING = threading.Lock()
"""Held during `ast.parse`: in Python 3.11, two threads that parse at once may get a SystemError
when garbage is collected meanwhile (CPython issue 106905)."""

_LATER_FIELDS = ("type_params", "is_lazy")
"""Fields of syntax trees that Python 3.12 and 3.15 have added."""

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
    """Reduce the file at ``path`` by the language that its name shows; return unknown kinds
    unchanged.

    Manual pages are prose and reduce to "". Raises SyntaxError for Python and TOML that do not
    parse.
    """
    kind = _KINDS.get(path.suffix) or _KINDS.get(path.name, str)
    return kind(path.read_text())


def python(source: str | bytes) -> str:
    """Return the syntax tree of a Python program as text, the same with every version of Python.

    Raises SyntaxError.
    """
    with PARSING:
        program = ast.parse(source)
    return _dump(program)


def _dump(node: object) -> str:
    """Dump a node as `ast.dump` of Python 3.11 does, without docstrings.

    Later versions leave out empty fields, and have fields that are empty for programs that 3.11
    reads.
    """
    if isinstance(node, list):
        return f"[{', '.join(_dump(child) for child in node if not _is_docstring(child))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = []
    for name in node._fields:
        value = getattr(node, name, None)
        is_optional = value is None and getattr(type(node), name, ...) is None
        if not is_optional and (value or name not in _LATER_FIELDS):
            fields.append(f"{name}={_dump(value)}")
    return f"{type(node).__name__}({', '.join(fields)})"


def _is_docstring(node: object) -> bool:
    """Whether a statement is only a string: the docstring of a module, class, function or
    variable."""
    is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_constant and isinstance(node.value.value, str)  # type: ignore[attr-defined]


def c(source: str) -> str:
    """Return the tokens of a C file, with each preprocessor directive on a line of its own."""
    return " ".join(_tokens(source))


def rust(source: str) -> str:
    """Return the tokens of a Rust file, without the trailing commas that rustfmt adds."""
    return re.sub(r" , \n (?=[])}])", " ", " ".join(_tokens(source, nested=True))).replace(
        " \n", ""
    )


def _tokens(source: str, *, nested: bool = False) -> Iterator[str]:
    """Yield the tokens of C or, with ``nested`` block comments, of Rust.

    A newline is a token where it ends a preprocessor directive in C, and after a comma in Rust.
    """
    position, ends_line = 0, False
    while match := _TOKEN.match(source, position):
        position, token = match.end(), match[0]
        if match["comment"]:
            if token == "/*":
                position = _after_comment(source, position, nested=nested)
            continue
        if match["gap"]:
            if ends_line and "\n" in token.replace("\\\n", ""):
                yield "\n"
                ends_line = False
            continue
        ends_line = token == "," if nested else ends_line or token == "#"
        yield token


def _after_comment(source: str, position: int, *, nested: bool) -> int:
    """Return the end of the block comment around ``position``; without one, the end of the
    source."""
    depth = 1
    for delimiter in _BLOCK.finditer(source, position):
        depth += (1 if nested else 0) if delimiter[0] == "/*" else -1
        if not depth:
            return delimiter.end()
    return len(source)


def lines(source: str) -> str:
    """Return a shell script, makefile or kernel configuration without comment lines and
    indentation.

    `# CONFIG_X is not set` counts as code. Indentation is kept inside a string, and if it starts
    with a tab.
    """
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
            text = _without_comment(text)
            text = text if text.startswith("\t") else text.lstrip()
        quotes += len(re.findall(r"""(?<!\\)["']""", text))
        kept.append(text)
    return "\n".join(filter(None, kept))


def _without_comment(line: str) -> str:
    """Remove a comment at the end of a line, unless the `#` is inside a string."""
    code, separator, _ = line.partition(" # ")
    is_open = code.count('"') % 2 or code.count("'") % 2
    return line if not separator or is_open else code.rstrip()


def toml(source: str) -> str:
    """Return the values of a TOML file as text. Raises SyntaxError if it does not parse."""
    try:
        return repr(tomllib.loads(source))
    except tomllib.TOMLDecodeError as error:
        raise SyntaxError(str(error)) from error


def patch(source: str) -> str:
    """Return what a patch changes, as tokens before and after.

    Its message, its line numbers, and hunks that change only comments are left out.
    """
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
    """Return a hunk's text before (``-``) or after (``+``) the change, without a comment that
    starts above the hunk."""
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
"""How to reduce a file, by its suffix or its name."""
