"""ptp: a master and its slaves run the Precision Time Protocol by ptpd or ptp4l, with the guest's
one clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration
from qjump_mn.programs.base import Flow, FlowSpec, Program, Read, bounded
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.ptp import ptp4l, ptpd
from qjump_mn.programs.ptp.plan import Implementation, PtpPlan
from qjump_mn.programs.text import transposed


class Ptp(FlowSpec, frozen=True, forbid_unknown_fields=True, tag="ptp", kw_only=True):
    """The Precision Time Protocol. Each flow is "slave>master", like a client's; all have the same
    master, because Syncs go to all hosts. ``implementation`` is the program."""

    implementation: Implementation = "ptpd"
    interval: Duration = Duration(theory.NS_PER_S)

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        pairs = super().pairs(where)
        masters = {master for _, (_, master) in pairs}
        if len(masters) > 1:
            raise UsageError(
                f"{where}.flows: there are {len(masters)} masters: give all slaves the same master"
            )
        return pairs

    def check(self, where: str, network: Network) -> None:
        bounded(f"{where}.interval", self.interval, 10**4, 10**10, "10us to 10s")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> PtpPlan:
        return PtpPlan(**common, implementation=self.implementation, interval_ns=int(self.interval))


COLUMNS = {
    "flow": "string",
    "at_ns": "int64",
    "offset_us": "double",
    "master_to_slave_us": "double",
    "slave_to_master_us": "double",
}
"""A row for each message that was timed: when (ns since 1970), the slave's offset at that time, and
the message's delay, in the column of its direction; the other column is null. The offset is null
until the slave has one."""

_LAUNCHES = {"ptpd": ptpd.launches, "ptp4l": ptp4l.launches}
_SAMPLES = {"ptpd": ptpd.samples, "ptp4l": ptp4l.samples}


def launches(plan: PtpPlan, trial: Trial) -> Iterator[Launch]:
    """The master, and every slave, which is ready once it follows the master."""
    return _LAUNCHES[plan.implementation](plan, trial)


def columns(plan: PtpPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every message of every flow; flow is "slave>master"."""
    samples = _SAMPLES[plan.implementation]
    return transposed(
        [
            (f"{slave}>{master}", *sample)
            for slave, master in plan.flows
            for sample in samples(plan, slave, read)
        ],
        COLUMNS,
    )


PROGRAM = Program(
    spec=Ptp,
    plan=PtpPlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.ptp.measures:MEASURES",
    simulated="qjump_mn.programs.ptp.simulated:SIMULATED",
)
