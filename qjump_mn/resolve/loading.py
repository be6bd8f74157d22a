"""Load experiments, schemes and topologies from files, and apply presets and ``-s key=value``."""

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
from qjump_mn.model import suggestions, tables, units, words
from qjump_mn.model.experiment import ExperimentSpec
from qjump_mn.model.scheme import SchemeSpec
from qjump_mn.model.topology import LinkSpec, TopologySpec
from qjump_mn.programs import registry
from qjump_mn.resolve import defaults, preset_tables
from qjump_mn.resolve.toml_types import convert

GROUP = "qjump_mn.data"
"""The group of entry points for other packages with experiments/, schemes/ or topologies/."""

ALL = "all"
"""Stands for all experiments on the command line."""

SINGULAR = {
    "experiments": "experiment",
    "schemes": "scheme",
    "topologies": "topology",
    "plots": "style",
    "plots/published": "published figure",
}
"""Each folder of files, and what to call one file in it."""

Point = dict[str, int | float | str | bool | list[str]]
SWEPT = ("workloads", "link", "topology", "schemes", "qjump", "tcp", "clock")
"""The parts of an experiment that a sweep may set: those that arms are made of."""

Points = dict[str, dict[str, Point]]
"""``points[sweep][value]``: the settings of a named value."""


class _Named(msgspec.Struct, forbid_unknown_fields=True):
    points: dict[str, Point]


class _Preset(msgspec.Struct):
    about: str = ""
    like: str = ""
    without: list[str] = []


class _Changed(msgspec.Struct):
    base: str = ""


class _Outline(msgspec.Struct):
    """The parts of an experiment's file that are read before it is converted as a whole."""

    WORDS: ClassVar[words.Kinds] = words.OF_EXPERIMENTS

    arms: dict[str, Any] = {}
    link: dict[str, Any] = {}
    presets: dict[str, _Preset] = {}
    schemes: dict[str, _Changed] = {}
    sweeps: dict[str, Any] = {}
    workloads: dict[str, Any] = {}


class Summary(msgspec.Struct):
    """An experiment in a list. ``also`` are its other names: published figures that it covers too.
    ``usual_preset`` is the default preset."""

    reproduces: str = ""
    also: tuple[str, ...] = ()
    usual_preset: str = defaults.PRESET
    presets: dict[str, dict[str, Any]] = {}


def folders(kind: str) -> list[Path]:
    """Return the folders with files of ``kind`` (a key of ``SINGULAR``), in the order of search:
    the user's, those of installed packages, ours.
    """
    package = Path(qjump_mn.__file__).parent
    ours = package / kind if (package / kind).is_dir() else package.parent / kind
    return [*(folder / kind for folder in (*extensions.users_folders(), *_added_folders())), ours]


@functools.cache
def _added_folders() -> tuple[Path, ...]:
    """Return the folder of each package that adds experiments, schemes or topologies. Raise
    :class:`UsageError` if one cannot be used."""
    return tuple(_folder(entry) for entry in extensions.entries(GROUP).values())


def _folder(entry: EntryPoint) -> Path:
    package = extensions.load(GROUP, entry.name)
    if not hasattr(package, "__path__"):
        raise extensions.unusable(
            entry, f"{entry.value} is not a package: it has no folder for files"
        )
    return Path(next(iter(package.__path__)))


def names(kind: str) -> list[str]:
    """Return the names of all files of ``kind``, sorted, without those of :func:`misnamed`."""
    return sorted(stem for stem in _stems(kind) if not words.FILE.problem(stem))


def misnamed(kind: str) -> list[str]:
    """Return a sentence for each file of ``kind`` whose name is not valid, sorted."""
    return sorted(filter(None, map(words.FILE.problem, _stems(kind))))


def _stems(kind: str) -> set[str]:
    return {
        path.stem for folder in folders(kind) for path in folder.glob("*.toml") if path.is_file()
    }


def experiment_called(name: str) -> str:
    """Return the experiment called ``name``, or the one with this other name, such as fig1a;
    ``name`` itself if there is none.
    """
    known = names("experiments")
    return (
        name
        if name in known
        else next((candidate for candidate in known if name in also(candidate)), name)
    )


def also(name: str) -> tuple[str, ...]:
    """Return the other names of an experiment; none if its file is broken, which others report."""
    try:
        return summary(name).also
    except UsageError:
        return ()


