"""The language of expressions: what it allows, its values, and the sentence for each text it
refuses."""

from __future__ import annotations

import ast
import math
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import qjump_mn
from qjump_mn.errors import UsageError
from qjump_mn.model import expression
from qjump_mn.model.expression import Kind, UndefinedError, UnknownNameError
from tests.support.processes import execute

VALUES = {("rate",): 10.0, ("idle", "ping", "p50_ms"): 0.78, ("a", "b"): -2.5, ("max",): 7.0}


def kind_of(path: expression.Path) -> Kind:
    if path == ("is_up",):
        return "truth"
    if path not in VALUES:
        raise UnknownNameError("is not known: known are rate, idle.ping.p50_ms")
    return "number"


def checked(text: str, kind: Kind) -> expression.Expression:
    parsed = expression.parse(text, "here")
    parsed.check(kind, kind_of)
    return parsed


def value(text: str, kind: Kind = "number") -> float | bool:
    return checked(text, kind).value(lambda path: VALUES.get(path, True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("-2 - -3", 1),
        ("+4 / 8", 0.5),
        ("1e3", 1000),
        ("1_000", 1000),
        ("abs(1 - 3)", 2),
        ("min(3, 1, 2) + max(1, 2)", 3),
        ("median(1, 7, 2) + median(1, 4)", 4.5),
        ("rate * idle.ping.p50_ms", 7.8),
        ("max(max, a.b)", 7),
        ("  (1\n +\t2)\r\n* 3 ", 9),
        ("1\n+ 2", 3),
    ],
)
def test_numbers(text: str, expected: float) -> None:
    assert value(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 < 2", True),
        ("1 < 2 < 2", False),
        ("1 <= 1 == 1 >= 1", True),
        ("1 != 2", True),
        ("not 1 > 2", True),
        ("1 < 2 and 2 < 1", False),
        ("1 < 2 or 2 < 1", True),
        ("is_up and 1 < 2", True),
    ],
)
def test_conditions(text: str, expected: bool) -> None:
    assert value(text, "truth") is expected


@pytest.mark.parametrize(
    "text", ["1 / 0", "1 / (rate - 10)", "1e308 * 10", "1e308 + 1e308", "0 / (1e308 * 10)"]
)
def test_what_has_no_value_is_undefined(text: str) -> None:
    with pytest.raises(UndefinedError):
        value(text)


@pytest.mark.parametrize(
    "text", ["not 1 / 0 > 1", "1 < 2 or 1 / 0 > 1", "2 < 1 and 1 / 0 > 1", "2 < 1 < 1 / 0"]
)
def test_what_is_undefined_does_not_hide_behind_what_came_before(text: str) -> None:
    with pytest.raises(UndefinedError):
        value(text, "truth")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_name_without_a_finite_value_is_undefined(bad: float) -> None:
    with pytest.raises(UndefinedError):
        checked("rate", "number").value(lambda path: bad)


def test_names_are_those_in_it_and_no_functions() -> None:
    parsed = expression.parse("max(max.ping.p50_ms, x) < abs(x - p50_ms)", "here")
    assert parsed.names == (("max", "ping", "p50_ms"), ("x",), ("x",), ("p50_ms",))


