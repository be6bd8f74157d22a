"""How long frames were in a switch, in ms."""

from __future__ import annotations

import pyarrow as pa

from qjump_mn.model.plan import Trial
from qjump_mn.programs.measured import Measures
from qjump_mn.programs.statistics import of_latencies
from qjump_mn.programs.tap.program import TapPlan
from qjump_mn.results.tables import TrialFacts


def values(table: pa.Table, plan: TapPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of all frames together; one that the switch dropped is not seen."""
    return of_latencies(table)


MEASURES = Measures(values=values)
