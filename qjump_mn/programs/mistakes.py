"""Mistakes in a user's own program: each ends as one sentence with the program, the file and the line.

All that we call of such a program goes through a :class:`Guard`, which :mod:`users` and :mod:`registry` put
around it. What is called to plan or to start raises :class:`UsageError`; what is called for a trial that has
run raises :class:`LostError`, so that the other trials go on and the run can be read again.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import traceback
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import msgspec

from qjump_mn import extensions
from qjump_mn.errors import LostError, QJumpError, UsageError
from qjump_mn.programs import simulated_text
from qjump_mn.programs.base import Program, WorkloadPlan, WorkloadSpec

if TYPE_CHECKING:
    from qjump_mn.programs.measures_api import Measures
    from qjump_mn.simulation.stage import Simulated

Function = Callable[..., Any]
Kind = type[QJumpError]


def place(error: BaseException, folder: Path) -> str:
    """The innermost line of ``folder`` that ``error`` went through, "/path/measures.py, line 17"; empty where
    none did."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    return f"{inside[-1].filename}, line {inside[-1].lineno}" if inside else ""


def told(error: BaseException, folder: Path) -> str:
    """What is wrong and where: "ZeroDivisionError: division by zero, /path/measures.py, line 17"."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ", ".join(filter(None, [what, place(error, folder)]))


def check_named(plan: WorkloadPlan, values: object, whose: str) -> None:
    """Raise :class:`LostError` unless ``values`` are numbers by names that the plan's MEASURES has: another
    would be in no table, and no claim could have it."""
    if not isinstance(values, Mapping):
        raise LostError(f"{whose}: values gave {type(values).__name__}: return a dict of measures")
    if unknown := [name for name in values if name not in plan.measures]:
        has = ", ".join(plan.measures) or "nothing"
        raise LostError(
            f"{whose}: values gave {unknown[0]!r}, and MEASURES of the plan has {has}: add it there"
        )
    for name, value in values.items():
        if not _is_number(value):
            raise LostError(f"{whose}: values gave {value!r} for {name!r}: give a number, or leave it out")


def named(measures: Measures, whose: str) -> Measures:
    """The measures, of which :func:`check_named` is asked each time."""

    def values(table: Any, plan: WorkloadPlan, *others: Any) -> dict[str, float]:
        found = measures.values(table, plan, *others)
        check_named(plan, found, whose)
        return found

    made: Measures = dataclasses.replace(measures, values=values)
    return made


def _is_number(value: object) -> bool:
    try:
        number = float(value)  # type: ignore[arg-type]  # numpy's are as good, whatever they are called
    except (TypeError, ValueError):
        return False
    return math.isfinite(number) and not isinstance(value, str | bool)


@dataclasses.dataclass(frozen=True)
class Guard:
    """What stands between us and the program ``name`` of a user's ``folder``."""

    name: str
    folder: Path

    def program(self, found: Program) -> Program:
        """The program, guarded; its classes are changed where they are, for plans and specs are of them."""
        self._check_columns(found)
        self._check_measures(found)
        for ours, theirs in ((WorkloadSpec, found.spec), (WorkloadPlan, found.plan)):
            self._check_whole(theirs)
            for one in theirs.__mro__:
                if self._is_theirs(one):
                    self._guard_class(one, ours, found.plan)
        return dataclasses.replace(
            found, launches=self._function(found.launches), table=self._table(found, found.table)
        )

    def measures(self, found: Measures) -> Measures:
        """The measures, guarded."""
        whole: Measures = self._fields(found, LostError)
        return named(whole, f"program {self.name!r}, {_line_of(found.values)}")

    def simulated(self, found: Simulated, columns: Mapping[str, str]) -> Simulated:
        """The program in the simulator, guarded; its rows are those of the ``columns``."""
        whole: Simulated = self._fields(found, UsageError)
        made: Simulated = dataclasses.replace(
            whole,
            apps=self._returning(whole.apps, list[Any]),
            rows=self._rows(found.rows, columns),
        )
        return made

    @property
    def _module(self) -> Path:
        return self.folder / "program.py"

    def _says(self, what: str) -> str:
        return f"program {self.name!r} makes a mistake ({what}): repair it"

    @contextmanager
    def _calls(self, function: Function, kind: Kind) -> Iterator[None]:
        try:
            yield
        except QJumpError:
            raise
        except extensions.RAISED as error:
            what = told(error, self.folder)
            # What is called with other arguments than it takes is never come into.
            where = "" if place(error, self.folder) else f", {_line_of(function)}"
            raise kind(self._says(what + where)) from error

    def _function(self, function: Function, kind: Kind = UsageError) -> Function:
        @functools.wraps(function)
        def guarded(*arguments: Any, **named: Any) -> Any:
            with self._calls(function, kind):
                found = function(*arguments, **named)
            # What is made while it is read goes wrong there.
            return self._each(found, function, kind) if isinstance(found, Iterator) else found

        return guarded

    def _each(self, found: Iterator[Any], function: Function, kind: Kind) -> Iterator[Any]:
        with self._calls(function, kind):
            yield from found

    def _returning(self, function: Function, returned: Any) -> Function:
        """``function``, which is to return what msgspec calls a ``returned``, or a plan of this class whose
        numbers are of their kinds."""

        @functools.wraps(function)
        def checked(*arguments: Any, **named: Any) -> Any:
            found = function(*arguments, **named)
            try:
                if isinstance(returned, type) and issubclass(returned, WorkloadPlan):
                    _check_plan(found, returned)
                else:
                    msgspec.convert(found, returned)
            except msgspec.ValidationError as error:
                what = f"{function.__name__} gave something else: {_in_python(error)}, {_line_of(function)}"
                raise UsageError(self._says(what)) from None
            return found

        return checked

    def _fields(self, found: Any, kind: Kind) -> Any:
        changes = {
            one.name: self._function(value, kind)
            for one in dataclasses.fields(found)
            if callable(value := getattr(found, one.name))
        }
        return dataclasses.replace(found, **changes)

    def _is_theirs(self, one: type) -> bool:
        return one.__module__.startswith(f"qjump_mn.programs.{self.name}.")

    def _guard_class(self, one: type, ours: type, plan: type[WorkloadPlan]) -> None:
        """Guard the methods and properties that we call; the others are called by these."""
        for name, value in list(vars(one).items()):
            if name.startswith("__") or not hasattr(ours, name):
                continue
            if isinstance(value, FunctionType):
                returned = _returned(getattr(ours, name), plan)
                setattr(one, name, self._returning(self._function(value), returned))
            elif isinstance(value, property) and value.fget is not None:
                returned = _returned(getattr(ours, name).fget, plan)
                setattr(one, name, property(self._returning(self._function(value.fget), returned)))

    def _check_whole(self, theirs: type) -> None:
        for base, needed in ((WorkloadPlan, ("describe",)), (WorkloadSpec, ("planned", "pairs"))):
            for name in needed if issubclass(theirs, base) else ():
                if getattr(theirs, name) is getattr(base, name):
                    raise UsageError(self._says(f"{theirs.__name__} has no method {name}, {self._module}"))

    def _check_columns(self, found: Program) -> None:
        """The types that the simulator's tables can have; the others are pyarrow's to know, which no plan
        imports."""
        for name, kind in found.columns.items() if found.simulated else ():
            if kind not in simulated_text.KINDS:
                usable = ", ".join(simulated_text.KINDS)
                what = f"columns: {name!r} is {kind!r}, and the simulator has {usable}, {self._module}"
                raise UsageError(self._says(what))

    def _check_measures(self, found: Program) -> None:
        try:
            msgspec.convert(found.plan.MEASURES, dict[str, str])
        except msgspec.ValidationError as error:
            what = f"MEASURES is no dict of headings by names: {_in_python(error)}, {self._module}"
            raise UsageError(self._says(what)) from None

    def _table(self, program: Program, function: Function) -> Function:
        guarded = self._function(function, LostError)

        @functools.wraps(function)
        def table(*arguments: Any) -> Any:
            found = guarded(*arguments)
            self._check_table(found, program.columns, _line_of(function))
            return found

        return table

    def _check_table(self, found: Any, columns: Mapping[str, str], where: str) -> None:
        import pyarrow as pa

        if not isinstance(found, Mapping) or set(found) != set(columns):
            has = ", ".join(map(str, found)) if isinstance(found, Mapping) else type(found).__name__
            raise LostError(self._says(f"table gave {has} for the columns {', '.join(columns)}, {where}"))
        for name, kind in columns.items():
            try:
                pa.array(found[name], type=pa.type_for_alias(kind))
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise LostError(self._says(f"column {name!r}, {kind!r}: {error}, {where}")) from None
        if len({len(found[name]) for name in columns}) > 1:
            lengths = ", ".join(f"{name} {len(found[name])}" for name in columns)
            raise LostError(self._says(f"the columns of its table have other lengths: {lengths}, {where}"))

    def _rows(self, function: Function, columns: Mapping[str, str]) -> Function:
        guarded = self._function(function, LostError)

        @functools.wraps(function)
        def rows(*arguments: Any) -> Iterator[Sequence[Any]]:
            for row in guarded(*arguments):
                self._check_row(row, columns, _line_of(function))
                yield row

        return rows

    def _check_row(self, row: Any, columns: Mapping[str, str], where: str) -> None:
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != len(columns):
            what = f"a row {row!r} for the columns {', '.join(columns)}, {where}"
            raise LostError(self._says(what))
        for value, (name, kind) in zip(row, columns.items(), strict=True):
            if not simulated_text.is_a(kind, value):
                raise LostError(self._says(f"{value!r} in the column {name!r}, which is {kind!r}, {where}"))


