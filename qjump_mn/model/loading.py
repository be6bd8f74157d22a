"""Experiments and topologies from their files, a preset applied and the user's ``-s key=value`` on top."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import msgspec

import qjump_mn
from qjump_mn import extensions
from qjump_mn.errors import UsageError, reason_of
from qjump_mn.model import defaults, suggestions, tables, toml_locations, units, words
from qjump_mn.model.experiment import ExperimentSpec
from qjump_mn.model.scheme import SchemeSpec
from qjump_mn.model.toml_types import convert
from qjump_mn.model.topology import LinkSpec, TopologySpec
from qjump_mn.programs import registry

GROUP = "qjump_mn.data"
"""Entry points of this group stand for packages of somebody else's that have experiments/, schemes/ or
topologies/."""

ALL = "all"
"""In an experiment's place, every one."""

SINGULAR = {
    "experiments": "experiment",
    "schemes": "scheme",
    "topologies": "topology",
    "plots": "style",
    "plots/published": "published figure",
}
"""The folders of files, and what one file of them is."""

Point = dict[str, int | float | str | bool | list[str]]
SWEPT = ("workloads", "link", "topology", "schemes", "qjump", "tcp", "clock")
"""What of an experiment a sweep may set: what arms are made of."""

Points = dict[str, dict[str, Point]]
"""``points[sweep][value]``: the settings that a value with a name stands for."""


class _Named(msgspec.Struct, forbid_unknown_fields=True):
    points: dict[str, Point]


class _Preset(msgspec.Struct):
    about: str = ""
    without: list[str] = []


class _Changed(msgspec.Struct):
    base: str = ""


class _Outline(msgspec.Struct):
    """What is looked into in an experiment's file before the whole of it is converted."""

    WORDS: ClassVar[words.Kinds] = words.OF_EXPERIMENTS

    arms: dict[str, Any] = {}
    link: dict[str, Any] = {}
    presets: dict[str, _Preset] = {}
    schemes: dict[str, _Changed] = {}
    sweeps: dict[str, Any] = {}
    workloads: dict[str, Any] = {}


class Summary(msgspec.Struct):
    """An experiment in a list; ``also`` are second names: published figures that it stands for too.
    ``usual_preset`` is run where none is asked for."""

    reproduces: str = ""
    also: tuple[str, ...] = ()
    usual_preset: str = defaults.PRESET
    presets: dict[str, dict[str, Any]] = {}


def folders(kind: str) -> list[Path]:
    """Where files of ``kind``, one of ``SINGULAR``, are looked for: the user's folders first, then those of
    installed packages, then ours."""
    package = Path(qjump_mn.__file__).parent
    ours = package / kind if (package / kind).is_dir() else package.parent / kind
    return [*(folder / kind for folder in (*extensions.users_folders(), *_added_folders())), ours]


@functools.cache
def _added_folders() -> tuple[Path, ...]:
    """The folder of each package that an installed distribution adds with experiments, schemes or topologies
    in it; raise :class:`UsageError` for one that cannot be used."""
    return tuple(_folder(entry) for entry in extensions.entries(GROUP).values())


def _folder(entry: EntryPoint) -> Path:
    package = extensions.load(GROUP, entry.name)
    if not hasattr(package, "__path__"):
        raise extensions.unusable(entry, f"{entry.value} is no package: it has no folder for files")
    return Path(next(iter(package.__path__)))


def names(kind: str) -> list[str]:
    """The names of all files of ``kind``, each once, sorted; without those of :func:`misnamed`."""
    return sorted(stem for stem in _stems(kind) if not words.FILE.problem(stem))


def misnamed(kind: str) -> list[str]:
    """A sentence for each file of ``kind`` whose name cannot be used, sorted."""
    return sorted(filter(None, map(words.FILE.problem, _stems(kind))))


def _stems(kind: str) -> set[str]:
    return {path.stem for folder in folders(kind) for path in folder.glob("*.toml") if path.is_file()}


def experiment_called(name: str) -> str:
    """The experiment whose name that is, or which has it for a second one, such as fig1a; ``name`` itself if
    there is none."""
    known = names("experiments")
    return name if name in known else next((one for one in known if name in also(one)), name)


def also(name: str) -> tuple[str, ...]:
    """The second names of an experiment; none of one whose file is broken, which is another's to tell."""
    try:
        return summary(name).also
    except UsageError:
        return ()


def summary(name: str) -> Summary:
    """What a list of experiments has of one; raise :class:`UsageError` if its file is broken."""
    return convert(_experiment(name), Summary, f"experiment {name!r}", path_of("experiments", name))


def check_name(name: str) -> None:
    """Raise :class:`UsageError` for a name that no experiment can have."""
    if name == ALL:
        raise UsageError(
            f"no experiment can be called {ALL!r}, which stands for all of them: take another name"
        )


