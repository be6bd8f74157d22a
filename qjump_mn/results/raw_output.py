"""What one workload left, for checks that need its raw files beside its table."""

from __future__ import annotations

from pathlib import Path

from qjump_mn.programs.base import WorkloadPlan
from qjump_mn.programs.measures_api import Said
from qjump_mn.results.tables import TrialTables


def said(tables: TrialTables, workload: WorkloadPlan, raw: Path, clock: str) -> Said:
    """``raw`` is the folder of the trial's raw files, ``clock`` the run's."""
    return Said(
        plan=workload,
        table=tables.tables[workload.name],
        trial=tables.trial,
        facts=tables.facts,
        read=lambda name: (raw / name).read_text(encoding="utf-8"),
        virtual=clock == "virtual",
    )
