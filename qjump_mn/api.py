"""qjump-mn from Python and in notebooks: ``run("fig3a", preset="smoke")`` makes a :class:`Run`, and
``Run.load("results/last").df("ping")`` has every request of one. See docs/python.md."""

from __future__ import annotations

import inspect
import json
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import markupsafe
import pyarrow as pa
import pyarrow.parquet as pq

from qjump_mn import session
from qjump_mn.cli.options import folder
from qjump_mn.console import Output
from qjump_mn.errors import UsageError
from qjump_mn.model import loading, suggestions, tables
from qjump_mn.model.plan import Plan
from qjump_mn.results import directory, formatting, outcome
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import Drawing, Outcome
from qjump_mn.session import Request


def run(
    experiment: str,
    *,
    preset: str = "",
    settings: Mapping[str, object] | None = None,
    arms: Sequence[str] | None = None,
    schemes: Sequence[str] | None = None,
    seed: int = 1,
    replicates: int | None = None,
    perturb: int = 0,
    backend: str = "",
    out: str | Path = "results",
) -> Run:
    """Run an experiment as ``qjump-mn run`` does, whose options these are, and return the run, judged.

    Raises :class:`~qjump_mn.errors.QJumpError` where the command line would end with its sentence. A claim
    that does not hold is no error.
    """
    if not isinstance(settings or {}, Mapping):
        raise UsageError(f"settings: {settings!r} is no dict: write {{'duration': '20ms'}}")
    for key, value in (settings or {}).items():
        if key in inspect.signature(run).parameters and not tables.is_setting(key):
            raise UsageError(f"settings: {key} is an argument, not a setting: use {key}={value!r}")
    name = loading.experiment_called(_text("experiment", experiment))
    preset, backend = _text("preset", preset or ""), _text("backend", backend or "")
    request = Request(
        experiment=name,
        preset=preset or loading.usual_preset(name, backend),
        settings=tuple(f"{key}={_setting(key, value)}" for key, value in (settings or {}).items()),
        seed=_whole("seed", seed),
        replicates=None if replicates is None else _whole("replicates", replicates),
        perturb=_whole("perturb", perturb),
        backend=backend,
        out=folder(_path("out", out)),
        arms=_listed("arms", arms),
        schemes=_listed("schemes", schemes),
    )
    plan, console = request.plan(), Output(soft_wrap=True)
    made = session.checked(plan, request, console)
    run_directory = session.begin(plan, made, request, console)
    session.carry_out(made, run_directory, plan, console)
    return Run.load(run_directory.path)


def _setting(key: str, value: object) -> str:
    """A value as ``-s`` has it: text as it is, else as TOML writes it."""
    return value if isinstance(value, str) else _toml(key, value)


def _toml(key: str, value: object) -> str:
    if hasattr(value, "item"):  # numpy's numbers
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(key, one) for one in value)}]"
    if isinstance(value, int | float):
        return str(value)
    raise UsageError(f"settings: {key!r} cannot be {value!r}: give a text, a number, True, False or a list")


def _whole(name: str, value: object) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # what is none is told
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise UsageError(f"{name}: {value!r} is no whole number: write {name}=2")
    return number


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name}: {value!r} is no text: write {name}='...'")
    return value


def _path(name: str, value: object) -> str | Path:
    if not isinstance(value, str | Path):
        raise UsageError(f"{name}: {value!r} is no path: write {name}='results'")
    return value


def _listed(name: str, values: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(values, str):  # whose letters would be taken for names
        raise UsageError(f"{name}: {values!r} is one text: write {name}=[{values!r}]")
    return tuple(_text(name, value) for value in values or ())


@dataclass(frozen=True)
class Picture:
    """A figure of a run; a notebook shows it."""

    drawing: Drawing
    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True)
class Run:
    """A run that was judged: its plan, its tables, its figures and its verdicts."""

    path: Path
    manifest: Manifest = field(repr=False)
    outcome: Outcome = field(repr=False)

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """The run of a directory; raise :class:`UsageError` for what is none, or was not judged."""
        found = directory.existing(Path(_path("path", path)))
        return cls(found.path, found.manifest, outcome.read(found.path))

    @property
    def plan(self) -> Plan:
        """What was asked."""
        return self.manifest.plan

    @cached_property
    def verdicts(self) -> dict[str, str]:
        """The verdict of each claim."""
        return {row.claim: row.verdict for row in self.outcome.verdicts}

    @cached_property
    def measures(self) -> dict[str, dict[str, dict[str, float]]]:
        """``[arm][workload][measure]``: medians over the seeds; times in ms."""
        return outcome.medians(self.outcome.arms)

    def table(self, workload: str) -> pa.Table:
        """All that ``workload`` left, or ``"links"``, the load of every link: a row for each request, flow or
        round, behind the columns ``arm`` and ``seed``; units are in the columns' names.

        Raises :class:`UsageError` where no done trial has it.
        """
        parts = list(self._parts(workload))
        if not parts:
            known = sorted({one.name for arm in self.plan.arms for one in arm.workloads})
            raise UsageError(f"{self.path} has no table {workload!r}: {suggestions.nearest(workload, known)}")
        return pa.concat_tables(parts)

    def df(self, workload: str) -> Any:
        """The same as a pandas.DataFrame, or as it is where there is no pandas."""
        found = self.table(workload)
        return found.to_pandas() if find_spec("pandas") else found

    def _parts(self, workload: str) -> Iterator[pa.Table]:
        found = directory.RunDirectory(self.path)
        for trial in self.plan.trials():
            path = found.data(trial.name) / f"{workload}.parquet"
            if path.is_file() and found.is_done(trial.name):
                data = pq.read_table(path)
                rows = data.num_rows
                yield data.add_column(0, "arm", pa.array([trial.arm.name] * rows, pa.string())).add_column(
                    1, "seed", pa.array([trial.seed] * rows, pa.int64())
                )

    @property
    def figures(self) -> list[Picture]:
        """Its figures, the experiment's own first."""
        return [
            Picture(drawing, (self.path / drawing.files["svg"]).read_text(encoding="utf-8"))
            for drawing in self.outcome.drawings
        ]

    def _repr_html_(self) -> str:
        rows = "".join(
            markupsafe.Markup("<tr><td>{}</td><td>{}</td><td style='text-align:left'>{}</td></tr>").format(
                row.verdict, formatting.value(row), row.statement
            )
            for row in self.outcome.verdicts
        )
        title = markupsafe.Markup("<h4>{}</h4><p>{}</p>").format(self.plan.shown.title, str(self.path))
        pictures = "".join(picture.svg for picture in self.figures[:1])
        return f"{title}{pictures}<table>{rows}</table>"