def _returned(ours: Function, plan: type[WorkloadPlan]) -> Any:
    """What a method of ours is said to return; of a plan, the user's own class."""
    only_for_checkers = dict.fromkeys(("ArmPlan", "Trial"), Any)
    said = typing.get_type_hints(ours, localns=only_for_checkers)["return"]
    return plan if said in (typing.Self, WorkloadPlan) else said


def _check_plan(found: Any, plan: type[WorkloadPlan]) -> None:
    """Raise :class:`msgspec.ValidationError` unless ``found`` can be written and read as a ``plan``."""
    if not isinstance(found, plan):
        raise msgspec.ValidationError(f"Expected `{plan.__name__}`, got `{type(found).__name__}`")
    msgspec.convert(msgspec.to_builtins(found), plan)
    found.describe()  # which only the report asks, when all has run


def _in_python(error: msgspec.ValidationError) -> str:
    """What msgspec says, with Python's names for its kinds."""
    names = {"array": "list", "null": "None", "object": "dict"}
    return re.sub(r"`(\w+)`", lambda kind: names.get(kind[1], kind[1]), str(error)).replace(
        " - at `$", " at `$"
    )


def _line_of(function: Function) -> str:
    """Where a function begins: "/path/measures.py, line 14"."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}, line {code.co_firstlineno}" if code else repr(function)
