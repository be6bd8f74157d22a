"""ptpd: how it is started, and what a slave has measured, from the statistics that it writes."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from qjump_mn.errors import LostError
from qjump_mn.programs.launch import Launch

if TYPE_CHECKING:
    from qjump_mn.model.plan import Trial
    from qjump_mn.programs.ptp.plan import PtpPlan

PRELOAD = "libptpstamps.so"
"""Keeps ptpd from spinning (native/ptp-stamps)."""

READY_S = 30.0
"""A slave looks for masters for 10 s, then waits for their next Announce: 14 s in all."""

# ptpd 2.3.1: in the foreground, without lock files, with what it says on its output; no clock is touched.
# Statistics have local time.
PTPD = ("env", "TZ=UTC0", "ptpd", "-C", "-L", "-E", "--clock:no_adjust=y", "--ptpengine:ip_mode=hybrid")
SLAVE = (
    "-s",
    "--global:log_statistics=Y",
)

FIELDS = 17
STATE, OFFSET, WHICH, RAW_DOWN, RAW_UP = 1, 4, 8, 15, 16
"""Fields of a line of statistics; ``WHICH`` message it is about: S(ync), D(elay), or I(nitial) for none."""


class Sample(NamedTuple):
    """One message: when (ns since 1970), the offset that the slave then believed in, and how long it was
    under way, in the direction that it had."""

    at_ns: int
    offset_us: float | None
    master_to_slave_us: float | None
    slave_to_master_us: float | None


def output_name(plan: PtpPlan, host: str, ending: str) -> str:
    """A raw file: "txt" is what ptpd says, "csv" a slave's statistics."""
    return f"{plan.name}-{host}.ptpd.{ending}"


def launches(plan: PtpPlan, trial: Trial) -> Iterator[Launch]:
    """The master, and every slave, which is ready when it follows."""

    def device(host: str) -> tuple[str, str]:
        return ("-i", f"{host}-eth0.{trial.network.vlan}")

    def ptpd(host: str, argv: tuple[str, ...], says: str) -> Launch:
        return Launch(
            "serve",
            host,
            argv,
            output_name(plan, host, "txt"),
            says=says,
            ready_s=READY_S,
            itself=False,
            preload=PRELOAD,
        )

    pace = tuple(f"--ptpengine:log_{what}_interval={plan.log_interval}" for what in ("sync", "delayreq"))
    # A master's default is a second, and so is when a slave asks for the first time: until it is answered its
    # offset is the whole way of a Sync.
    own, asks = pace if plan.log_interval else (), pace
    if plan.log_interval:
        asks = (*pace, f"--ptpengine:log_delayreq_interval_initial={plan.log_interval}")
    yield ptpd(plan.master, (*PTPD, "-M", *own, *device(plan.master)), "Now in state: PTP_LISTENING")
    for slave, _ in plan.flows:
        statistics = f"--global:statistics_file={output_name(plan, slave, 'csv')}"
        yield ptpd(slave, (*PTPD, *SLAVE, *asks, statistics, *device(slave)), "Now in state: PTP_SLAVE")


def samples(plan: PtpPlan, slave: str, read: Callable[[str], str]) -> list[Sample]:
    """Every message of a slave."""
    return parse(read(output_name(plan, slave, "csv")))


def parse(text: str) -> list[Sample]:
    """Every message in a slave's statistics; raise :class:`LostError` if they are not whole, or have none."""
    lines = [
        [field.strip() for field in line.split(",")] for line in text.splitlines() if not line.startswith("#")
    ]
    if not lines or not text.endswith("\n") or lines[-1][STATE : STATE + 1] != ["dsbl"]:
        raise LostError("ptpd's statistics do not end as ptpd ends: they were cut off")
    messages = [fields for fields in lines if len(fields) == FIELDS and fields[WHICH] in ("S", "D")]
    samples = [_sample(fields) for fields in messages if float(fields[_raw(fields)])]
    if not samples:
        raise LostError("ptpd's statistics have no message: the slave has heard no master")
    return samples


def _raw(fields: list[str]) -> int:
    """The field with the delay of a line's message. It is 0 where there is none: before its first Sync a
    slave has nothing to compare an answer with, and ptpd 2.3.1 writes the line all the same."""
    return RAW_DOWN if fields[WHICH] == "S" else RAW_UP


def _sample(fields: list[str]) -> Sample:
    since = datetime.datetime.fromisoformat(f"{fields[0]}+00:00") - datetime.datetime.fromtimestamp(
        0, datetime.UTC
    )
    down = fields[WHICH] == "S"
    raw_us = float(fields[_raw(fields)]) * 1e6
    return Sample(
        since // datetime.timedelta(microseconds=1) * 1000,
        float(fields[OFFSET]) * 1e6,
        raw_us if down else None,
        None if down else raw_us,
    )
