"""The Precision Time Protocol: one table, whichever program speaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import PtpPlan
from qjump_mn.workloads import ptp4l, ptpd
from qjump_mn.workloads.launch import Launch
from qjump_mn.workloads.text import transposed

COLUMNS = {"flow": "string", "at_ns": "int64", "offset_us": "double", "master_to_slave_us": "double", "slave_to_master_us": "double"}
"""A row for each message that was timed: when (ns since 1970), the offset that the slave then believed in, and how long the message was under
way, in the column of its direction; the other is null. The offset is null until the slave has one."""

_LAUNCHES = {"ptpd": ptpd.launches, "ptp4l": ptp4l.launches}
_SAMPLES = {"ptpd": ptpd.samples, "ptp4l": ptp4l.samples}


def launches(plan: PtpPlan, trial: Trial) -> Iterator[Launch]:
    """The master, and every slave, which is ready when it follows."""
    return _LAUNCHES[plan.implementation](plan, trial)


def columns(plan: PtpPlan, trial: Trial, read: Callable[[str], str]) -> dict[str, Sequence[Any]]:
    """Every message of every flow; flow is "slave>master"."""
    samples = _SAMPLES[plan.implementation]
    return transposed([(f"{slave}>{master}", *sample) for slave, master in plan.flows for sample in samples(plan, slave, read)], COLUMNS)
