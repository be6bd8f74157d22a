"""ptp4l: how it is started, and what a slave has measured, from the events that it tells pmc of, all times
verbatim."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from qjump_mn.errors import LostError
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.ptp.ptpd import Sample

if TYPE_CHECKING:
    from qjump_mn.model.plan import Trial
    from qjump_mn.programs.ptp.plan import PtpPlan

READY_S = 40.0
"""A master waits 6 to 8 s for a better one, a slave for two Announces, 2 s apart, then for what its first
offset needs: 14 s in all."""

# linuxptp 4.2: stamps by the kernel, on standard output only; no clock is touched. A Sync every second is its
# default, and a Delay_Req; these go to the master alone, as ptpd's. It waits for the time of sending before
# it does anything else: by default for 1 ms, less than an epoch.
PTP4L = ("ptp4l", "-4", "-S", "-m", "-q", "--free_running=1", "--hybrid_e2e=1", "--tx_timestamp_timeout=1000")

# pmc reads commands until its input ends, and with it ends itself: its input is a pipe that it holds open. No
# hop: the master is not asked.
INPUT = ("sh", "-c", 'mkfifo $$ && exec <>$$ && rm $$ && echo "$0" >&0 && exec "$@"')
SUBSCRIBE = (
    "SET SUBSCRIBE_EVENTS_NP duration 65535 NOTIFY_PORT_STATE off NOTIFY_TIME_SYNC on NOTIFY_PARENT_DATA_SET "
    "off"
)

SYNC, DELAY, STATUS = "SLAVE_RX_SYNC_TIMING_DATA", "SLAVE_DELAY_TIMING_DATA_NP", "TIME_STATUS_NP"


class Event(NamedTuple):
    """What pmc shows of one message: its number among those of its kind, and its fields."""

    number: int
    kind: str
    fields: dict[str, str]

    def ns(self, name: str) -> int:
        """A time or an interval, in ns; raise :class:`LostError` where there is none."""
        number = re.fullmatch(r"(-?\d+)(?:\.(\d{9}))?", self.fields.get(name, ""))
        if not number:
            raise LostError(
                f"pmc's {self.kind} has no {name}: it was cut off, or is not as linuxptp 4.2 has it"
            )
        return int(number[1] + (number[2] or ""))


def output_name(plan: PtpPlan, host: str, program: str) -> str:
    """A raw file: what ``program`` says on ``host``; pmc has a slave's events."""
    return f"{plan.name}-{host}.{program}.txt"


def launches(plan: PtpPlan, trial: Trial) -> Iterator[Launch]:
    """The master; every slave, which is ready when it follows, and behind it what hears of its events."""

    def ptp4l(host: str, options: tuple[str, ...], says: str) -> Launch:
        # Sockets in the folder where it runs, of which every trial has its own, each with the host's name:
        # hosts share a file system.
        sockets = (f"--uds_address={host}.ptp4l", f"--uds_ro_address={host}.ptp4l-ro")
        argv = (*PTP4L, *options, *sockets, "-i", f"{host}-eth0.{trial.network.vlan}")
        return Launch(
            "serve", host, argv, output_name(plan, host, "ptp4l"), says=says, ready_s=READY_S, itself=False
        )

    pace = tuple(f"--{what}Interval={plan.log_interval}" for what in ("logSync", "logMinDelayReq"))
    pace = pace if plan.log_interval else ()
    yield ptp4l(plan.master, ("--serverOnly=1", *pace), "assuming the grand master role")
    for slave, _ in plan.flows:
        yield ptp4l(slave, ("--clientOnly=1", *pace, f"--slave_event_monitor={slave}.pmc"), "master offset")
        argv = (*INPUT, SUBSCRIBE, "pmc", "-u", "-b", "0", "-s", f"{slave}.ptp4l", "-i", f"{slave}.pmc")
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
    """Every message of which pmc was told; raise :class:`LostError` if its output is not whole, or has
    none."""
    if not text.endswith("\n"):
        raise LostError("pmc's output was cut off within a line")
    every = events(text)
    offsets = {
        event.ns("ingress_time"): event.ns("master_offset") / 1e3 for event in every if event.kind == STATUS
    }
    samples, offset_us = [], None
    for event in every:
        if event.kind == STATUS:
            continue
        sync = event.kind == SYNC
        sent, received = (
            ("syncOriginTimestamp", "syncEventIngressTimestamp")
            if sync
            else ("delayOriginTimestamp", "delayResponseTimestamp")
        )
        at_ns = event.ns(received)
        took_us = (at_ns - event.ns(sent) - event.ns("totalCorrectionField")) / 1e3
        offset_us = offsets.get(at_ns) if sync else offset_us
        samples.append(Sample(at_ns, offset_us, took_us if sync else None, None if sync else took_us))
    if not samples:
        raise LostError("pmc was told of no message: the slave has heard no master")
    return samples


def events(text: str) -> list[Event]:
    """What a slave told of; raise :class:`LostError` where one of its messages is missing."""
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
                f"pmc's output has no {event.kind} between numbers {last[event.kind]} and {event.number}"
            )
        last[event.kind] = event.number
    return events
