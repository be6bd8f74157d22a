"""The language of claims: a predicate, and what is shown beside it, over the measures of the arms.

Python's expression syntax with numbers, the plan's constants by name, ``arm.workload.measure``, + - * /, comparisons (also chained),
and/or/not, abs, min and max; nothing else. A series in an arm's place stands for each of its arms, and x for its value. Everything is
checked before anything runs (:func:`check`), which needs no data and no library but msgspec. In evaluation, a measure without a value and a
division by zero make the whole expression undefined: no value is shown, and a predicate does not hold.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from qjump_mn.errors import UsageError
from qjump_mn.model.experiment import ClaimSpec
from qjump_mn.model.loading import nearest
from qjump_mn.model.plan import Plan
from qjump_mn.programs import registry

Kind = Literal["number", "truth"]

MOST_CHARACTERS = 1000

_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: lambda left, right: left < right,
    ast.LtE: lambda left, right: left <= right,
    ast.Gt: lambda left, right: left > right,
    ast.GtE: lambda left, right: left >= right,
    ast.Eq: lambda left, right: left == right,
    ast.NotEq: lambda left, right: left != right,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {"abs": abs, "min": min, "max": max}

Measured = Mapping[str, Mapping[str, Mapping[str, float]]]
"""``measured[arm][workload][measure]`` for one seed; a measure that has no value (the median of no echo) is absent."""


class UndefinedError(Exception):
    """The expression has no value for this seed."""


class Expression:
    """A checked expression; ``arms`` are those it needs, in the order it names them."""

    def __init__(self, node: ast.expr, arms: tuple[str, ...]) -> None:
        self._node = node
        self.arms = arms

    def number(self, measured: Measured, constants: Mapping[str, float]) -> float | None:
        """The value for one seed, or None where it is undefined."""
        try:
            value = float(_value(self._node, measured, constants))
        except UndefinedError:
            return None
        return value if math.isfinite(value) else None

    def holds(self, measured: Measured, constants: Mapping[str, float]) -> bool:
        """Whether the predicate is true for one seed."""
        try:
            return bool(_value(self._node, measured, constants))
        except UndefinedError:
            return False


def parse(text: str, kind: Kind, plan: Plan, where: str, point: Point | None = None) -> Expression:
    """``text`` as an expression of ``kind`` over ``plan``, at a ``point`` of its sweep; raise :class:`UsageError` that begins with ``where``."""
    if len(text) > MOST_CHARACTERS:
        raise UsageError(f"{where}: {len(text)} characters are too many for an expression: use at most {MOST_CHARACTERS}")
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if point:
            node = _At(point).visit(node)
        checker = _Checker(text.strip(), plan, where)
        found = checker.kind(node)
    except SyntaxError as error:
        raise UsageError(f"{where}: {text!r} is no expression: {error.msg} at character {error.offset or 1}") from None
    except (ValueError, RecursionError, MemoryError):
        raise UsageError(f"{where}: {text[:40]!r} is no expression") from None
    if found != kind:
        wanted = {"truth": "a condition, such as 'a < b'", "number": "a number, such as 'a / b'"}[kind]
        raise UsageError(f"{where}: {text!r} is a {'condition' if found == 'truth' else 'number'}: write {wanted}")
    return Expression(node, tuple(dict.fromkeys(checker.arms)))


def check(plan: Plan) -> None:
    """Check every claim of ``plan`` without any data; raise :class:`UsageError` with the place of the first that makes no sense."""
    for name in plan.claims:
        Claim.of(plan, name)


class Claim:
    """A claim that is ready to be judged: its ``predicates`` must all hold, and of what it ``shows`` the largest is told.

    There is one of each, or one for each x of the series that the claim names. ``arms`` are those it needs.
    """

    def __init__(self, predicates: Sequence[Expression], shows: Sequence[Expression]) -> None:
        self._predicates, self._shows = predicates, shows
        self.arms = tuple(dict.fromkeys(arm for expression in (*predicates, *shows) for arm in expression.arms))

    @classmethod
    def of(cls, plan: Plan, name: str) -> Claim:
        """The claim of ``plan`` called ``name``; raise :class:`UsageError` with the place of what makes no sense."""
        claim = plan.claims[name]
        where = f"experiment {plan.experiment!r}: claims.{name}"
        points = _points(plan, claim, where)
        return cls(
            [parse(claim.predicate, "truth", plan, f"{where}.predicate", point) for point in points],
            [parse(claim.shows, "number", plan, f"{where}.shows", point) for point in points] if claim.shows else [],
        )

    def holds(self, measured: Measured, constants: Mapping[str, float]) -> bool:
        """Whether it is true for one seed."""
        return all(predicate.holds(measured, constants) for predicate in self._predicates)

    def shown(self, measured: Measured, constants: Mapping[str, float]) -> float | None:
        """The value to tell for one seed; None where none is defined."""
        return max((value for one in self._shows if (value := one.number(measured, constants)) is not None), default=None)


class Point(NamedTuple):
    """One value of a sweep: the arm of each series that has it."""

    x: float
    arms: Mapping[str, str]


def _points(plan: Plan, claim: ClaimSpec, where: str) -> list[Point | None]:
    """The values of the sweep that the claim is about; one None for a claim that names no series."""
    series = {arm.series for arm in plan.arms if arm.series}
    named = {word for word in re.findall(r"[A-Za-z_]\w*", f"{claim.predicate} {claim.shows}") if word in series}
    if not named:
        return [None]
    by_x: dict[float, dict[str, str]] = {}
    for arm in plan.arms:
        if arm.series in named and arm.x is not None:
            by_x.setdefault(arm.x, {})[arm.series] = arm.name
    points = [Point(x, arms) for x, arms in by_x.items() if len(arms) == len(named)]
    if claim.where:
        points = [point for point in points if parse(claim.where, "truth", plan, f"{where}.where", point).holds({}, plan.constants)]
    if not points:
        raise UsageError(f"{where}: no value of the sweep is left that it would be about")
    return list(points)


class _At(ast.NodeTransformer):
    """Puts a point's arms in the place of its series, and its number in the place of x."""

    def __init__(self, point: Point) -> None:
        self._point = point

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "x":
            return ast.copy_location(ast.Constant(self._point.x), node)
        return ast.copy_location(ast.Name(self._point.arms.get(node.id, node.id), node.ctx), node)


