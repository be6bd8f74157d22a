"""Look up programs by name: our own, those in a user's folders, and those of installed packages.

A folder ``programs/NAME/`` beside a user's ``experiments/`` defines a program in the same way as
each of ours does (user_programs.py). A package adds a program by an entry point in the group
"qjump_mn.programs": its name is the program's, and its object is a
:class:`~qjump_mn.programs.base.Program`. It adds a measure to an existing program by an entry point
in the group "qjump_mn.measures", with a name such as "ping.jitter_ms" and a
:class:`~qjump_mn.programs.base.Measure`.
"""

from __future__ import annotations

import functools
import operator
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from qjump_mn import extensions
from qjump_mn.errors import UsageError, describe
from qjump_mn.model import hooks, units
from qjump_mn.model.workload import AnyPlan, AnySpec, WorkloadPlan, WorkloadSpec
from qjump_mn.programs import user_programs
from qjump_mn.programs.base import Measure, Program

if TYPE_CHECKING:
    from qjump_mn.programs.measures_api import Measures
    from qjump_mn.programs.simulated_api import Simulated

OURS = (
    "barrier",
    "collective",
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
"""Each is ``qjump_mn.programs.NAME.program:PROGRAM``, because a checkout that is not installed has
no entry points."""

PROGRAMS_GROUP, MEASURES_GROUP = "qjump_mn.programs", "qjump_mn.measures"


class _Programs:
    """All programs that have been loaded. ``problems`` has, by program, the errors of those that
    cannot be used.

    Ours and those of packages are loaded at once, because a plan may use any of them. A user's
    program is loaded when a workload names it, because importing runs it. Measures are loaded on
    first use, because their modules may import ours.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, Program] = {name: _ours(name) for name in OURS}
        self.problems: dict[str, list[UsageError]] = {}
        self.owners: dict[str, str] = dict.fromkeys(OURS, "qjump-mn")
        self._tried: set[str] = set()
        for entry in extensions.every(PROGRAMS_GROUP):
            self._try(entry, self._enter_program)

    @functools.cache  # noqa: B019 - there is one of this class
    def measures(self) -> dict[str, dict[str, Measure]]:
        """Measures that packages add, by program and name."""
        by_program: dict[str, dict[str, Measure]] = {}
        for entry in extensions.every(MEASURES_GROUP):
            self._try(entry, functools.partial(self._enter_measure, by_program))
        return by_program

    def import_users(self, name: str) -> None:
        """Import the program ``name`` once, if it lies in one of the user's folders."""
        if name in self._tried or name not in user_programs.folders():
            return
        self._tried.add(name)
        try:
            self._enter_folder(name, user_programs.folders()[name])
        except UsageError as error:
            self.problems.setdefault(name, []).append(error)

    def _try(self, entry: EntryPoint, enter: Callable[[EntryPoint], None]) -> None:
        try:
            enter(entry)
        except UsageError as error:
            self.problems.setdefault(entry.name.partition(".")[0], []).append(error)

    def _enter_folder(self, name: str, folder: Path) -> None:
        if name in self.by_name:
            raise UsageError(
                f"{folder}: {self.owners[name]} already has a program {name!r}: rename the folder"
            )
        self.by_name[name] = user_programs.program(name, folder)
        self.owners[name] = str(folder)

    def _enter_program(self, entry: EntryPoint) -> None:
        if entry.name in self.by_name:
            raise extensions.unusable(
                entry, f"{self.owners[entry.name]} already has a program of this name"
            )
        program = extensions.imported(entry)
        if not isinstance(program, Program):
            raise extensions.unusable(
                entry, f"{entry.value} is not a qjump_mn.programs.base.Program"
            )
        tags = {program.name, str(program.spec.__struct_config__.tag)}
        if tags != {entry.name}:
            raise extensions.unusable(
                entry, f"its spec and its plan have the tags {', '.join(sorted(tags))}"
            )
        self.by_name[entry.name] = program
        self.owners[entry.name] = extensions.owner(entry)

    def _enter_measure(self, by_program: dict[str, dict[str, Measure]], entry: EntryPoint) -> None:
        name, _, measure = entry.name.partition(".")
        if name not in self.by_name:
            reason = f"there is no program {name!r} (a measure's name is such as 'ping.jitter_ms')"
            raise extensions.unusable(entry, reason)
        if not measure.isidentifier():
            raise extensions.unusable(
                entry, f"{measure!r} is not a measure's name: use letters, digits and underscores"
            )
        if measure in self.by_name[name].plan.MEASURES or measure in by_program.get(name, {}):
            raise extensions.unusable(entry, f"program {name!r} already has a measure {measure!r}")
        loaded = extensions.imported(entry)
        if not isinstance(loaded, Measure):
            raise extensions.unusable(
                entry, f"{entry.value} is not a qjump_mn.programs.base.Measure"
            )
        by_program.setdefault(name, {})[measure] = loaded


def _ours(name: str) -> Program:
    program: Program = pkgutil.resolve_name(f"qjump_mn.programs.{name}.program:PROGRAM")
    return program


_PROGRAMS = _Programs()


def structs(kind: type) -> list[type]:
    """The type of each loaded program for a workload of any: AnySpec or AnyPlan; else none."""
    programs = _PROGRAMS.by_name.values()
    if kind is AnySpec:
        return [program.spec for program in programs]
    return [program.plan for program in programs] if kind is AnyPlan else []


def decode(kind: type, value: Any) -> Any:
    """Decode workloads of any program and quantities (``dec_hook`` for msgspec). A program of a
    user's folder is imported first."""
    if kind not in (AnySpec, AnyPlan):
        return units.decode(kind, value)
    if isinstance(value, kind):
        return value
    if isinstance(value, dict):
        _PROGRAMS.import_users(str(value.get("program")))
    union = functools.reduce(operator.or_, structs(kind))
    try:
        return msgspec.convert(value, union, dec_hook=units.decode, str_keys=True)
    except (
        msgspec.ValidationError
    ) as error:  # msgspec adds the workload's place to a ValueError, no other
        raise ValueError(str(error)) from None


def sentence(error: msgspec.DecodeError) -> str:
    """The message of a msgspec error, with the path to the workload and the path inside it joined
    into one."""
    return re.sub(r" - at `\$([^`]*)` - at `\$([^`]*)`$", r" - at `$\2\1`", str(error))


def check(programs: Iterable[str]) -> None:
    """Import those of ``programs`` that lie in a user's folders, and raise :class:`UsageError` if
    one of ``programs``, or a measure of one, cannot be used.

    Programs that nobody uses may be broken.
    """
    names = list(dict.fromkeys(programs))
    for name in names:
        _PROGRAMS.import_users(name)
    _PROGRAMS.measures()
    errors = [error for name in names for error in _PROGRAMS.problems.get(name, ())]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise UsageError("; ".join(map(str, errors)))


def broken() -> tuple[str, ...]:
    """Programs for which :func:`check` raises an error."""
    _PROGRAMS.measures()
    return tuple(_PROGRAMS.problems)


def names() -> tuple[str, ...]:
    """The names of all programs, ours first; those in a user's folders even if they have not been
    imported."""
    return tuple(dict.fromkeys([*_PROGRAMS.by_name, *user_programs.folders()]))


def of(plan: WorkloadPlan) -> Program:
    """The program of a workload."""
    return _PROGRAMS.by_name[_tag(plan)]


def program(name: str) -> Program:
    """The program called ``name``."""
    return _PROGRAMS.by_name[name]


def spec_type(name: str) -> type[WorkloadSpec]:
    """The spec type of the program called ``name``."""
    return _PROGRAMS.by_name[name].spec


def headings(plan: WorkloadPlan) -> dict[str, str]:
    """The measures of a workload and their headings in tables: those of its program, then those of
    extensions."""
    return {
        **hooks.measures(plan),
        **{name: added.heading for name, added in added_measures(plan).items()},
    }


def added_measures(plan: WorkloadPlan) -> Mapping[str, Measure]:
    """Measures that installed packages add to a workload's program."""
    return _PROGRAMS.measures().get(_tag(plan), {})


def measures(plan: WorkloadPlan) -> Measures:
    """The measures of a workload's program; importing them imports numpy and pyarrow."""
    return _measures(_tag(plan), of(plan).measures)


def simulated(plan: WorkloadPlan) -> Simulated | None:
    """The simulated form of a workload's program, None if it has none; importing it imports
    qjump_sim."""
    name = of(plan).simulated
    return _simulated(_tag(plan), name) if name else None


@functools.cache
def _measures(tag: str, name: str) -> Measures:
    loaded: Measures = _resolved(tag, name)
    return loaded if tag in OURS else loaded.checked(f"{_PROGRAMS.owners[tag]}: program {tag!r}")


@functools.cache
def _simulated(tag: str, name: str) -> Simulated:
    loaded: Simulated = _resolved(tag, name)
    return loaded


def _resolved(tag: str, name: str) -> Any:
    """The object called ``name``. If it cannot be imported, raise :class:`UsageError` that names
    the package."""
    try:
        return pkgutil.resolve_name(name)
    except extensions.RAISED as error:
        if tag in OURS:
            raise
        package = _PROGRAMS.owners[tag]
        if package == str(user_programs.folders().get(tag)):
            raise UsageError(
                f"{package}: {name} cannot be imported ({describe(error)}): repair it"
            ) from error
        raise UsageError(
            f"{package} adds {tag!r} to {PROGRAMS_GROUP}, but {name} cannot be imported ({error}): "
            f"repair or uninstall {package}"
        ) from error


def _tag(plan: WorkloadPlan) -> str:
    return str(plan.__struct_config__.tag)
