"""The programs by name: ours, and those that installed packages bring.

A package brings a program by an entry point of the group "qjump_mn.programs", whose name is the program's and
whose object is a :class:`~qjump_mn.programs.base.Program`; and a measure of a program that is there already by one
of the group "qjump_mn.measures", with a name such as "ping.jitter_ms" and a
:class:`~qjump_mn.programs.measured.Measure`.
"""

from __future__ import annotations

import functools
import importlib.metadata
import operator
import pkgutil
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from qjump_mn.errors import UsageError
from qjump_mn.programs.base import Program, WorkloadPlan, WorkloadSpec

if TYPE_CHECKING:
    from qjump_mn.programs.measured import Measure, Measures
    from qjump_mn.simulation.stage import Simulated

OURS = (
    "barrier",
    "fanin",
    "flows",
    "iperf",
    "mapreduce",
    "memcached",
    "memcaslap",
    "noise",
    "ping",
    "ptp",
    "q2pc",
    "shuffle",
)
"""Each is ``qjump_mn.programs.NAME.program:PROGRAM``; a checkout that is not installed has no entry points."""

PROGRAMS_GROUP, MEASURES_GROUP = "qjump_mn.programs", "qjump_mn.measures"


class _Extensions:
    """What installed packages bring; those that cannot be used are ``problems``, a sentence each."""

    def __init__(self) -> None:
        self.programs: dict[str, Program] = {name: _ours(name) for name in OURS}
        self.measures: dict[str, dict[str, Measure]] = {}
        self.problems: list[str] = []
        self._owners: dict[str, str] = dict.fromkeys(OURS, "qjump-mn")
        for entry in _entries(PROGRAMS_GROUP):
            self._add(entry, self._program)
        for entry in _entries(MEASURES_GROUP):
            self._add(entry, self._measure)

    def _add(self, entry: importlib.metadata.EntryPoint, enter: Any) -> None:
        try:
            enter(entry)
        except Exception as error:  # somebody else's code: whatever it raises, the sentence says whose it is
            reason = str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
            what = "program" if entry.group == PROGRAMS_GROUP else "measure"
            self.problems.append(
                f"package {_owner(entry)} brings a {what} {entry.name!r} that cannot be used: {reason}: "
                "correct the package, or uninstall it"
            )

    def _program(self, entry: importlib.metadata.EntryPoint) -> None:
        if entry.name in self.programs:
            raise UsageError(f"package {self._owners[entry.name]} has a program of this name")
        program = entry.load()
        if not isinstance(program, Program):
            raise UsageError(f"{entry.value} is no qjump_mn.programs.base.Program")
        tags = {program.name, str(program.spec.__struct_config__.tag)}
        if tags != {entry.name}:
            raise UsageError(f"its spec and its plan have the tags {', '.join(sorted(tags))}, not {entry.name!r}")
        self.programs[entry.name] = program
        self._owners[entry.name] = _owner(entry)

    def _measure(self, entry: importlib.metadata.EntryPoint) -> None:
        from qjump_mn.programs.measured import Measure  # only where somebody brings one

        name, _, measure = entry.name.partition(".")
        if name not in self.programs:
            raise UsageError(f"there is no program {name!r}: a measure's name is such as 'ping.jitter_ms'")
        if not measure.isidentifier():
            raise UsageError(f"{measure!r} is no name for a measure: use letters, digits and underscores")
        if measure in self.programs[name].plan.MEASURES or measure in self.measures.get(name, {}):
            raise UsageError(f"program {name!r} has a measure {measure!r}")
        loaded = entry.load()
        if not isinstance(loaded, Measure):
            raise UsageError(f"{entry.value} is no qjump_mn.programs.measured.Measure")
        self.measures.setdefault(name, {})[measure] = loaded


def _ours(name: str) -> Program:
    program: Program = pkgutil.resolve_name(f"qjump_mn.programs.{name}.program:PROGRAM")
    return program


def _entries(group: str) -> Iterable[importlib.metadata.EntryPoint]:
    """The entry points of a group, in an order that does not depend on the file system."""
    return sorted(importlib.metadata.entry_points(group=group), key=lambda entry: (entry.name, _owner(entry)))


def _owner(entry: importlib.metadata.EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "of unknown name"


_EXTENSIONS = _Extensions()

if TYPE_CHECKING:
    AnySpec = WorkloadSpec
    AnyPlan = WorkloadPlan
else:
    AnySpec = functools.reduce(operator.or_, (program.spec for program in _EXTENSIONS.programs.values()))
    AnyPlan = functools.reduce(operator.or_, (program.plan for program in _EXTENSIONS.programs.values()))
"""A workload as an experiment file has it, and as a plan has it: one of those of any program."""


def check() -> None:
    """Raise :class:`UsageError` with the name of an installed package whose program or measure cannot be used."""
    if _EXTENSIONS.problems:
        raise UsageError("; ".join(_EXTENSIONS.problems))


def names() -> tuple[str, ...]:
    """Of all programs, ours first."""
    return tuple(_EXTENSIONS.programs)


def of(plan: WorkloadPlan) -> Program:
    """The program of a workload."""
    return _EXTENSIONS.programs[_tag(plan)]


def spec_type(name: str) -> type[WorkloadSpec]:
    """What an experiment may ask of the program called ``name``."""
    return _EXTENSIONS.programs[name].spec


def headings(plan: WorkloadPlan) -> dict[str, str]:
    """The measures of a workload, each with its heading in tables: the program's own, then those of extensions."""
    return {**plan.measures, **{name: added.heading for name, added in added_measures(plan).items()}}


def added_measures(plan: WorkloadPlan) -> Mapping[str, Measure]:
    """The measures that installed packages add to a workload's program."""
    return _EXTENSIONS.measures.get(_tag(plan), {})


def measures(plan: WorkloadPlan) -> Measures:
    """What is computed of a workload's table; this imports numpy and pyarrow."""
    loaded: Measures = pkgutil.resolve_name(of(plan).measures)
    return loaded


def simulated(plan: WorkloadPlan) -> Simulated | None:
    """A workload's program in the simulator, None where that does not know it; this imports qjump_sim."""
    name = of(plan).simulated
    loaded: Simulated | None = pkgutil.resolve_name(name) if name else None
    return loaded


def _tag(plan: WorkloadPlan) -> str:
    return str(plan.__struct_config__.tag)
