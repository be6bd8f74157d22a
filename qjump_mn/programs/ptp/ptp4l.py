"""Start ptp4l, and parse a slave's timing events, which pmc prints with all times verbatim."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from qjump_mn.errors import LostError
from qjump_mn.model.plan import Trial
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.ptp.plan import PtpPlan
from qjump_mn.programs.ptp.ptpd import Sample

READY_S = 40.0
"""A master waits 6 to 8 s for a better one; a slave waits for two Announces, 2 s apart, then for
its first offset: 14 s in total."""

# linuxptp 4.2: stamps by the kernel, messages on standard output only, no clock adjusted. By
# default a Sync and a Delay_Req every second; Delay_Req go to the master alone, like ptpd's. It
# waits for the sending time before it does anything else: by default for 1 ms, less than an epoch.
PTP4L = (
    "ptp4l",
    "-4",
    "-S",
    "-m",
    "-q",
    "--free_running=1",
    "--hybrid_e2e=1",
    "--tx_timestamp_timeout=1000",
)

# pmc ends when its input ends, so its input is a pipe that it holds open itself. With no hops ("-b
# 0") it does not ask the master.
INPUT = ("sh", "-c", 'mkfifo $$ && exec <>$$ && rm $$ && echo "$0" >&0 && exec "$@"')
SUBSCRIBE = (
    "SET SUBSCRIBE_EVENTS_NP duration 65535 NOTIFY_PORT_STATE off NOTIFY_TIME_SYNC on "
    "NOTIFY_PARENT_DATA_SET off"
)

SYNC, DELAY, STATUS = "SLAVE_RX_SYNC_TIMING_DATA", "SLAVE_DELAY_TIMING_DATA_NP", "TIME_STATUS_NP"


class Event(NamedTuple):
    """What pmc prints for one message: its number among those of its kind, and its fields."""

    number: int
    kind: str
    fields: dict[str, str]

    def ns(self, name: str) -> int:
        """A time or an interval, in ns; raise :class:`LostError` if the field is missing."""
        number = re.fullmatch(r"(-?\d+)(?:\.(\d{9}))?", self.fields.get(name, ""))
        if not number:
            raise LostError(
                f"pmc's {self.kind} has no {name}: it was cut off, or is not linuxptp 4.2's"
            )
        return int(number[1] + (number[2] or ""))


def output_name(plan: PtpPlan, host: str, program: str) -> str:
    """The raw file of ``program`` on ``host``; pmc's has a slave's events."""
    return f"{plan.name}-{host}.{program}.txt"


def launches(plan: PtpPlan, trial: Trial) -> Iterator[Launch]:
    """The master; every slave, which is ready once it follows; and for each slave a pmc that
    receives its events."""

    def ptp4l(host: str, options: tuple[str, ...], says: str) -> Launch:
        # Sockets lie in the trial's folder and have the host's name, because hosts share a file
        # system.
        sockets = (f"--uds_address={host}.ptp4l", f"--uds_ro_address={host}.ptp4l-ro")
        argv = (*PTP4L, *options, *sockets, "-i", f"{host}-eth0.{trial.network.vlan}")
        return Launch(
            "serve",
            host,
            argv,
            output_name(plan, host, "ptp4l"),
            says=says,
            ready_s=READY_S,
            itself=False,
        )

    pace = tuple(
        f"--{option}Interval={plan.log_interval}" for option in ("logSync", "logMinDelayReq")
    )
    pace = pace if plan.log_interval else ()
    yield ptp4l(plan.master, ("--serverOnly=1", *pace), "assuming the grand master role")
    for slave, _ in plan.flows:
        yield ptp4l(
            slave, ("--clientOnly=1", *pace, f"--slave_event_monitor={slave}.pmc"), "master offset"
        )
        argv = (
            *INPUT,
            SUBSCRIBE,
            "pmc",
            "-u",
            "-b",
            "0",
            "-s",
            f"{slave}.ptp4l",
            "-i",
            f"{slave}.pmc",
        )
        yield Launch(
            "serve",
            slave,
            argv,
            output_name(plan, slave, "pmc"),
            says="NOTIFY_TIME_SYNC       on",
            itself=False,
        )


def samples(plan: PtpPlan, slave: str, read: Callable[[str], str]) -> list[Sample]:
    """Every message of a slave."""
    return parse(read(output_name(plan, slave, "pmc")))


def parse(text: str) -> list[Sample]:
    """Every message in pmc's output; raise :class:`LostError` if it is incomplete or has none."""
    if not text.endswith("\n"):
        raise LostError("pmc's output was cut off within a line")
    all_events = events(text)
    offsets = {
        event.ns("ingress_time"): event.ns("master_offset") / 1e3
        for event in all_events
        if event.kind == STATUS
    }
    samples, offset_us = [], None
    for event in all_events:
        if event.kind == STATUS:
            continue
        is_sync = event.kind == SYNC
        sent, received = (
            ("syncOriginTimestamp", "syncEventIngressTimestamp")
            if is_sync
            else ("delayOriginTimestamp", "delayResponseTimestamp")
        )
        at_ns = event.ns(received)
        delay_us = (at_ns - event.ns(sent) - event.ns("totalCorrectionField")) / 1e3
        offset_us = offsets.get(at_ns) if is_sync else offset_us
        samples.append(
            Sample(at_ns, offset_us, delay_us if is_sync else None, None if is_sync else delay_us)
        )
    if not samples:
        raise LostError("pmc's output has no message: the slave heard no master")
    return samples


def events(text: str) -> list[Event]:
    """Every event in pmc's output; raise :class:`LostError` if one is missing."""
    events: list[Event] = []
    for line in text.splitlines():
        head = re.fullmatch(
            rf"\t\S+ seq (\d+) \S+ (?:MANAGEMENT )?({SYNC}|{DELAY}|{STATUS})(?: N \d+)? ?", line
        )
        if head:
            events.append(Event(int(head[1]), head[2], {}))
        elif line.startswith("\t\t") and events:
            name, _, value = line.strip().partition(" ")
            events[-1].fields[name] = value.strip()
    last: dict[str, int] = {}
    for event in events:
        if event.number != (last.get(event.kind, event.number - 1) + 1) % 65536:
            raise LostError(
                f"pmc's output has no {event.kind} between numbers {last[event.kind]} and "
                f"{event.number}"
            )
        last[event.kind] = event.number
    return events