class _Checker:
    """Walks an expression before it is used: what is refused here never reaches the evaluation."""

    def __init__(self, text: str, plan: Plan, where: str) -> None:
        self._text, self._plan, self._where = text, plan, where
        self.arms: list[str] = []

    def kind(self, node: ast.expr) -> Kind:
        match node:
            case ast.Constant(value=bool()):
                raise self._refusal(node, "is not for claims")
            case ast.Constant(value=int() | float() as value):
                if not math.isfinite(_float(value)):
                    raise self._refusal(node, "is too large a number")
                return "number"
            case ast.Name():
                self._constant(node)
                return "number"
            case ast.Attribute():
                self._measure(node)
                return "number"
            case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
                self._all((node.left, node.right), "number")
                return "number"
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                self._all((node.operand,), "number")
                return "number"
            case ast.UnaryOp(op=ast.Not()):
                self._all((node.operand,), "truth")
                return "truth"
            case ast.BoolOp():
                self._all(node.values, "truth")
                return "truth"
            case ast.Compare() if all(type(op) in _COMPARISONS for op in node.ops):
                self._all((node.left, *node.comparators), "number")
                return "truth"
            case ast.Call(func=ast.Name(id=name)) if name in _FUNCTIONS:
                self._call(node, name)
                return "number"
        raise self._refusal(node, "is not for claims: use numbers, names, arm.workload.measure, + - * /, comparisons, and, or, not, abs, min, max")

    def _all(self, nodes: Sequence[ast.expr], kind: Kind) -> None:
        for node in nodes:
            if self.kind(node) != kind:
                raise self._refusal(node, "is a number where a condition is due" if kind == "truth" else "is a condition where a number is due")

    def _call(self, node: ast.Call, name: str) -> None:
        if node.keywords or (len(node.args) != 1 if name == "abs" else len(node.args) < 2):
            raise self._refusal(node, f"does not fit: {name} takes {'one number' if name == 'abs' else 'two numbers or more'}")
        self._all(node.args, "number")

    def _constant(self, node: ast.Name) -> None:
        if node.id not in self._plan.constants:
            if node.id in {arm.name for arm in self._plan.arms}:
                raise self._refusal(node, f"is an arm: write a measure of it, such as {node.id}.ping.p50_ms")
            known = [*self._plan.constants, *_FUNCTIONS]
            raise self._refusal(node, f"is not known: {nearest(node.id, known)}")

    def _measure(self, node: ast.Attribute) -> None:
        match node:
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id=arm_name), attr=workload_name), attr=measure):
                pass
            case _:
                raise self._refusal(node, "is no measure: write arm.workload.measure, such as idle.ping.p50_ms")
        arms = {arm.name: arm for arm in self._plan.arms}
        if arm_name not in arms:
            raise self._refusal(node, f"names no arm: there is no {arm_name!r}, {nearest(arm_name, list(arms))}")
        workloads = {workload.name: workload for workload in arms[arm_name].workloads}
        if workload_name not in workloads:
            raise self._refusal(node, f"names no workload of that arm: there is no {workload_name!r}, {nearest(workload_name, list(workloads))}")
        known = registry.headings(workloads[workload_name])
        if measure not in known:
            raise self._refusal(node, f"names no measure of that workload: there is no {measure!r}, {nearest(measure, list(known))}")
        self.arms.append(arm_name)

    def _refusal(self, node: ast.expr, why: str) -> UsageError:
        return UsageError(f"{self._where}: {ast.get_source_segment(self._text, node) or self._text!r} {why}")


