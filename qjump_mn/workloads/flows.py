"""flows: each transfer with the times at which it began and ended, as the simulator left them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import FlowsPlan
from qjump_mn.workloads import simulated
from qjump_mn.workloads.launch import Launch

COLUMNS = {"source": "string", "destination": "string", "packets": "int64", "start_ps": "int64", "finish_ps": "int64"}
"""A row for each flow; ``finish_ps``, when the sender got the last acknowledgement, is null if it did not."""


def launches(plan: FlowsPlan, trial: Trial) -> Iterator[Launch]:
    """None: no program of a kernel's does it."""
    return iter(())


def columns(plan: FlowsPlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """Every flow, in the order of start; raise :class:`LostError` if some are missing."""
    return simulated.columns(read(simulated.output_name(plan.name)), COLUMNS, rows=plan.count)