def read(kind: str, name: str) -> dict[str, Any]:
    """The raw content of ``kind``/``name``.toml; raise :class:`UsageError` if there is none or it is no
    TOML."""
    path = path_of(kind, name)
    if path is None:
        yours = " and ".join(map(str, dict.fromkeys(folders(kind)[:-1])))
        see = f"qjump-mn list {kind} lists them" if kind in ("experiments", "schemes") else ""
        raise UsageError(
            f"there is no {SINGULAR[kind]} {name!r}: {suggestions.nearest(name, names(kind), see)}; "
            f"yours are looked for in {yours}"
        )
    try:
        # An editor may have put a mark of the byte order before it.
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:  # also a number, or a nesting, that Python refuses
        raise UsageError(f"{path} is not valid TOML: {error}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {reason_of(error)}") from None


def path_of(kind: str, name: str) -> Path | None:
    """The file of ``kind``/``name``, the first that is found; None if there is none, or no file of ours can
    have that name."""
    if words.FILE.problem(name):
        return None
    return next((path for folder in folders(kind) if (path := folder / f"{name}.toml").is_file()), None)


def _experiment(name: str) -> dict[str, Any]:
    """The content of an experiment's file, with what it leaves out."""
    raw = read("experiments", name)
    convert(raw, _Outline, f"experiment {name!r}", path_of("experiments", name))
    defaults.complete(raw, name)
    return raw


def topology(name: str) -> TopologySpec:
    """The topology called ``name``."""
    return convert(read("topologies", name), TopologySpec, f"topology {name!r}", path_of("topologies", name))


def scheme(name: str) -> SchemeSpec:
    """The scheme called ``name``."""
    return convert(read("schemes", name), SchemeSpec, f"scheme {name!r}", path_of("schemes", name))


def presets(name: str) -> dict[str, str]:
    """The presets of the experiment called ``name``, each with the line that says what it is."""
    return {preset: table.get("about", "") for preset, table in _experiment(name)["presets"].items()}


def usual_preset(name: str, backend: str = "") -> str:
    """The preset that is run where none is asked for: the experiment's ``usual_preset``, but "course" on a
    ``backend`` that is asked for, whose clock may be another one; the file's first where it has no such."""
    told = summary(name)
    wanted = defaults.PRESET if backend else told.usual_preset
    return wanted if wanted in told.presets or wanted != defaults.PRESET else next(iter(told.presets))


def experiment(
    name: str, preset: str, settings: list[str], schemes: Sequence[str] = ()
) -> tuple[ExperimentSpec, Points]:
    """The experiment called ``name`` with ``preset``, an arm for each of ``schemes``, and then each
    "key=value" of ``settings`` applied; and what the values with names of its sweeps set.

    A preset leaves out what it names in ``without``, tables or settings, before it changes anything.
    """
    raw = _experiment(name)
    where = f"experiment {name!r}"
    table = raw.pop("presets")
    for told in ExperimentSpec.BESIDE:
        raw.pop(told, None)
    if preset not in table:
        raise UsageError(f"{where} has no preset {preset!r}: {suggestions.nearest(preset, list(table))}")
    changes = {key: value for key, value in table[preset].items() if key not in ("about", "without")}
    for entry in table[preset].get("without", ()):
        tables.leave_out(raw, entry, f"{where}: presets.{preset}.without")
    tables.merge(raw, changes)
    own_link = dict(raw.get("link", {}))
    raw["link"] = {**_link_of(raw.get("topology")), **own_link}
    named = points(raw, where)
    for scheme_name in schemes:
        _add_arm(raw, scheme_name, where)
    bases = _add_schemes(raw, {})
    registry.check(_programs(raw))
    laid = toml_locations.Laid(f"presets.{preset}", changes)
    spec = convert(raw, ExperimentSpec, where, path_of("experiments", name), laid)
    return (_set(name, spec, settings, own_link, bases) if settings else spec), named


def _set(
    name: str, spec: ExperimentSpec, settings: list[str], own_link: dict[str, Any], bases: dict[str, str]
) -> ExperimentSpec:
    """The experiment with settings; ``own_link`` is what its file and preset say of links, ``bases`` names
    the files of its schemes."""
    where = f"experiment {name!r}"
    plain: dict[str, Any] = msgspec.to_builtins(spec, enc_hook=units.encode)
    for setting in settings:
        tables.apply(plain, setting, name)
    if plain["topology"] != spec.topology:
        link = convert({**_link_of(plain["topology"]), **own_link}, LinkSpec, f"{where}: link")
        plain["link"] = msgspec.to_builtins(link, enc_hook=units.encode)
        for setting in (item for item in settings if item.startswith("link.")):
            tables.apply(plain, setting, name)
    _add_schemes(plain, bases)
    registry.check(_programs(plain))
    return convert(plain, ExperimentSpec, where)


