"""Which rows of a table of the Precision Time Protocol count: for its measures, and for the drawing of its offsets."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.model.plan import Trial
from qjump_mn.results.tables import TrialFacts


def measured(table: pa.Table, facts: TrialFacts, trial: Trial) -> pa.Table:
    """The rows of the measurement: PTP begins long before it, and ends after it."""
    since = pc.subtract(table["at_ns"], facts.began_utc_ns)
    return table.filter(pc.and_(pc.greater_equal(since, 0), pc.less(since, trial.duration_ns)))


def offsets_us(table: pa.Table) -> pa.Table:
    """The rows in which the offset is new: each Sync gives another, an answer to a slave's own message only another delay."""
    return table.filter(pc.and_(pc.is_valid(table["master_to_slave_us"]), pc.is_valid(table["offset_us"])))
