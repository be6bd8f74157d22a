"""Parse, check and evaluate the expressions of experiment and scheme files: claims, and numbers in
tc lines.

The language is Python's expression syntax with numbers, names, dotted names
(``arm.workload.measure``), + - * /, comparisons (also chained), and/or/not, abs, min, max and
median; nothing else. :func:`parse` reads an expression, :meth:`Expression.check` looks up its
names, and :meth:`Expression.value` evaluates it.
"""

from __future__ import annotations

import ast
import math
import operator
import statistics
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

from qjump_mn import syntax
from qjump_mn.errors import UsageError

Kind = Literal["number", "truth"]
Path = tuple[str, ...]
"""A name by its parts: ``("idle", "ping", "p50_ms")``, or one part for a name without dots."""

MAX_CHARACTERS = 1000
MAX_DEPTH = 100
ALLOWED = "use numbers, names, + - * /, comparisons, and, or, not, abs, min, max, median"

_PUNCTUATION = frozenset("_.+-*/(),<>=!")
_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_SIGNS: dict[type[ast.unaryop], Callable[[float], float]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
FUNCTIONS: dict[str, Callable[..., float]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "median": lambda *numbers: statistics.median(numbers),
}


class UnknownNameError(Exception):
    """An unknown name in an expression. The text follows the name: "is not known: did you mean
    'rate'?".
    """


class UndefinedError(Exception):
    """The expression has no value: it divides by zero, is too large, or a name in it has no finite
    value.

    ``is_missing`` is true if a name has no value, because its measure was not taken.
    """

    def __init__(self, *, is_missing: bool = False) -> None:
        self.is_missing = is_missing


class _Number(NamedTuple):
    place: ast.expr
    value: float


class _Name(NamedTuple):
    place: ast.expr
    path: Path


class _Operation(NamedTuple):
    place: ast.expr
    function: Callable[..., float | bool]
    takes: Kind
    gives: Kind
    operands: tuple[_Node, ...]


_Node = _Number | _Name | _Operation


class Expression:
    """A parsed expression. ``names`` are all its names except functions, in the order of the
    text."""

    def __init__(self, source: _Source, root: _Node) -> None:
        self._source, self._root = source, root
        self.names = tuple(_names(root))

    def check(self, kind: Kind, kind_of: Callable[[Path], Kind]) -> None:
        """Raise :class:`UsageError` unless the expression is a ``kind`` and every name in it is
        known.

        ``kind_of`` returns what a name stands for, or raises :class:`UnknownNameError`.
        """
        self._check(self._root, kind, kind_of)

    def _check(self, node: _Node, wanted: Kind, kind_of: Callable[[Path], Kind]) -> None:
        kind: Kind = "number"
        if isinstance(node, _Operation):
            for operand in node.operands:
                self._check(operand, node.takes, kind_of)
            kind = node.gives
        elif isinstance(node, _Name):
            try:
                kind = kind_of(node.path)
            except UnknownNameError as error:
                raise self._source.refusal(node.place, str(error)) from None
        if kind != wanted:
            reason = (
                "is a number, but must be a condition: write one, such as 'a < b'"
                if wanted == "truth"
                else "is a condition, but must be a number: write one, such as 'a / b'"
            )
            raise self._source.refusal(node.place, reason)

    def check_constants(self, value_of: Callable[[Path], float | None]) -> None:
        """Raise :class:`UsageError` for the smallest part that can never have a value, such as ``1
        / 0``.

        ``value_of`` returns None for a name whose value is not known yet.
        """
        self._check_constants(self._root, value_of)

    def _check_constants(self, node: _Node, value_of: Callable[[Path], float | None]) -> bool:
        """Return whether the value of ``node`` is known."""
        if isinstance(node, _Number):
            return True
        if isinstance(node, _Name):
            return value_of(node.path) is not None
        # A list, so that every operand is checked: a wrong one may follow one that is not known.
        are_known = [self._check_constants(operand, value_of) for operand in node.operands]
        if not all(are_known):
            return False
        try:
            _value(node, lambda path: float(value_of(path) or 0.0))
        except UndefinedError:
            reason = "never has a value: it divides by zero, or is too large"
            raise self._source.refusal(node.place, reason) from None
        return True

    def value(self, value_of: Callable[[Path], float]) -> float | bool:
        """Return the value of a checked expression; ``value_of`` returns the value of a name.

        Raises :class:`UndefinedError` if any part has no value, even a part that Python would not
        evaluate, as in ``1 < 2 or 1 / 0 > 1``.
        """
        return _value(self._root, value_of)


def parse(text: str, where: str) -> Expression:
    """Parse ``text`` without checking its names. Raise :class:`UsageError` that begins with
    ``where``.
    """
    source = _Source(text, where)
    return Expression(source, source.node(source.tree(), 1))


class _Source:
    """The text of an expression and its location in a file, for error messages."""

    def __init__(self, text: str, where: str) -> None:
        self._where = where
        # Line ends separate words like spaces, so that a file may break a long expression anywhere.
        self._text = "".join(
            " " if character in "\t\r\n" else character for character in text
        ).rstrip(" ")

    def tree(self) -> ast.expr:
        """Return Python's syntax tree, in which any kind of node may still occur."""
        text = self._text
        if len(text) > MAX_CHARACTERS:
            raise self._at(
                MAX_CHARACTERS, f"{len(text)} characters are too many: use at most {MAX_CHARACTERS}"
            )
        for index, character in enumerate(text):
            if not (character.isalnum() or character == " " or character in _PUNCTUATION):
                raise self._at(index, f"{character!r} is not allowed in an expression: {ALLOWED}")
        try:
            with syntax.PARSING, warnings.catch_warnings():
                # Python's advice on "1or 2" is not for users of an experiment file.
                warnings.simplefilter("ignore")
                return ast.parse(text.lstrip(" "), mode="eval").body
        except SyntaxError as error:
            message = str(error.msg).partition(". ")[0]
            # Python gives no offset if the end is missing.
            index = error.offset - 1 + self._indent if error.offset else len(text)
            raise self._at(
                index, f"{_short(text)} is not an expression ({message}): {ALLOWED}"
            ) from None
        except (ValueError, RecursionError, MemoryError):
            raise self._at(
                0,
                f"{_short(text)} cannot be read: it is nested too deeply, or has too long a "
                "number; write it shorter",
            ) from None

    def node(self, node: ast.expr, depth: int) -> _Node:
        """Translate ``node`` and everything below it into nodes of this language."""
        if depth > MAX_DEPTH:
            raise self.refusal(
                node, f"is nested too deeply: use at most {MAX_DEPTH} nested operations"
            )
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return _Number(node, self._finite(node, value))
            case ast.Name() | ast.Attribute():
                return _Name(node, self._path(node))
            case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
                return self._operation(
                    node, _ARITHMETIC[type(op)], "number", "number", (node.left, node.right), depth
                )
            case ast.UnaryOp(op=op) if type(op) in _SIGNS:
                return self._operation(
                    node, _SIGNS[type(op)], "number", "number", (node.operand,), depth
                )
            case ast.UnaryOp(op=ast.Not()):
                return self._operation(
                    node, operator.not_, "truth", "truth", (node.operand,), depth
                )
            case ast.BoolOp(op=op):
                joined = all if isinstance(op, ast.And) else any
                return self._operation(
                    node, lambda *parts: joined(parts), "truth", "truth", node.values, depth
                )
            case ast.Compare(ops=ops) if all(type(op) in _COMPARISONS for op in ops):
                return self._operation(
                    node, _chained(ops), "number", "truth", (node.left, *node.comparators), depth
                )
            case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
                self._check_arguments(node, name)
                return self._operation(node, FUNCTIONS[name], "number", "number", node.args, depth)
        raise self.refusal(node, f"is not allowed in an expression: {ALLOWED}")

    def refusal(self, node: ast.expr, reason: str) -> UsageError:
        """Return the error for ``node``, with its location."""
        line = self._text.lstrip(" ")
        index = len(line.encode()[: node.col_offset].decode())  # Python counts bytes
        segment = ast.get_source_segment(line, node) or line
        return self._at(index + self._indent, f"{_short(segment)} {reason}")

    @property
    def _indent(self) -> int:
        return len(self._text) - len(self._text.lstrip(" "))

    def _at(self, index: int, reason: str) -> UsageError:
        return UsageError(f"{self._where}: character {index + 1}: {reason}")

    def _operation(
        self,
        place: ast.expr,
        function: Callable[..., float | bool],
        takes: Kind,
        gives: Kind,
        operands: Iterable[ast.expr],
        depth: int,
    ) -> _Operation:
        return _Operation(
            place,
            function,
            takes,
            gives,
            tuple(self.node(operand, depth + 1) for operand in operands),
        )

    def _finite(self, node: ast.expr, value: int | float) -> float:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.refusal(node, "is too large a number: use less than 1e308")
        return number

    def _path(self, node: ast.expr) -> Path:
        match node:
            case ast.Name(id=name):
                return (name,)
            case ast.Attribute(value=owner, attr=name) if isinstance(
                owner, (ast.Name, ast.Attribute)
            ):
                return (*self._path(owner), name)
        raise self.refusal(node, "is not a name: write words with dots between them")

    def _check_arguments(self, node: ast.Call, name: str) -> None:
        if node.keywords or (len(node.args) != 1 if name == "abs" else len(node.args) < 2):
            number = "one number" if name == "abs" else "two numbers or more"
            raise self.refusal(node, f"has the wrong arguments: {name} takes {number}")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


def _chained(operators: list[ast.cmpop]) -> Callable[..., bool]:
    """Return a function that tells whether each number compares with the next as its operator
    says."""
    comparisons = [_COMPARISONS[type(op)] for op in operators]

    def compare(*sides: float) -> bool:
        return all(
            holds(left, right)
            for holds, (left, right) in zip(comparisons, pairwise(sides), strict=True)
        )

    return compare


def _names(node: _Node) -> Iterator[Path]:
    if isinstance(node, _Name):
        yield node.path
    elif isinstance(node, _Operation):
        for operand in node.operands:
            yield from _names(operand)


def _value(node: _Node, value_of: Callable[[Path], float]) -> float | bool:
    if isinstance(node, _Number):
        return node.value
    if isinstance(node, _Name):
        value: float | bool = value_of(node.path)
    else:
        # Evaluate every operand, so that an undefined one is never hidden by those before it.
        operands = [_value(operand, value_of) for operand in node.operands]
        try:
            value = node.function(*operands)
        except ZeroDivisionError:
            raise UndefinedError from None
    if not math.isfinite(value):
        raise UndefinedError(is_missing=isinstance(node, _Name))
    return value