def _value(node: ast.expr, measured: Measured, constants: Mapping[str, float]) -> float | bool:
    """The value of a node that :class:`_Checker` let through."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return _float(value)
        case ast.Name(id=name):
            return constants[name]
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id=arm), attr=workload), attr=measure):
            try:
                return measured[arm][workload][measure]
            except KeyError:
                raise UndefinedError from None
        case ast.BinOp():
            return _arithmetic(node, measured, constants)
        case ast.UnaryOp(op=ast.Not()):
            return not _value(node.operand, measured, constants)
        case ast.UnaryOp():
            operand = _value(node.operand, measured, constants)
            return -operand if isinstance(node.op, ast.USub) else operand
        case ast.BoolOp():
            # Every part is evaluated, so that what is undefined does not hide behind what came before it.
            parts = [bool(_value(value, measured, constants)) for value in node.values]
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        case ast.Compare():
            sides = [_value(side, measured, constants) for side in (node.left, *node.comparators)]
            return all(_COMPARISONS[type(op)](left, right) for op, left, right in zip(node.ops, sides, sides[1:], strict=False))
        case ast.Call(func=ast.Name(id=name)):
            return _FUNCTIONS[name](*(_value(argument, measured, constants) for argument in node.args))
    raise AssertionError(ast.dump(node))


def _arithmetic(node: ast.BinOp, measured: Measured, constants: Mapping[str, float]) -> float:
    left, right = _value(node.left, measured, constants), _value(node.right, measured, constants)
    try:
        value = _ARITHMETIC[type(node.op)](left, right)
    except ZeroDivisionError:
        raise UndefinedError from None
    if not math.isfinite(value):
        raise UndefinedError
    return value


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
