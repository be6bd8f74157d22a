"""Claims: a predicate, and what is shown beside it, over the measures of the arms.

Their language is that of :mod:`qjump_mn.model.expression`; names are the plan's constants and
``arm.workload.measure``. A series in an arm's place stands for each of its arms, and x for its
value. Everything is checked before anything runs (:func:`check`), which needs no data and no
library but msgspec. A measure without a value and a division by zero make the whole expression
undefined: no value is shown. A predicate does not hold without a measure. Where it divides by zero
nothing is known, and the claim is INVALID; one that does so whatever is measured is refused.

The published numbers are data of the experiment. What a claim with a ``size`` shows is compared
with what the same expression makes of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from qjump_mn.errors import UsageError
from qjump_mn.model import expression
from qjump_mn.model.experiment import Better, Published, SizeSpec
from qjump_mn.model.expression import (
    FUNCTIONS,
    Expression,
    Kind,
    Path,
    UndefinedError,
    UnknownNameError,
)
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.model.suggestions import nearest
from qjump_mn.programs import registry

Measured = Mapping[str, Mapping[str, Mapping[str, float]]]
"""``measured[arm][workload][measure]`` for one seed; a measure that has no value (the median of no
echo) is absent."""


class Point(NamedTuple):
    """One value of a sweep: the arm of each series that has it."""

    x: float
    arms: Mapping[str, str]


class Formula:
    """An expression over a plan, at a point of its sweep if it names a series.

    ``arms`` are the arms that it needs, ``measures`` those that it names ("arm.workload.measure").
    """

    def __init__(self, parsed: Expression, point: Point | None) -> None:
        self._expression, self._point = parsed, point
        paths = [(_arm_name(path, point), *path[1:]) for path in parsed.names if len(path) > 1]
        self.arms = tuple(dict.fromkeys(arm for arm, *_ in paths))
        self.measures = tuple(map(".".join, paths))

    def number(self, measured: Measured, constants: Mapping[str, float]) -> float | None:
        """Return the value for one seed; None if it is undefined."""
        value = self._value(measured, constants)
        return None if value is None else float(value)

    def holds(self, measured: Measured, constants: Mapping[str, float]) -> bool:
        """Return whether it is true for one seed."""
        return bool(self._value(measured, constants))

    def is_defined(self, measured: Measured, constants: Mapping[str, float]) -> bool:
        """Return whether it has a value for one seed; a claim without one does not hold."""
        return self._value(measured, constants) is not None

    def is_knowable(self, measured: Measured, constants: Mapping[str, float]) -> bool:
        """Return whether it has a value for one seed, or only lacks a measure; False if it divides
        by zero."""
        try:
            self._evaluated(measured, constants)
        except UndefinedError as error:
            return error.is_missing
        return True

    def _value(self, measured: Measured, constants: Mapping[str, float]) -> float | bool | None:
        try:
            return self._evaluated(measured, constants)
        except UndefinedError:
            return None

    def _evaluated(self, measured: Measured, constants: Mapping[str, float]) -> float | bool:
        def value_of(path: Path) -> float:
            if len(path) == 1:
                return self._point.x if self._point and path == ("x",) else constants[path[0]]
            _, workload, measure = path
            try:
                return measured[_arm_name(path, self._point)][workload][measure]
            except KeyError:
                raise UndefinedError(is_missing=True) from None

        return self._expression.value(value_of)


def parse(text: str, kind: Kind, plan: Plan, where: str) -> Formula:
    """Parse ``text`` as a ``kind`` over single arms. Raises :class:`UsageError` that begins with
    ``where``."""
    return _formula(expression.parse(text, where), kind, plan, None)


def check(plan: Plan) -> None:
    """Check every claim and published number without any data; raise :class:`UsageError` with the
    place of the first wrong one."""
    for name in plan.judged.published:
        _check_published(name, plan)
    for setting, measure in plan.judged.calibrated.items():
        if measure not in plan.judged.published:
            raise UsageError(
                f"experiment {plan.shown.experiment!r}: calibrated.{setting}: {measure!r} is not "
                f"in [published]: {nearest(measure, list(plan.judged.published))}"
            )
    for name in plan.judged.claims:
        Claim.of(plan, name)


class Size(NamedTuple):
    """The published range of a number, and the ``factor`` outside it that still counts as the same
    size."""

    least: float
    most: float
    factor: float
    because: str
    better: Better

    def is_met(self, value: float | None) -> bool:
        """Return whether a number has the published size."""
        return value is not None and self.least / self.factor <= value <= self.most * self.factor


class Claim:
    """A claim that is ready to be judged: all its ``predicates`` must hold.

    The largest of what it ``shows`` is reported, and compared with the published ``size`` if there
    is one. There is one of each, or one for each x of the series that the claim names. ``arms`` are
    those it needs.
    """

    def __init__(
        self, predicates: Sequence[Formula], shows: Sequence[Formula], size: Size | None = None
    ) -> None:
        self._predicates, self._shows, self.size = predicates, shows, size
        self.arms = tuple(
            dict.fromkeys(arm for formula in (*predicates, *shows) for arm in formula.arms)
        )

    @classmethod
    def of(cls, plan: Plan, name: str) -> Claim:
        """Return the claim of ``plan`` called ``name``. Raises :class:`UsageError` with the place
        of a mistake."""
        claim = plan.judged.claims[name]
        where = f"experiment {plan.shown.experiment!r}: claims.{name}"
        predicate = expression.parse(claim.predicate, f"{where}.predicate")
        shows = expression.parse(claim.shows, f"{where}.shows") if claim.shows else None
        condition = expression.parse(claim.where, f"{where}.where") if claim.where else None
        points = _points(
            plan, _series(plan, [predicate, *([shows] if shows else [])]), condition, where
        )
        shown = [_formula(shows, "number", plan, point) for point in points] if shows else []
        size = _size(claim.size, cls([], shown), plan, f"{where}.size") if claim.size else None
        return cls([_formula(predicate, "truth", plan, point) for point in points], shown, size)

    @property
    def measures(self) -> dict[str, None]:
        """The measures that it shows, "arm.workload.measure", in order."""
        return dict.fromkeys(name for shown in self._shows for name in shown.measures)

    def lacks(self, plan: Plan) -> str:
        """Name the shown measures that were not published; empty if all were."""
        if not self._shows:
            return ", because it shows nothing (write shows = ...)"
        missing = [name for name in self.measures if name not in plan.judged.published]
        return f", because there is no {', '.join(map(repr, missing))}" if missing else ""

    def holds(self, measured: Measured, constants: Mapping[str, float]) -> bool:
        """Return whether it is true for one seed."""
        return all(predicate.holds(measured, constants) for predicate in self._predicates)

    def is_defined(self, measured: Measured, constants: Mapping[str, float]) -> bool:
        """Return whether it has a value for one seed; a claim without one does not hold."""
        return all(predicate.is_defined(measured, constants) for predicate in self._predicates)

    def is_knowable(self, measured: Measured, constants: Mapping[str, float]) -> bool:
        """Return whether it has a value for one seed, or only lacks a measure; False if it divides
        by zero."""
        return all(predicate.is_knowable(measured, constants) for predicate in self._predicates)

    def shown(self, measured: Measured, constants: Mapping[str, float]) -> float | None:
        """Return the largest value that is shown for one seed; None if none is defined."""
        values = (formula.number(measured, constants) for formula in self._shows)
        return max((value for value in values if value is not None), default=None)


def measures_of(text: str) -> set[str]:
    """Return the measures that an expression names, as "arm.workload.measure"."""
    return {".".join(path) for path in expression.parse(text, "").names if len(path) > 1}


def corners(published: Published) -> Iterator[Measured]:
    """Yield the published numbers as those of one seed; ranges once with each of their ends."""
    names = [name.split(".") for name in published]
    ends = [value if isinstance(value, tuple) else (value,) for value in published.values()]
    for values in itertools.product(*ends):
        measured: dict[str, dict[str, dict[str, float]]] = {}
        for (arm, workload, measure), value in zip(names, values, strict=True):
            measured.setdefault(arm, {}).setdefault(workload, {})[measure] = value
        yield measured


def _size(spec: SizeSpec, shown: Claim, plan: Plan, where: str) -> Size:
    """Return the published value of what a claim shows. Raises :class:`UsageError` if it has
    none."""
    if not spec.factor >= 1 or not spec.because:
        raise UsageError(f"{where}: set `factor` to 1 or more and explain it in `because`")
    if spec.published is not None:
        least, most = spec.published if isinstance(spec.published, tuple) else (spec.published,) * 2
        if not 0 < least <= most:
            raise UsageError(
                f"{where}.published: give a number above 0, or two of which the first is smaller"
            )
        return Size(least, most, spec.factor, spec.because, spec.better)
    if shown.measures and set(shown.measures) <= set(plan.judged.calibrated.values()):
        raise UsageError(
            f"{where}: settings were calibrated on {', '.join(shown.measures)}, so its size is "
            "no prediction: leave the size out"
        )
    # Our constants are of our scale: nothing was published of them.
    unknown = dict.fromkeys(plan.judged.constants, math.nan)
    values = [shown.shown(measured, unknown) for measured in corners(plan.judged.published)]
    sizes = [value for value in values if value is not None and value > 0]
    if len(sizes) < len(values):
        raise UsageError(
            f"{where}: the published numbers make no number above 0 of what the claim "
            f"shows{shown.lacks(plan)}: add to the table [published] what is missing, or to the "
            "size what was published of it"
        )
    return Size(min(sizes), max(sizes), spec.factor, spec.because, spec.better)


def _check_published(name: str, plan: Plan) -> None:
    """Raise :class:`UsageError` for a name that is not a measure; its arm may be another
    preset's."""
    path = tuple(name.split("."))
    try:
        if len(path) != 3 or path[0] in {arm.name for arm in plan.arms}:
            _check_measure(path, plan, None)
    except UnknownNameError as error:
        raise UsageError(
            f"experiment {plan.shown.experiment!r}: published.{name}: {error}"
        ) from None


