"""flows: each transfer with the times at which it began and ended, as the simulator left them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import FlowsPlan
from qjump_mn.workloads.launch import Launch
from qjump_mn.workloads.text import transposed

COLUMNS = {"source": "string", "destination": "string", "packets": "int64", "start_ps": "int64", "finish_ps": "int64"}
"""A row for each flow; ``finish_ps``, when the sender got the last acknowledgement, is null if it did not."""

_HEAD = "start_ps,finish_ps,source,destination,packets"


def launches(plan: FlowsPlan, trial: Trial) -> Iterator[Launch]:
    """None: no program of a kernel's does it."""
    return iter(())


def columns(plan: FlowsPlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """Every flow, in the order of start; raise :class:`LostError` if some are missing."""
    head, *lines = read(f"{plan.name}.csv").splitlines()
    if head != _HEAD or len(lines) != plan.count:
        raise LostError(f"it has {len(lines)} flows of {plan.count}")
    rows = []
    for line in lines:
        start, finish, source, destination, packets = line.split(",")
        rows.append((source, destination, int(packets), int(start), int(finish) if finish else None))
    return transposed(rows, COLUMNS)
