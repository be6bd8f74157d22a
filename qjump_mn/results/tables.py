"""Parse raw output into tables: one Parquet file per workload and trial, rebuilt by each analysis.

``data/<workload>.parquet`` has the columns of the workload's program (``columns`` in
``qjump_mn.programs``). A flow is written "h8>h10". ``data/links.parquet``, the load of every link,
is ``qjump_mn.results.links``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from qjump_mn.errors import LostError, describe, reason_of
from qjump_mn.model import hooks
from qjump_mn.model.plan import Trial
from qjump_mn.model.workload import WorkloadPlan
from qjump_mn.programs import counters, registry, simulated_text
from qjump_mn.programs.facts import TrialFacts, TrialTables
from qjump_mn.results import links
from qjump_mn.results.directory import RunDirectory, hand_over


def facts(run: RunDirectory, trial: Trial) -> TrialFacts:
    """Return a trial's ``trial.json``. Raises :class:`LostError` if it is missing or damaged."""
    path = run.trial(trial.name) / "trial.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=TrialFacts)
    except (OSError, msgspec.DecodeError) as error:
        raise LostError(f"trial.json cannot be read: {error}") from None


def build(run: RunDirectory, trial: Trial) -> TrialTables:
    """Parse a done trial's raw output, and write its tables.

    Raises :class:`LostError` that names a missing or damaged file.
    """
    trial_facts = facts(run, trial)
    raw, data = run.raw(trial.name), run.data(trial.name)
    tables = {workload.name: table(workload, trial, raw) for workload in trial.arm.workloads}
    load = _links(run, trial, trial_facts)
    data.mkdir(exist_ok=True)
    for name, content in (tables if load is None else {**tables, links.NAME: load}).items():
        pq.write_table(content, data / f"{name}.parquet", compression="zstd")
    hand_over(data)
    return TrialTables(trial, trial_facts, tables, load)


def _links(run: RunDirectory, trial: Trial, trial_facts: TrialFacts) -> pa.Table | None:
    """Return the load of every link during the measurement; None in the simulator."""
    if trial_facts.read_ns is None:
        return None
    return links.table(trial.network, run.trial(trial.name), trial_facts.read_ns)


def schema(workload: WorkloadPlan) -> pa.Schema:
    """Return the columns of a workload's table."""
    return pa.schema(
        [(name, pa.type_for_alias(kind)) for name, kind in registry.of(workload).columns.items()]
    )


def _columns(
    workload: WorkloadPlan, trial: Trial, raw: Path, read: Callable[[str], str]
) -> Mapping[str, Sequence[Any]]:
    """Return a workload's columns: parsed by its program, or as the simulator wrote them.

    The simulator's counters beside the output tell which.
    """
    if hooks.is_only_simulated(workload) or not (raw / counters.NAME).is_file():
        return registry.of(workload).table(workload, trial, read)
    return simulated_text.columns(
        read(simulated_text.output_name(workload.name)), registry.of(workload).columns
    )


def table(workload: WorkloadPlan, trial: Trial, raw: Path) -> pa.Table:
    """Return the table of a workload's output in the folder ``raw``.

    Raises :class:`LostError` that names the program, its host, and the missing or damaged file.
    """
    last = ""

    def read(name: str) -> str:
        nonlocal last
        last = name
        text = (raw / name).read_text(encoding="utf-8")
        if not text:
            raise LostError("it is empty, nothing was printed")
        return text

    # Catch only what a bad text may raise in a parser: errors of our own code must surface.
    try:
        return pa.table(dict(_columns(workload, trial, raw, read)), schema=schema(workload))
    except OSError as error:
        why = f" cannot be read: {reason_of(error)}"
    except LostError as error:
        why = f": {error}"
    except (ValueError, LookupError, OverflowError) as error:
        why = f" is not what this version reads: {describe(error)}"
    # A program may write a second file with the name of its output and another suffix.
    launches = registry.of(workload).launches(workload, trial)
    prefix = next(
        (f"{launch.shown}: " for launch in launches if Path(launch.output).stem == Path(last).stem),
        "",
    )
    raise LostError(f"{prefix}raw/{last}{why}")