ALLOWED = "use numbers, names, + - * /, comparisons, and, or, not, abs, min, max, median"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("idel < 1", "here: character 1: 'idel' is not known: known are rate, idle.ping.p50_ms"),
        ("1 <\n idel", "here: character 6: 'idel' is not known"),
        ("  è < idel", "here: character 3: 'è' is not known"),
        ("rate < é + rate * idel", "here: character 8: 'é' is not known"),
        ("(1).real < 1",
         "here: character 1: '(1).real' is not a name: write words with dots between them"),
        ("idle.ping.p50_ms",
         "here: character 1: 'idle.ping.p50_ms' is a number, but must be a condition"),
        ("1 <", f"here: character 4: '1 <' is not an expression (invalid syntax): {ALLOWED}"),
        ("1 < < 2",
         f"here: character 5: '1 < < 2' is not an expression (invalid syntax): {ALLOWED}"),
        ("", "here: character 1: '' is not an expression"),
        ("(1 < 2", "is not an expression ('(' was never closed)"),
        ("1 < 2; 1", f"here: character 6: ';' is not allowed in an expression: {ALLOWED}"),
        ("1 < 2\x00", "here: character 6: '\\x00' is not allowed in an expression"),
        ("1 < 2 # and 3 < 2", "here: character 7: '#' is not allowed in an expression"),
        ("True", f"here: character 1: 'True' is not allowed in an expression: {ALLOWED}"),
        ("1 < 2 and None", "here: character 11: 'None' is not allowed in an expression"),
        ("'a' < 'b'", "is not allowed in an expression"),
        ("1j < 2", "'1j' is not allowed in an expression"),
        ("... < 2", "'...' is not allowed in an expression"),
        ("2 ** 3 < 9", "'2 ** 3' is not allowed in an expression"),
        ("2 // 3 < 9", "'2 // 3' is not allowed in an expression"),
        ("2 << 3 < 9", "'2 << 3' is not allowed in an expression"),
        ("7 % 3 < 9", "character 3: '%' is not allowed in an expression"),
        ("~1 < 2", "character 1: '~' is not allowed in an expression"),
        ("1 in (1, 2)", "is not allowed in an expression"),
        ("1 is 1", "is not allowed in an expression"),
        ("(1, 2) < 1", "is not allowed in an expression"),
        ("round(1) < 2", "'round(1)' is not allowed in an expression"),
        ("idle.ping.p50_ms(1) < 2", "is not allowed in an expression"),
        ("(yield) < 2", "is not allowed in an expression"),
        ("1 if 1 < 2 else 2", "is not allowed in an expression"),
        ("__import__('os').system('true') < 2", "is not allowed in an expression"),
        ("(lambda: 1)() < 2", "is not allowed in an expression"),
        ("[1][0] < 2", "is not allowed in an expression"),
        ("(x := 1) < 2", "is not allowed in an expression"),
        ("max(1) < 2", "'max(1)' has the wrong arguments: max takes two numbers or more"),
        ("abs(1, 2) < 2", "has the wrong arguments: abs takes one number"),
        ("max(1, 2, key=3) < 2", "has the wrong arguments"),
        ("max(*1, 2) < 2", "is not allowed in an expression"),
        ("max(1 < 2, 2) < 2", "'1 < 2' is a condition, but must be a number"),
        ("1 < 2 and 3", "here: character 11: '3' is a number, but must be a condition"),
        ("(1 < 2) + 1 < 3", "is a condition, but must be a number"),
        ("-(1 < 2) < 3", "is a condition, but must be a number"),
        ("is_up < 3", "'is_up' is a condition, but must be a number"),
        ("not 3", "is a number, but must be a condition"),
        ("1e999 < 2", "'1e999' is too large a number"),
        ("9" * 400 + " < 2", "is too large a number"),
        ("1 < 2 " * 400, "here: character 1001: 2399 characters are too many: use at most 1000"),
        ("(" * 400 + "1" + ")" * 400 + " < 2", "is not an expression"),
        ("-" * 90 + "1 < 2", ""),
        ("-" * 110 + "1 < 2", "is nested too deeply: use at most 100 nested operations"),
        ("-" * 990 + "1 < 2", "nested too deeply"),
        ("not " * 240 + "1 < 2", "nested too deeply"),
    ],
)  # fmt: skip
def test_refused_with_the_place(text: str, message: str) -> None:
    if not message:
        checked(text, "truth")
        return
    with pytest.raises(UsageError) as refusal:
        checked(text, "truth")
    assert message in str(refusal.value)
    assert str(refusal.value).startswith("here: character ")
    assert "\n" not in str(refusal.value)


def test_python_s_advice_is_not_printed() -> None:
    code = "from qjump_mn.model import expression; print(expression.parse('1or 2', 'here').names)"
    folder = Path(qjump_mn.__file__).parents[1]
    done = execute([sys.executable, "-c", code], check=True, cwd=folder)
    assert (done.stdout, done.stderr) == ("()\n", "")