def summary(name: str) -> Summary:
    """Return an experiment's entry in a list. Raise :class:`UsageError` if its file is broken."""
    return convert(_experiment(name), Summary, f"experiment {name!r}", path_of("experiments", name))


def check_name(name: str) -> None:
    """Raise :class:`UsageError` for a name that no experiment can have."""
    if name == ALL:
        raise UsageError(
            f"no experiment can be called {ALL!r}, because it stands for all of them: choose "
            "another name"
        )


def read(kind: str, name: str) -> dict[str, Any]:
    """Return the raw content of ``kind``/``name``.toml. Raise :class:`UsageError` if there is no
    such file, or it is not valid TOML.
    """
    path = path_of(kind, name)
    if path is None:
        searched = " and ".join(map(str, dict.fromkeys(folders(kind)[:-1])))
        see = f"qjump-mn list {kind} lists them" if kind in ("experiments", "schemes") else ""
        raise UsageError(
            f"there is no {SINGULAR[kind]} {name!r}: "
            f"{suggestions.nearest(name, names(kind), see)}; put your own into {searched}"
        )
    try:
        # An editor may have written a byte order mark.
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:  # or a number, or a nesting, that Python refuses
        raise UsageError(f"{path} is not valid TOML: {error}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {reason_of(error)}") from None


def path_of(kind: str, name: str) -> Path | None:
    """Return the first file ``kind``/``name``.toml in the order of search; None if there is none,
    or the name is not valid.
    """
    if words.FILE.problem(name):
        return None
    return next(
        (path for folder in folders(kind) if (path := folder / f"{name}.toml").is_file()), None
    )


def _experiment(name: str) -> dict[str, Any]:
    """Return the content of an experiment's file, with defaults filled in."""
    raw = read("experiments", name)
    convert(raw, _Outline, f"experiment {name!r}", path_of("experiments", name))
    defaults.complete(raw, name)
    return raw


def topology(name: str) -> TopologySpec:
    """Return the topology called ``name``."""
    return convert(
        read("topologies", name), TopologySpec, f"topology {name!r}", path_of("topologies", name)
    )


def scheme(name: str) -> SchemeSpec:
    """Return the scheme called ``name``."""
    return convert(read("schemes", name), SchemeSpec, f"scheme {name!r}", path_of("schemes", name))


def presets(name: str) -> dict[str, str]:
    """Return the presets of the experiment called ``name``, each with its description."""
    return {
        preset: table.get("about", "") for preset, table in _experiment(name)["presets"].items()
    }


def usual_preset(name: str, backend: str = "") -> str:
    """Return the default preset: the experiment's ``usual_preset``, or "course" if the user chose a
    ``backend``, whose clock may be another one; the file's first preset if it has no "course"."""
    entry = summary(name)
    wanted = defaults.PRESET if backend else entry.usual_preset
    return (
        wanted
        if wanted in entry.presets or wanted != defaults.PRESET
        else next(iter(entry.presets))
    )


def experiment(
    name: str, preset: str, settings: list[str], schemes: Sequence[str] = ()
) -> tuple[ExperimentSpec, Points]:
    """Return the experiment called ``name`` with ``preset``, an added arm for each of ``schemes``,
    and each "key=value" of ``settings`` applied; and the settings of its sweeps' named values.

    See :mod:`qjump_mn.resolve.preset_tables` for what a preset does.
    """
    raw = _experiment(name)
    where = f"experiment {name!r}"
    entries = raw.pop("presets")
    for key in ExperimentSpec.BESIDE:
        raw.pop(key, None)
    laid = preset_tables.apply(raw, entries, preset, where)
    own_link = dict(raw.get("link", {}))
    raw["link"] = {**_link_of(raw.get("topology")), **own_link}
    named = points(raw, where)
    for scheme_name in schemes:
        _add_arm(raw, scheme_name, where)
    bases = _add_schemes(raw, {})
    registry.check(_programs(raw))
    spec = convert(raw, ExperimentSpec, where, path_of("experiments", name), laid)
    return (_set(name, spec, settings, own_link, bases) if settings else spec), named


def _set(
    name: str,
    spec: ExperimentSpec,
    settings: list[str],
    own_link: dict[str, Any],
    bases: dict[str, str],
) -> ExperimentSpec:
    """Return the experiment with ``settings`` applied. ``own_link`` is the table ``link`` of its
    file and preset, ``bases`` names the files of its schemes.
    """
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
    """Return the table ``link`` of a topology's file, whose name is not yet validated."""
    if not isinstance(topology, str):
        return {}
    raw = read("topologies", topology)
    # Report errors in this file with its own name.
    convert(raw, TopologySpec, f"topology {topology!r}", path_of("topologies", topology))
    return dict(raw["link"])


