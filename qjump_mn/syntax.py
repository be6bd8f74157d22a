"""What a Python file does, whatever Python reads it. The standard library only, for cache.py needs it."""

from __future__ import annotations

import ast
import threading

PARSING = threading.Lock()
"""Held while something is parsed: of two threads in `ast.parse` at once Python 3.11 may end one with a
SystemError, if it collects garbage meanwhile (CPython's issue 106905)."""

_LATER_FIELDS = ("type_params", "is_lazy")
"""Of the syntax of Python 3.12 and 3.15."""


def dump(source: bytes) -> str:
    """The program as text, without comments and line breaks. Raises SyntaxError for what is none."""
    with PARSING:
        program = ast.parse(source)
    return _dump(program)


def _dump(node: object) -> str:
    """What `ast.dump` of Python 3.11 says. Later ones leave out what is empty, and have fields that are empty
    in what 3.11 can read."""
    if isinstance(node, list):
        return f"[{', '.join(map(_dump, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = []
    for name in node._fields:
        value = getattr(node, name, None)
        is_optional = value is None and getattr(type(node), name, ...) is None
        if not is_optional and (value or name not in _LATER_FIELDS):
            fields.append(f"{name}={_dump(value)}")
    return f"{type(node).__name__}({', '.join(fields)})"
