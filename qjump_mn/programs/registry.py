"""The programs by name: ours, those of a user's folders, and those that installed packages bring.

A folder ``programs/NAME/`` beside a user's ``experiments/`` is a program as each of ours is (users.py). A
package brings a program by an entry point of the group "qjump_mn.programs", whose name is the program's and
whose object is a :class:`~qjump_mn.programs.base.Program`; and a measure of a program that is there already
by one of the group "qjump_mn.measures", with a name such as "ping.jitter_ms" and a
:class:`~qjump_mn.programs.base.Measure`."""

from __future__ import annotations

import functools
import operator
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qjump_mn import extensions
from qjump_mn.errors import UsageError
from qjump_mn.programs import mistakes, users
from qjump_mn.programs.base import Measure, Program, WorkloadPlan, WorkloadSpec

if TYPE_CHECKING:
    from qjump_mn.programs.measured import Measures
    from qjump_mn.simulation.stage import Simulated

OURS = (
    "barrier",
    "command",
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
    "tap",
)
"""Each is ``qjump_mn.programs.NAME.program:PROGRAM``; a checkout that is not installed has no entry
points."""

PROGRAMS_GROUP, MEASURES_GROUP = "qjump_mn.programs", "qjump_mn.measures"


class _Programs:
    """Ours and those of installed packages; ``problems`` has sentences about what cannot be used, by program.

    Programs are loaded at once, for a plan may have any of them; measures when somebody asks for them, for
    their modules may need ours."""

    def __init__(self) -> None:
        self.by_name: dict[str, Program] = {name: _ours(name) for name in OURS}
        self.problems: dict[str, list[str]] = {}
        self.owners: dict[str, str] = dict.fromkeys(OURS, "qjump-mn")
        for name, folder in users.folders().items():
            try:
                self._enter_folder(name, folder)
            except UsageError as error:
                self.problems.setdefault(name, []).append(str(error))
        for entry in extensions.every(PROGRAMS_GROUP):
            self._try(entry, self._enter_program)

    @functools.cache  # noqa: B019 - there is one of this class
    def measures(self) -> dict[str, dict[str, Measure]]:
        """By program and name."""
        by_program: dict[str, dict[str, Measure]] = {}
        for entry in extensions.every(MEASURES_GROUP):
            self._try(entry, functools.partial(self._enter_measure, by_program))
        return by_program

    def _try(self, entry: EntryPoint, enter: Callable[[EntryPoint], None]) -> None:
        try:
            enter(entry)
        except UsageError as error:
            self.problems.setdefault(entry.name.partition(".")[0], []).append(str(error))

    def _enter_folder(self, name: str, folder: Path) -> None:
        if name in self.by_name:
            raise UsageError(
                f"{folder}: qjump-mn has a program {name!r} itself: give the folder another name"
            )
        self.by_name[name] = users.program(name, folder)
        self.owners[name] = str(folder)

    def _enter_program(self, entry: EntryPoint) -> None:
        if entry.name in self.by_name:
            raise extensions.unusable(entry, f"{self.owners[entry.name]} has a program of this name")
        program = extensions.imported(entry)
        if not isinstance(program, Program):
            raise extensions.unusable(entry, f"{entry.value} is no qjump_mn.programs.base.Program")
        tags = {program.name, str(program.spec.__struct_config__.tag)}
        if tags != {entry.name}:
            raise extensions.unusable(entry, f"its spec and its plan have the tags {', '.join(sorted(tags))}")
        self.by_name[entry.name] = program
        self.owners[entry.name] = extensions.owner(entry)

    def _enter_measure(self, by_program: dict[str, dict[str, Measure]], entry: EntryPoint) -> None:
        name, _, measure = entry.name.partition(".")
        if name not in self.by_name:
            reason = f"there is no program {name!r}, and a measure's name is such as 'ping.jitter_ms'"
            raise extensions.unusable(entry, reason)
        if not measure.isidentifier():
            raise extensions.unusable(
                entry, f"{measure!r} is no name for a measure: use letters, digits and underscores"
            )
        if measure in self.by_name[name].plan.MEASURES or measure in by_program.get(name, {}):
            raise extensions.unusable(entry, f"program {name!r} has a measure {measure!r}")
        loaded = extensions.imported(entry)
        if not isinstance(loaded, Measure):
            raise extensions.unusable(entry, f"{entry.value} is no qjump_mn.programs.base.Measure")
        by_program.setdefault(name, {})[measure] = loaded


