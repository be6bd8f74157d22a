"""ptpd as a workload: what is refused, how it is started, what a slave's statistics say, and what
is measured of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from qjump_mn import resolve
from qjump_mn.analysis import measures as measured
from qjump_mn.errors import LostError, UsageError
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.ptp import program as ptp
from qjump_mn.programs.ptp import ptpd
from qjump_mn.programs.ptp.plan import PtpPlan
from qjump_mn.programs.ptp.program import launches
from qjump_mn.results import tables

TEXT = (Path(__file__).parents[2] / "qjump_mn/programs/ptp/golden/ptpd-slave.csv").read_text()
SECOND = 1767225600 + 20
"""When that slave began to follow: 2026-01-01 00:00:20."""

PLAN = resolve.plan("fig5", "smoke", [])
TRIAL = next(trial for trial in PLAN.trials() if trial.arm.name == "qjump")
WORKLOAD = next(workload for workload in TRIAL.arm.workloads if isinstance(workload, PtpPlan))


def table(text: str = TEXT) -> pa.Table:
    return pa.table(
        dict(ptp.columns(WORKLOAD, TRIAL, lambda name: text)), schema=tables.schema(WORKLOAD)
    )


def test_every_message_is_in_the_column_of_its_direction() -> None:
    samples = ptpd.parse(TEXT)
    assert (
        len(samples) == sum(", S, " in line or ", D, " in line for line in TEXT.splitlines()) == 42
    )
    sync, request = samples[0], samples[2]
    assert (sync.at_ns, sync.slave_to_master_us) == (SECOND * 10**9 + 217_830_000, None)
    assert [sync.offset_us, sync.master_to_slave_us] == pytest.approx([92.203, 184.406])
    assert (request.at_ns, request.master_to_slave_us) == (SECOND * 10**9 + 1_218_180_000, None)
    assert [request.offset_us, request.slave_to_master_us] == pytest.approx([136.216, 203.714])
    assert all(
        (sample.master_to_slave_us is None) != (sample.slave_to_master_us is None)
        for sample in samples
    )
    assert max(sample.slave_to_master_us or 0 for sample in samples[3:]) < 78, (
        "what the slave sent met no load"
    )
    assert max(sample.master_to_slave_us or 0 for sample in samples) == pytest.approx(
        123_006.271
    ), "what the master sent met 2 s of it"


def test_an_answer_before_the_first_sync_has_no_delay() -> None:
    first, *rest = (line for line in TEXT.splitlines() if ", S, " in line or ", D, " in line)
    fields = first.split(", ")
    fields[8] = "D"
    fields[15:] = [" 0.000000000", " 0.000000000"]
    unknown = TEXT.replace(first, ", ".join(fields))
    assert unknown != TEXT
    assert ptpd.parse(unknown) == ptpd.parse(TEXT)[1:]
    assert len(rest) == 41


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda text: "", "were cut off"),
        (lambda text: text[: len(text) // 2], "were cut off"),
        (lambda text: text.rpartition("2026-")[0], "were cut off"),
        (lambda text: text.replace(" S, ", " I, ").replace(" D, ", " I, "), "heard no master"),
    ],
)
def test_incomplete_statistics_are_lost(damage: Callable[[str], str], sentence: str) -> None:
    with pytest.raises(LostError, match=sentence):
        ptpd.parse(damage(TEXT))


def test_values_use_only_the_measurement() -> None:
    began = (SECOND + 10) * 10**9 + 250_000_000
    facts = TrialFacts(cpu_busy=0.1, window_s=(3.0, 13.0), began_ns=0, began_utc_ns=began)
    values = measured.values(WORKLOAD, table(), TRIAL, facts)
    assert tuple(values) == tuple(WORKLOAD.MEASURES)
    inside = [
        sample for sample in ptpd.parse(TEXT) if began <= sample.at_ns < began + TRIAL.duration_ns
    ]
    assert values["samples"] == len(inside) == 17
    assert values["delay_max_ms"] == pytest.approx(123.006, abs=0.001)
    assert values["delay_p50_ms"] == pytest.approx(0.088029, abs=1e-6), "the ninth of 17"
    assert values["offset_max_ms"] == pytest.approx(119.260256)
    assert values["offset_min_ms"] == pytest.approx(-13.247911)
    offsets = [sample.offset_us or 0 for sample in inside if sample.slave_to_master_us is None]
    assert len(offsets) == 10
    assert values["offset_rms_ms"] == pytest.approx(
        (sum(offset**2 for offset in offsets) / 10) ** 0.5 / 1e3
    )
    assert values["offset_mean_ms"] == pytest.approx(sum(offsets) / 10 / 1e3)


def test_values_without_messages_have_only_samples() -> None:
    facts = TrialFacts(cpu_busy=0.1, window_s=(3.0, 13.0), began_ns=0, began_utc_ns=0)
    assert measured.values(WORKLOAD, table(), TRIAL, facts) == {"samples": 0}


def test_slave_is_ready_once_it_follows() -> None:
    master, slave = launches(WORKLOAD, TRIAL)
    assert (master.host, slave.host) == ("h6", "h9")
    assert {launch.phase for launch in (master, slave)} == {"serve"}
    assert {launch.preload for launch in (master, slave)} == {"libptpstamps.so"}
    assert {launch.program for launch in (master, slave)} == {"ptpd"}, (
        "in messages: not env, which sets the time zone"
    )
    assert "-M" in master.argv and "-s" in slave.argv
    assert slave.argv[-2:] == ("-i", "h9-eth0.2")
    assert "--global:statistics_file=ptp-h9.ptpd.csv" in slave.argv
    assert slave.says == "Now in state: PTP_SLAVE"


def test_analytic_time_is_that_of_an_idle_network() -> None:
    wire_us = (8 + 14 + 4 + 20 + 8 + 44 + 4) * 8 / 10
    assert PLAN.judged.constants["ptp_analytic_ms"] == pytest.approx(4 * wire_us / 1e3)
    assert PLAN.judged.constants["ptp_busy_ports"] == 2, (
        "s2 to s0 and s0 to s1, on the way there only"
    )
    assert PLAN.judged.constants["memcached_busy_ports"] == 4


def test_two_masters_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"workloads.ptp.flows: there are 2 masters: give all slaves the same"
    ):
        resolve.plan("fig5", "smoke", ["workloads.ptp.flows=h9>h6,h3>h11"])
    assert resolve.plan("fig5", "smoke", ["workloads.ptp.flows=h9>h6,h3>h6"]).trials()
