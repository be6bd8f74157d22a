"""Start ptpd, and parse a slave's statistics."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import NamedTuple

from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.ptp.plan import PtpPlan

PRELOAD = "libptpstamps.so"
"""Keeps ptpd from spinning (native/ptp-stamps)."""

READY_S = 30.0
"""A slave looks for masters for 10 s, then waits for their next Announce: 14 s in total."""

# ptpd 2.3.1: in the foreground, without lock files, messages on its output, no clock adjusted. Its
# statistics have local time.
PTPD = (
    "env",
    "TZ=UTC0",
    "ptpd",
    "-C",
    "-L",
    "-E",
    "--clock:no_adjust=y",
    "--ptpengine:ip_mode=hybrid",
)
SLAVE = (
    "-s",
    "--global:log_statistics=Y",
)

FIELDS = 17
STATE, OFFSET, WHICH, RAW_DOWN, RAW_UP = 1, 4, 8, 15, 16
"""Fields of a line of statistics. ``WHICH`` is the message's kind: S(ync), D(elay), or I(nitial)
for none."""


class Sample(NamedTuple):
    """One message: when (ns since 1970), the slave's offset at that time, and the delay, in the
    column of its direction."""

    at_ns: int
    offset_us: float | None
    master_to_slave_us: float | None
    slave_to_master_us: float | None


def output_name(plan: PtpPlan, host: str, ending: str) -> str:
    """A raw file: "txt" is ptpd's output, "csv" a slave's statistics."""
    return f"{plan.name}-{host}.ptpd.{ending}"


def launches(plan: PtpPlan, trial: Trial) -> Iterator[Launch]:
    """The master, and every slave, which is ready once it follows the master."""

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

    pace = tuple(
        f"--ptpengine:log_{kind}_interval={plan.log_interval}" for kind in ("sync", "delayreq")
    )
    # Defaults are a second, for a master and for a slave's first request. Until that is answered,
    # the slave's offset contains the whole delay of a Sync.
    master_pace, slave_pace = pace if plan.log_interval else (), pace
    if plan.log_interval:
        slave_pace = (*pace, f"--ptpengine:log_delayreq_interval_initial={plan.log_interval}")
    yield ptpd(
        plan.master,
        (*PTPD, "-M", *master_pace, *device(plan.master)),
        "Now in state: PTP_LISTENING",
    )
    for slave, _ in plan.flows:
        statistics = f"--global:statistics_file={output_name(plan, slave, 'csv')}"
        argv = (*PTPD, *SLAVE, *slave_pace, statistics, *device(slave))
        yield ptpd(slave, argv, "Now in state: PTP_SLAVE")


def samples(plan: PtpPlan, slave: str, read: Callable[[str], str]) -> list[Sample]:
    """Every message of a slave."""
    return parse(read(output_name(plan, slave, "csv")))


def parse(text: str) -> list[Sample]:
    """Every message in a slave's statistics; raise :class:`LostError` if they are incomplete or
    have none."""
    lines = [
        [field.strip() for field in line.split(",")]
        for line in text.splitlines()
        if not line.startswith("#")
    ]
    if not lines or not text.endswith("\n") or lines[-1][STATE : STATE + 1] != ["dsbl"]:
        raise LostError("ptpd's statistics have no last line: they were cut off")
    messages = [fields for fields in lines if len(fields) == FIELDS and fields[WHICH] in ("S", "D")]
    samples = [_sample(fields) for fields in messages if float(fields[_raw(fields)])]
    if not samples:
        raise LostError("ptpd's statistics have no message: the slave heard no master")
    return samples


def _raw(fields: list[str]) -> int:
    """The field with a message's delay. It is 0 if there is none: before its first Sync, a slave
    cannot compare an answer with anything, but ptpd 2.3.1 writes the line."""
    return RAW_DOWN if fields[WHICH] == "S" else RAW_UP


def _sample(fields: list[str]) -> Sample:
    epoch = datetime.datetime.fromtimestamp(0, datetime.UTC)
    since_epoch = datetime.datetime.fromisoformat(f"{fields[0]}+00:00") - epoch
    is_sync = fields[WHICH] == "S"
    delay_us = float(fields[_raw(fields)]) * 1e6
    return Sample(
        since_epoch // datetime.timedelta(microseconds=1) * 1000,
        float(fields[OFFSET]) * 1e6,
        delay_us if is_sync else None,
        None if is_sync else delay_us,
    )