def _ours(name: str) -> Program:
    program: Program = pkgutil.resolve_name(f"qjump_mn.programs.{name}.program:PROGRAM")
    return program


_PROGRAMS = _Programs()

if TYPE_CHECKING:
    AnySpec = WorkloadSpec
    AnyPlan = WorkloadPlan
else:
    AnySpec = functools.reduce(operator.or_, (program.spec for program in _PROGRAMS.by_name.values()))
    AnyPlan = functools.reduce(operator.or_, (program.plan for program in _PROGRAMS.by_name.values()))
"""A workload as an experiment file has it, and as a plan has it: one of those of any program."""


def check(programs: Iterable[str]) -> None:
    """Raise :class:`UsageError` with the name of an installed package that brings one of ``programs``, or a
    measure of one, which cannot be used. What nobody uses may be broken."""
    _PROGRAMS.measures()
    sentences = [text for name in dict.fromkeys(programs) for text in _PROGRAMS.problems.get(name, ())]
    if sentences:
        raise UsageError("; ".join(sentences))


def broken() -> tuple[str, ...]:
    """The programs about which :func:`check` has something to say."""
    _PROGRAMS.measures()
    return tuple(_PROGRAMS.problems)


def names() -> tuple[str, ...]:
    """Of all programs, ours first."""
    return tuple(_PROGRAMS.by_name)


def of(plan: WorkloadPlan) -> Program:
    """The program of a workload."""
    return _PROGRAMS.by_name[_tag(plan)]


def program(name: str) -> Program:
    """The program called ``name``."""
    return _PROGRAMS.by_name[name]


def spec_type(name: str) -> type[WorkloadSpec]:
    """What an experiment may ask of the program called ``name``."""
    return _PROGRAMS.by_name[name].spec


def headings(plan: WorkloadPlan) -> dict[str, str]:
    """The measures of a workload, each with its heading in tables: its program's, then those of
    extensions."""
    return {**plan.measures, **{name: added.heading for name, added in added_measures(plan).items()}}


def added_measures(plan: WorkloadPlan) -> Mapping[str, Measure]:
    """The measures that installed packages add to a workload's program."""
    return _PROGRAMS.measures().get(_tag(plan), {})


def measures(plan: WorkloadPlan) -> Measures:
    """What is computed of a workload's table; this imports numpy and pyarrow."""
    return _measures(_tag(plan), of(plan).measures)


def simulated(plan: WorkloadPlan) -> Simulated | None:
    """A workload's program in the simulator, None where that does not know it; this imports qjump_sim."""
    name = of(plan).simulated
    return _simulated(_tag(plan), name) if name else None


@functools.cache
def _measures(tag: str, name: str) -> Measures:
    loaded: Measures = _resolved(tag, name)
    if guard := _guard(tag):
        return guard.measures(loaded)
    # A package's program has no other names than its plan either.
    return loaded if tag in OURS else mistakes.named(loaded, f"{_PROGRAMS.owners[tag]}: program {tag!r}")


@functools.cache
def _simulated(tag: str, name: str) -> Simulated:
    loaded: Simulated = _resolved(tag, name)
    guard = _guard(tag)
    return guard.simulated(loaded, program(tag).columns) if guard else loaded


def _guard(tag: str) -> mistakes.Guard | None:
    """What tells a user's own mistakes; None for programs of ours and of packages."""
    folder = users.folders().get(tag)
    return mistakes.Guard(tag, folder) if folder and _PROGRAMS.owners[tag] == str(folder) else None


def _resolved(tag: str, name: str) -> Any:
    """The object called ``name``; raise :class:`UsageError` with the package that brings it, if it does not
    load."""
    try:
        return pkgutil.resolve_name(name)
    except extensions.RAISED as error:
        if tag in OURS:
            raise
        package = _PROGRAMS.owners[tag]
        if guard := _guard(tag):
            what = f"{name} does not load ({mistakes.told(error, guard.folder)})"
            raise UsageError(f"{package}: {what}: repair it") from error
        what = f"{package} adds {tag!r} to {PROGRAMS_GROUP}, but {name} does not load ({error})"
        raise UsageError(f"{what}: repair or uninstall {package}") from error


def _tag(plan: WorkloadPlan) -> str:
    return str(plan.__struct_config__.tag)
