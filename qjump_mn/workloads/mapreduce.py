"""mapreduce: a job as the simulator left it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import MapReducePlan
from qjump_mn.workloads import simulated
from qjump_mn.workloads.launch import Launch

COLUMNS = {
    "runtime_ps": "int64",
    "shuffled_ps": "int64",
    "throughput_bps": "double",
    "packets": "int64",
    "latency_ps": "double",
    "dropped_data": "int64",
    "dropped_acks": "int64",
    "dropped_syns": "int64",
    "data": "int64",
    "marked": "int64",
    "timeouts": "int64",
}
"""One row. Times from the start of the first map to when the last reducer had all, and had ended; what a host got meanwhile; of all
``packets`` sent the dropped ones by what they were; ``latency_ps``, the mean of delivered data packets from their host's limiter to their
destination; of ``data`` packets delivered the ``marked`` ones."""


def launches(plan: MapReducePlan, trial: Trial) -> Iterator[Launch]:
    """None: no program of a kernel's does it."""
    return iter(())


def columns(plan: MapReducePlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """The job; raise :class:`LostError` if it is not whole."""
    return simulated.columns(read(simulated.output_name(plan.name)), COLUMNS, rows=1)