NUMBERS = st.recursive(
    st.one_of(
        st.integers(0, 1000).map(str),
        st.floats(0, 1e6, allow_nan=False).map(repr),
        st.sampled_from([".".join(path) for path in VALUES if path != ("max",)]),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        inner.map(lambda part: f"abs({part})"),
        inner.map(lambda part: f"-{part}"),
        inner.map(lambda part: f"+ {part}"),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"max({', '.join(parts)})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"min({', '.join(parts)})"),
    ),
    max_leaves=5,
)
OPERATORS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
CONDITIONS = st.recursive(
    st.one_of(
        st.tuples(NUMBERS, OPERATORS, NUMBERS).map(" ".join),
        st.tuples(NUMBERS, OPERATORS, NUMBERS, OPERATORS, NUMBERS).map(" ".join),
    ),
    lambda inner: st.one_of(
        inner.map(lambda part: f"not ({part})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
        ),
    ),
    max_leaves=3,
)


class _Fields:
    def __init__(self, **fields: object) -> None:
        vars(self).update(fields)


def in_python(text: str) -> object:
    names = {
        "rate": 10.0,
        "idle": _Fields(ping=_Fields(p50_ms=0.78)),
        "a": _Fields(b=-2.5),
        "abs": abs,
        "min": min,
        "max": max,
    }
    return eval(text, {"__builtins__": {}}, names)


def fits(text: str) -> bool:
    return len(text) <= expression.MAX_CHARACTERS


@settings(deadline=None)
@given(NUMBERS.filter(fits))
def test_numbers_are_those_of_python(text: str) -> None:
    try:
        expected = in_python(text)
    except ZeroDivisionError:
        expected = None
    try:
        result: float | bool | None = value(text)
    except UndefinedError:
        result = None
    assert result == expected


@settings(deadline=None)
@given(CONDITIONS.filter(fits))
def test_conditions_are_those_of_python(text: str) -> None:
    try:
        result = value(text, "truth")
    except UndefinedError:
        # An undefined part that Python does not come to is undefined all the same.
        assert "/" in text
        return
    assert result is in_python(text)


WORDS = "and or not if else in is abs min max rate idle.ping.p50_ms lambda None await 1".split()
TEXTS = st.one_of(
    st.text(max_size=60),
    st.text("_.+-*/(),<>=!1eéx \n", max_size=60),
    st.lists(
        st.one_of(st.sampled_from(WORDS), st.sampled_from(list("_.+-*/(),<>=!"))), max_size=20
    ).map(" ".join),
    st.tuples(st.sampled_from(["(", "-", "not ", "1+", "a.", "max(1,"]), st.integers(0, 1200)).map(
        lambda parts: parts[0] * parts[1] + "1"
    ),
)


@settings(deadline=None, max_examples=500)
@given(TEXTS, st.sampled_from(["number", "truth"]))
@example("idle.__class__.__mro__ < 1", "truth")
@example("0x" + "f" * 300 + " < 1", "truth")
@example("(" * 199 + "1" + ")" * 199, "number")
def test_any_text_is_checked_or_refused(text: str, kind: Kind) -> None:
    try:
        checked(text, kind).value(lambda path: VALUES.get(path, True))
    except UsageError as error:
        assert str(error).startswith("here: character ")
        assert "\n" not in str(error)
    except UndefinedError:
        pass


KINDS = [
    node
    for node in vars(ast).values()
    if isinstance(node, type)
    and issubclass(node, ast.expr)
    and node is not ast.expr
    and node.__module__ == "ast"
]
PERMITTED = (
    ast.Constant,
    ast.Name,
    ast.Attribute,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.Call,
)


@pytest.mark.parametrize("node", [kind for kind in KINDS if not issubclass(kind, PERMITTED)])
def test_no_other_kind_of_node_gets_through(node: type[ast.expr]) -> None:
    with pytest.raises(UsageError, match="is not allowed in an expression"):
        expression._Source("x", "here").node(node(lineno=1, col_offset=0), 1)


def test_longest_text_is_read() -> None:
    longest = f"1{' ' * (expression.MAX_CHARACTERS - 3)}+1"
    assert expression.parse(longest, "here").value(lambda path: 0.0) == 2
    with pytest.raises(UsageError, match="1001 characters are too many"):
        expression.parse(longest.replace(" ", "  ", 1), "here")