def _series(plan: Plan, expressions: Sequence[Expression]) -> set[str]:
    """Return the series that stand in an arm's place; not a workload, measure or function of that
    name."""
    series = {arm.series for arm in plan.arms if arm.series}
    return {path[0] for parsed in expressions for path in parsed.names if len(path) > 1} & series


def _points(
    plan: Plan, series: set[str], condition: Expression | None, where: str
) -> Sequence[Point | None]:
    """Return the values of the sweep for a claim over ``series``; one None for a claim without
    series."""
    if not series:
        if condition:
            raise UsageError(
                f"{where}.where: the claim names no series, so there is no x: leave `where` out"
            )
        return [None]
    by_x: dict[float, dict[str, str]] = {}
    for arm in plan.arms:
        if arm.series in series and arm.x is not None:
            by_x.setdefault(arm.x, {})[arm.series] = arm.name
    points = [Point(x, arms) for x, arms in by_x.items() if len(arms) == len(series)]
    if condition:
        points = [
            point
            for point in points
            if _condition(condition, plan, point).holds({}, plan.judged.constants)
        ]
    if not points:
        raise UsageError(f"{where}: no value of the sweep is left that it would be about")
    return points


def _condition(condition: Expression, plan: Plan, point: Point) -> Formula:
    """Return the condition that selects values of a sweep, before anything is measured."""

    def kind_of(path: Path) -> Kind:
        if len(path) > 1:
            raise UnknownNameError(
                "is a measure, which is not known before the run: use x and constants"
            )
        return _kind(path, plan, point)

    condition.check("truth", kind_of)
    return Formula(condition, point)