def _programs(raw: dict[str, Any]) -> Iterator[str]:
    """Yield the programs of an experiment's workloads, which are not yet validated."""
    workloads = raw.get("workloads")
    for workload in workloads.values() if isinstance(workloads, dict) else ():
        if isinstance(workload, dict):
            yield str(workload.get("program"))


def points(raw: dict[str, Any], where: str) -> Points:
    """Remove the tables ``points`` from an experiment's sweeps and return them.

    ``sweeps.NAME.points.VALUE`` is a table of settings, such as
    ``"schemes.*.simulator.transport.sack" = false``. ``*`` stands for each entry that has the
    setting. An empty table changes nothing. ``values`` selects the points to run; the default is
    all.
    """
    tables_by_sweep: Points = {}
    for key, sweep in raw.get("sweeps", {}).items():
        if isinstance(sweep, dict) and "points" in sweep:
            table = convert(
                {"points": sweep.pop("points")}, _Named, f"{where}: sweeps.{key}"
            ).points
            tables_by_sweep[key] = table
            sweep.setdefault("values", list(table))
            sweep.setdefault("sets", [])
    return tables_by_sweep


def _add_arm(raw: dict[str, Any], name: str, where: str) -> None:
    """Add an arm with the scheme ``name`` for each arm in ``compare``, with that arm's workloads,
    unless it exists already.
    """
    label, arms, compared = scheme(name).label, raw.get("arms", {}), raw.get("compare", "")
    if not compared:
        raise UsageError(
            f"{where} compares parameters, not schemes: set `compare` to an arm, or leave --scheme "
            "out"
        )
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
                f"{where} has an arm {key!r} with another scheme, {_scheme_of(arms[key])!r}: "
                "rename your scheme"
            )
        raw["figure"]["arms"] = list(dict.fromkeys([*raw["figure"]["arms"], key]))


def _add_schemes(raw: dict[str, Any], known: dict[str, str]) -> dict[str, str]:
    """Read the schemes that arms name into ``raw``, with the experiment's changes applied.

    ``base`` names the file on which a scheme of the experiment is based; ``known`` has the bases
    from an earlier call. Returns the base of each scheme that the experiment changes.
    """
    changes = {
        name: dict(change) if isinstance(change, dict) else {}
        for name, change in raw.get("schemes", {}).items()
    }
    bases = {name: change.pop("base", known.get(name, name)) for name, change in changes.items()}
    for base in bases.values():
        read("schemes", base)
    schemes: dict[str, Any] = {}
    for arm in raw.get("arms", {}).values():
        name = _scheme_of(arm)
        if isinstance(name, str) and name not in schemes:
            base = bases.get(name, name)
            schemes[name] = read("schemes", base)
            # Report errors in this file with its own name.
            convert(schemes[name], SchemeSpec, f"scheme {base!r}", path_of("schemes", base))
            tables.merge(schemes[name], changes.get(name, {}))
    raw["schemes"] = schemes
    return bases


def _scheme_of(arm: Any) -> Any:
    """Return the scheme in an arm's table, which is not yet validated; by default ArmSpec's
    default.
    """
    return arm.get("scheme", "none") if isinstance(arm, dict) else "none"


def varied(
    spec: ExperimentSpec, changes: Mapping[str, int | float | str | bool | list[str]], where: str
) -> ExperimentSpec:
    """Return ``spec`` with the settings in ``changes``, for a value of a sweep. Raise
    :class:`UsageError` for a setting that does not exist or that a sweep cannot set.
    """
    plain: dict[str, Any] = msgspec.to_builtins(spec, enc_hook=units.encode)
    for pattern, value in changes.items():
        if pattern.partition(".")[0] not in SWEPT:
            raise UsageError(
                f"{where}: {pattern!r} belongs to the whole run, not to an arm: sweep a setting of "
                f"{', '.join(SWEPT[:-1])} or {SWEPT[-1]}, or make a run for each value, as in "
                f"-s {pattern}=ONE,OTHER"
            )
        for key in tables.matching(plain, pattern) or [pattern]:
            place, last = tables.place_of(plain, key, where)
            place[last] = value
    return convert(plain, ExperimentSpec, where)
