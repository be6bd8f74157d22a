"""Run experiments and read their results from Python and notebooks (docs/python.md).

``run("fig3a", preset="smoke")`` runs an experiment and returns a :class:`Run`;
``Run.load("results/last").df("ping")`` is a table of every request of a run.
"""

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
from qjump_mn.model import suggestions, tables
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import loading
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
    """Run an experiment with the options of ``qjump-mn run``, and return the judged run.

    Raises :class:`~qjump_mn.errors.QJumpError`, with the same sentence, where the command line
    would fail. A claim that does not hold is not an error.
    """
    typed_settings = _settings(settings or {})
    name = loading.experiment_called(_text("experiment", experiment))
    preset, backend = _text("preset", preset or ""), _text("backend", backend or "")
    request = Request(
        experiment=name,
        preset=preset or loading.usual_preset(name, backend),
        settings=typed_settings,
        seed=_integer("seed", seed),
        replicates=None if replicates is None else _integer("replicates", replicates),
        perturb=_integer("perturb", perturb),
        backend=backend,
        out=folder(_path("out", out)),
        arms=_texts("arms", arms),
        schemes=_texts("schemes", schemes),
    )
    plan, console = request.plan(), Output(soft_wrap=True)
    checked_backend = session.checked_backend(plan, request, console)
    run_directory = session.create_run(plan, checked_backend, request, console)
    session.run_and_judge(checked_backend, run_directory, plan, console)
    return Run.load(run_directory.path)


def _settings(settings: Mapping[str, object]) -> tuple[str, ...]:
    """Return settings in the form of ``-s``; raise :class:`UsageError` for an argument of
    :func:`run`."""
    if not isinstance(settings, Mapping):
        raise UsageError(f"settings: {settings!r} is not a dict: write {{'duration': '20ms'}}")
    for key, value in settings.items():
        if key in inspect.signature(run).parameters and not tables.is_setting(key):
            raise UsageError(f"settings: {key} is an argument, not a setting: use {key}={value!r}")
    return tuple(f"{key}={_setting(key, value)}" for key, value in settings.items())


def _setting(key: str, value: object) -> str:
    """Return a setting's value in the form of ``-s``: text unchanged, anything else as TOML."""
    return value if isinstance(value, str) else _toml(key, value)


def _toml(key: str, value: object) -> str:
    if hasattr(value, "item"):  # a number of numpy
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(key, item) for item in value)}]"
    if isinstance(value, int | float):
        return str(value)
    raise UsageError(
        f"settings: {key!r} cannot be {value!r}: use a string, a number, True, False or a list"
    )


def _integer(name: str, value: object) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # TypeError is handled
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise UsageError(f"{name}: {value!r} is not a whole number: write {name}=2")
    return number


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name}: {value!r} is not a string: write {name}='...'")
    return value


def _path(name: str, value: object) -> str | Path:
    if not isinstance(value, str | Path):
        raise UsageError(f"{name}: {value!r} is not a path: write {name}='results'")
    return value


def _texts(name: str, values: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(values, str):  # a string is a sequence of its letters
        raise UsageError(f"{name}: {values!r} is a string, not a list: write {name}=[{values!r}]")
    return tuple(_text(name, value) for value in values or ())


@dataclass(frozen=True)
class Picture:
    """A figure of a run, which a notebook displays."""

    drawing: Drawing
    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True)
class Run:
    """A judged run: its plan, tables, figures and verdicts."""

    path: Path
    manifest: Manifest = field(repr=False)
    outcome: Outcome = field(repr=False)

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Load the run in the directory ``path``.

        Raises :class:`UsageError` if it is not a run directory, or the run was not judged.
        """
        run_directory = directory.existing(Path(_path("path", path)))
        return cls(run_directory.path, run_directory.manifest, outcome.read(run_directory.path))

    @property
    def plan(self) -> Plan:
        """The plan that was run."""
        return self.manifest.plan

    @cached_property
    def verdicts(self) -> dict[str, str]:
        """The verdict of each claim, by the claim's name."""
        return {row.claim: row.verdict for row in self.outcome.verdicts}

    @cached_property
    def measures(self) -> dict[str, dict[str, dict[str, float]]]:
        """Medians over the seeds, as ``[arm][workload][measure]``; times are in ms."""
        return outcome.medians(self.outcome.arms)

    def table(self, workload: str) -> pa.Table:
        """Return a workload's results of all trials, or with ``"links"`` the load of every link.

        There is a row for each request, flow or round. The first columns are ``arm`` and ``seed``;
        the names of the others end in their units. Raises :class:`UsageError` if no done trial has
        this workload.
        """
        trial_tables = list(self._trial_tables(workload))
        if not trial_tables:
            names = sorted({plan.name for arm in self.plan.arms for plan in arm.workloads})
            raise UsageError(
                f"{self.path} has no table {workload!r}: {suggestions.nearest(workload, names)}"
            )
        return pa.concat_tables(trial_tables)

    def df(self, workload: str) -> Any:
        """Return :meth:`table` as a pandas.DataFrame; without pandas, the table itself."""
        table = self.table(workload)
        return table.to_pandas() if find_spec("pandas") else table

    def _trial_tables(self, workload: str) -> Iterator[pa.Table]:
        run_directory = directory.RunDirectory(self.path)
        for trial in self.plan.trials():
            path = run_directory.data(trial.name) / f"{workload}.parquet"
            if path.is_file() and run_directory.is_done(trial.name):
                data = pq.read_table(path)
                rows = data.num_rows
                yield data.add_column(
                    0, "arm", pa.array([trial.arm.name] * rows, pa.string())
                ).add_column(1, "seed", pa.array([trial.seed] * rows, pa.int64()))

    @property
    def figures(self) -> list[Picture]:
        """The figures of the run, the experiment's own first."""
        return [
            Picture(drawing, (self.path / drawing.files["svg"]).read_text(encoding="utf-8"))
            for drawing in self.outcome.drawings
        ]

    def _repr_html_(self) -> str:
        rows = "".join(
            markupsafe.Markup(
                "<tr><td>{}</td><td>{}</td><td style='text-align:left'>{}</td></tr>"
            ).format(row.verdict, formatting.value(row), row.statement)
            for row in self.outcome.verdicts
        )
        title = markupsafe.Markup("<h4>{}</h4><p>{}</p>").format(
            self.plan.shown.title, str(self.path)
        )
        pictures = "".join(picture.svg for picture in self.figures[:1])
        return f"{title}{pictures}<table>{rows}</table>"