def _formula(parsed: Expression, kind: Kind, plan: Plan, point: Point | None) -> Formula:
    parsed.check(kind, lambda path: _kind(path, plan, point))

    def known(path: Path) -> float | None:
        if len(path) > 1:
            return None
        return point.x if point and path == ("x",) else plan.judged.constants[path[0]]

    parsed.check_constants(known)
    return Formula(parsed, point)


def _arm_name(path: Path, point: Point | None) -> str:
    """Return the arm that the first part of ``path`` names."""
    return point.arms.get(path[0], path[0]) if point else path[0]


def _kind(path: Path, plan: Plan, point: Point | None) -> Kind:
    """Return the kind of a name, always a number. Raises :class:`UnknownNameError` for a wrong
    name."""
    if len(path) == 1:
        _check_constant(path[0], plan, point)
    else:
        _check_measure(path, plan, point)
    return "number"


def _check_constant(name: str, plan: Plan, point: Point | None) -> None:
    if name in plan.judged.constants or (point and name == "x"):
        return
    arm = next((arm for arm in plan.arms if name in (arm.name, arm.series)), None)
    if arm is not None:
        what = "an arm" if name == arm.name else "a series"
        raise UnknownNameError(f"is {what}: write a measure of it, such as {_example(name, arm)}")
    raise UnknownNameError(f"is not known: {nearest(name, [*plan.judged.constants, *FUNCTIONS])}")


def _check_measure(path: Path, plan: Plan, point: Point | None) -> None:
    if len(path) != 3:
        example = _example(plan.arms[0].name, plan.arms[0])
        raise UnknownNameError(f"is not a measure: write arm.workload.measure, such as {example}")
    _, workload, measure = path
    arms = {arm.name: arm for arm in plan.arms}
    arm = arms.get(_arm_name(path, point))
    if arm is None:
        raise UnknownNameError(
            f"names no arm: there is no {path[0]!r}, {nearest(path[0], list(arms))}"
        )
    measures = {workload.name: registry.headings(workload) for workload in arm.workloads}
    if workload not in measures:
        raise UnknownNameError(
            f"names no workload of that arm: there is no {workload!r}, "
            f"{nearest(workload, list(measures))}"
        )
    if measure not in measures[workload]:
        wrong = f"there is no {measure!r}, {nearest(measure, list(measures[workload]))}"
        raise UnknownNameError(f"names no measure of that workload: {wrong}")


def _example(name: str, arm: ArmPlan) -> str:
    workload = arm.workloads[0]
    return f"{name}.{workload.name}.{next(iter(registry.headings(workload)))}"