def _link_of(topology: Any) -> dict[str, Any]:
    """What a topology's file, whose name is not yet checked, says of links."""
    if not isinstance(topology, str):
        return {}
    raw = read("topologies", topology)
    # A file's own mistakes are told with its name.
    convert(raw, TopologySpec, f"topology {topology!r}", path_of("topologies", topology))
    return dict(raw["link"])


def _programs(raw: dict[str, Any]) -> Iterator[str]:
    """The programs of an experiment's workloads, not yet checked."""
    workloads = raw.get("workloads")
    for workload in workloads.values() if isinstance(workloads, dict) else ():
        if isinstance(workload, dict):
            yield str(workload.get("program"))


def points(raw: dict[str, Any], where: str) -> Points:
    """Take the tables ``points`` out of an experiment's sweeps and return them.

    ``sweeps.NAME.points.VALUE`` is a table of settings, such as ``"schemes.*.simulator.transport.sack" =
    false``; ``*`` stands for each entry that has the setting. An empty one changes nothing. ``values`` are
    those that are run, by default all.
    """
    found: Points = {}
    for key, sweep in raw.get("sweeps", {}).items():
        if isinstance(sweep, dict) and "points" in sweep:
            found[key] = convert({"points": sweep.pop("points")}, _Named, f"{where}: sweeps.{key}").points
            sweep.setdefault("values", list(found[key]))
            sweep.setdefault("sets", [])
    return found


def _add_arm(raw: dict[str, Any], name: str, where: str) -> None:
    """The arms in which the workloads of those called ``compare`` meet the scheme ``name``, unless there are
    such already."""
    label, arms, compared = scheme(name).label, raw.get("arms", {}), raw.get("compare", "")
    if not compared:
        raise UsageError(f"{where} has no arm to meet other schemes: it compares parameters, not schemes")
    several = isinstance(compared, list)
    for compare in compared if several else [compared]:
        if compare not in arms:
            raise UsageError(
                f"{where}: compare: there is no arm {compare!r}: "
                f"{suggestions.nearest(str(compare), list(arms))}"
            )
        key = (f"{compare.partition('_')[0]}_" if several else "") + name.replace("-", "_")
        if key not in arms:
            arms[key] = {
                **{
                    field: arms[compare][field]
                    for field in ("workloads", "link", "sweep")
                    if field in arms[compare]
                },
                "label": label,
                "scheme": name,
            }
        elif _scheme_of(arms[key]) != name:
            raise UsageError(
                f"{where} has an arm {key!r} of another scheme, {_scheme_of(arms[key])!r}: give yours "
                "another name"
            )
        raw["figure"]["arms"] = list(dict.fromkeys([*raw["figure"]["arms"], key]))


def _add_schemes(raw: dict[str, Any], known: dict[str, str]) -> dict[str, str]:
    """The files of the schemes that arms name, each below what the experiment changes in it.

    ``base`` names the file of one of the experiment's own; those that were read before are ``known``. Returns
    the base of each.
    """
    changes = {
        name: dict(change) if isinstance(change, dict) else {}
        for name, change in raw.get("schemes", {}).items()
    }
    bases = {name: change.pop("base", known.get(name, name)) for name, change in changes.items()}
    for base in bases.values():
        read("schemes", base)
    found: dict[str, Any] = {}
    for arm in raw.get("arms", {}).values():
        name = _scheme_of(arm)
        if isinstance(name, str) and name not in found:
            base = bases.get(name, name)
            found[name] = read("schemes", base)
            # A file's own mistakes are told with its name.
            convert(found[name], SchemeSpec, f"scheme {base!r}", path_of("schemes", base))
            tables.merge(found[name], changes.get(name, {}))
    raw["schemes"] = found
    return bases


def _scheme_of(arm: Any) -> Any:
    """What an arm's table, not yet checked, says of its scheme; ArmSpec's default if it says nothing."""
    return arm.get("scheme", "none") if isinstance(arm, dict) else "none"


def varied(
    spec: ExperimentSpec, changes: Mapping[str, int | float | str | bool | list[str]], where: str
) -> ExperimentSpec:
    """``spec`` with other values at some of its settings, as a sweep asks for; raise :class:`UsageError`
    where there is no such setting."""
    plain: dict[str, Any] = msgspec.to_builtins(spec, enc_hook=units.encode)
    for pattern, value in changes.items():
        if pattern.partition(".")[0] not in SWEPT:
            raise UsageError(
                f"{where}: {pattern!r} is of the whole run, and no arm's own: sweep a setting of "
                f"{', '.join(SWEPT[:-1])} or {SWEPT[-1]}, or make a run for each value, as in "
                f"-s {pattern}=ONE,OTHER"
            )
        for key in tables.matching(plain, pattern) or [pattern]:
            place, last = tables.place_of(plain, key, where)
            place[last] = value
    return convert(plain, ExperimentSpec, where)
