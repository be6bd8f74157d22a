"""ptp4l as a ptp workload: how it is started, what pmc shows of a slave's events, and what is
measured of them.

The golden files are of Figure 5's contended arm: a link that is full delays messages in both
directions.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from qjump_mn import resolve
from qjump_mn.analysis import measures as measured
from qjump_mn.errors import LostError, UsageError
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.ptp import program as ptp
from qjump_mn.programs.ptp import ptp4l
from qjump_mn.programs.ptp.plan import PtpPlan
from qjump_mn.programs.ptp.program import launches
from qjump_mn.programs.ptp.ptp4l import DELAY, STATUS, SYNC
from qjump_mn.results import tables

GOLDEN = Path(__file__).parents[2] / "qjump_mn/programs/ptp/golden"
TEXT = (GOLDEN / "ptp4l-pmc.txt").read_text()

PLAN = resolve.plan("fig5", "smoke", ["workloads.ptp.implementation=ptp4l"])
TRIAL = next(trial for trial in PLAN.trials() if trial.arm.name == "contended")
WORKLOAD = next(workload for workload in TRIAL.arm.workloads if isinstance(workload, PtpPlan))

RECORD = re.compile(r"(?m)^\t\S.*\n(?:\t\t.*\n)+")


def table(text: str = TEXT) -> pa.Table:
    return pa.table(
        dict(ptp.columns(WORKLOAD, TRIAL, {"ptp-h9.pmc.txt": text}.__getitem__)),
        schema=tables.schema(WORKLOAD),
    )


def without(kind: str, number: int) -> str:
    """What pmc would have shown if it had missed a message."""
    found = next(
        record[0]
        for record in RECORD.finditer(TEXT)
        if f" seq {number} " in record[0] and f" {kind} " in record[0]
    )
    return TEXT.replace(found, "")


def test_every_message_is_in_the_column_of_its_direction() -> None:
    samples = ptp4l.parse(TEXT)
    assert len(samples) == TEXT.count(SYNC) + TEXT.count(DELAY)
    assert samples[0] == (1767225634_779208940, None, None, 340.781), (
        "before the first offset that pmc was told of"
    )
    assert samples[3] == (1767225635_786271074, 3053.429, 32429.544, None), (
        "its own offset, and how long it was under way"
    )
    assert samples[4] == (1767225636_314507148, 3053.429, None, 131545.922), (
        "between Syncs the slave believes in the last offset"
    )
    assert all(
        (sample.master_to_slave_us is None) != (sample.slave_to_master_us is None)
        for sample in samples
    )


def test_an_offset_is_the_time_of_a_sync_less_the_median_of_ten_delays() -> None:
    """So nothing is between the table and what ptp4l was told: its offset follows from the columns
    to the nanosecond."""
    seen: list[float] = []
    sync_us, compared = None, 0
    for sample in ptp4l.parse(TEXT):
        if sample.slave_to_master_us is not None and sync_us is not None:
            seen.append((sync_us + sample.slave_to_master_us) / 2)
        elif sample.master_to_slave_us is not None:
            sync_us = sample.master_to_slave_us
            if len(seen) >= 10:
                assert sample.offset_us == pytest.approx(
                    sync_us - statistics.median(seen[-10:]), abs=0.002
                )
                compared += 1
    assert compared == 6


def test_offsets_equal_those_that_the_slave_prints() -> None:
    """By default it prints every other offset; pmc has all."""
    printed = [
        int(ns) / 1e3
        for ns in re.findall(r"master offset +(-?\d+) ", (GOLDEN / "ptp4l-slave.txt").read_text())
    ]
    told = [
        sample.offset_us for sample in ptp4l.parse(TEXT) if sample.master_to_slave_us is not None
    ]
    assert len(printed) == 8 and set(printed[1:]) < set(told)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda text: "", "was cut off"),
        (lambda text: text[:-1], "was cut off"),
        (
            lambda text: text[: text.rindex("\t\tsyncEventIngressTimestamp")],
            "has no syncEventIngressTimestamp: it was cut off",
        ),
        (
            lambda text: text[: text.rindex("\t\tingress_time")],
            "has no ingress_time: it was cut off",
        ),
        (
            lambda text: text.replace("delayOriginTimestamp", "originTimestamp"),
            "is not linuxptp 4.2's",
        ),
        (lambda text: text.replace("SLAVE_", "CLIENT_"), "heard no master"),
        (lambda text: text[: text.index("\t020000.fffe.000009-0 seq 1 ")], "heard no master"),
        (lambda text: without(SYNC, 6), f"no {SYNC} between numbers 5 and 7"),
        (lambda text: without(DELAY, 6), f"no {DELAY} between numbers 5 and 7"),
        (lambda text: without(STATUS, 6), f"no {STATUS} between numbers 5 and 7"),
    ],
)
def test_incomplete_output_is_lost(damage: Callable[[str], str], sentence: str) -> None:
    with pytest.raises(LostError, match=sentence):
        ptp4l.parse(damage(TEXT))


def test_values_use_only_the_measurement() -> None:
    samples = ptp4l.parse(TEXT)
    began = samples[3].at_ns + 1
    facts = TrialFacts(cpu_busy=0.1, window_s=(3.0, 13.0), began_ns=0, began_utc_ns=began)
    values = measured.values(WORKLOAD, table(), TRIAL, facts)
    assert tuple(values) == tuple(WORKLOAD.MEASURES)
    inside = [sample for sample in samples if began <= sample.at_ns < began + TRIAL.duration_ns]
    assert 3 < values["samples"] == len(inside) < len(samples)
    assert values["delay_max_ms"] == pytest.approx(184.899, abs=0.001)
    offsets = [sample.offset_us or 0 for sample in inside if sample.slave_to_master_us is None]
    assert values["offset_rms_ms"] == pytest.approx(
        (sum(offset**2 for offset in offsets) / len(offsets)) ** 0.5 / 1e3
    )


def test_a_slave_without_an_offset_yet_has_delays_all_the_same() -> None:
    """Before its first offset ptp4l tells of messages, but not of a status."""
    text = TEXT[: TEXT.index(f"\t020000.fffe.000009-0 seq 0 RESPONSE MANAGEMENT {STATUS}")]
    facts = TrialFacts(
        cpu_busy=0.1, window_s=(3.0, 13.0), began_ns=0, began_utc_ns=ptp4l.parse(text)[0].at_ns
    )
    values = measured.values(WORKLOAD, table(text), TRIAL, facts)
    assert set(values) == {"samples", "delay_p50_ms", "delay_p99_ms", "delay_max_ms"}
    assert values["samples"] == 4


def test_pmc_starts_after_its_slave() -> None:
    started = list(launches(WORKLOAD, TRIAL))
    master, slave, pmc = started
    assert [(launch.host, launch.phase, launch.itself, launch.preload) for launch in started] == [
        (host, "serve", False, None) for host in ("h6", "h9", "h9")
    ]
    assert "--serverOnly=1" in master.argv and "--clientOnly=1" in slave.argv
    assert slave.argv[-2:] == ("-i", "h9-eth0.2")
    assert "--slave_event_monitor=h9.pmc" in slave.argv and pmc.argv[-2:] == ("-i", "h9.pmc")
    assert "--uds_address=h9.ptp4l" in slave.argv and "h9.ptp4l" in pmc.argv
    sockets = [
        word for launch in (master, slave) for word in launch.argv if word.startswith("--uds")
    ]
    assert len(set(sockets)) == 4, "hosts share a file system"
    for launch, golden in (
        (master, "ptp4l-master.txt"),
        (slave, "ptp4l-slave.txt"),
        (pmc, "ptp4l-pmc.txt"),
    ):
        assert launch.says and launch.says in (GOLDEN / golden).read_text()


def test_ptpd_is_the_default_and_others_are_refused() -> None:
    described = {workload.describe() for workload in TRIAL.arm.workloads}
    assert "ptp4l, master h6, slave h9, a Sync every second, no clock adjusted" in described
    default = resolve.plan("fig5", "smoke", []).trials()[0].arm.workloads
    assert (
        next(workload for workload in default if isinstance(workload, PtpPlan)).implementation
        == "ptpd"
    )
    with pytest.raises(UsageError, match="implementation"):
        resolve.plan("fig5", "smoke", ["workloads.ptp.implementation=chrony"])
