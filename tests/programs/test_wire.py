"""No latency may be shorter than what the wire takes: on what real programs left, and on round
trips that were halved."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from qjump_mn import resolve
from qjump_mn.analysis import fidelity, pipeline, waits
from qjump_mn.model.plan import Trial
from qjump_mn.programs import registry
from qjump_mn.programs.facts import Check
from qjump_mn.results import tables
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import TrialRecord
from tests.support import synthetic

PROGRAMS = Path(__file__).parents[2] / "qjump_mn/programs"


def trial(experiment: str, arm: str, *settings: str) -> Trial:
    return next(
        one
        for one in resolve.plan(experiment, "smoke", list(settings)).trials()
        if one.arm.name == arm
    )


FANIN = (
    "workloads.urgent.flows=h1>h11,h2>h11",
    "workloads.urgent.streams=2",
    "duration=300ms",
    'sweeps.epoch.values=["2ms","25ms"]',
)


@pytest.mark.parametrize(
    ("program", "experiment", "arm", "settings"),
    [
        ("barrier", "fig3c", "contended", ()),
        ("fanin", "fig11", "levels_25ms", FANIN),
        ("memcached", "fig3b", "contended", ("duration=5s",)),
    ],
)
def test_what_a_real_program_measured_is_not_shorter(
    program: str, experiment: str, arm: str, settings: tuple[str, ...]
) -> None:
    of = trial(experiment, arm, *settings)
    workload = next(one for one in of.arm.workloads if registry.of(one).name == program)
    table = tables.table(workload, of, PROGRAMS / program / "golden")
    wire = registry.measures(workload).wire
    assert wire is not None
    latencies = wire(table, workload, of)
    assert latencies is not None and latencies.measured_us.shape == latencies.least_us.shape == (
        table.num_rows,
    )
    quickest = np.nanmin(latencies.measured_us / latencies.least_us)
    assert 1 <= quickest < 6, "the quickest is near the least, so that the check sees something"


def test_what_a_slave_measured_is_not_shorter(tmp_path: Path) -> None:
    """ptpd's golden output is of two hosts without a switch: it says nothing of a path."""
    of = trial("fig5", "contended", "workloads.ptp.implementation=ptp4l")
    workload = next(one for one in of.arm.workloads if registry.of(one).name == "ptp")
    (slave, _), *_ = workload.flows
    workload = msgspec.structs.replace(workload, flows=workload.flows[:1])
    (tmp_path / f"{workload.name}-{slave}.pmc.txt").write_text(
        (PROGRAMS / "ptp/golden/ptp4l-pmc.txt").read_text()
    )
    table = tables.table(workload, of, tmp_path)
    wire = registry.measures(workload).wire
    latencies = wire(table, workload, of) if wire else None
    assert latencies is not None
    assert np.nanmin(latencies.measured_us - latencies.least_us) > -waits.CLOCK_US


def wire_check(run: RunDirectory) -> Check:
    manifest = run.manifest
    data, missing = pipeline.read_trials(run, manifest)
    return next(
        check for check in fidelity.checks(run, manifest, data, missing) if check.name == "wire"
    )


def halve_round_trips(run: RunDirectory) -> None:
    """As somebody would who also enters the new hashes."""
    for one in run.manifest.plan.trials():
        for path in run.raw(one.name).glob("*.ping.txt"):
            halved = re.sub(
                r"time=([\d.]+) ms",
                lambda match: f"time={float(match[1]) / 2:.3f} ms",
                path.read_text(),
            )
            path.write_text(halved)
        run.finish(one.name, TrialRecord(status="done", exit_code=0, virtual_s=9.5, wall_s=6.25))


def test_halved_round_trips_make_the_run_invalid(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path)
    assert wire_check(run).status == "pass"
    halve_round_trips(run)
    check = wire_check(run)
    assert check.status == "fail"
    assert re.search(
        r"idle/1: 400 of 400 latencies of ping are shorter than the wire allows, such as",
        check.text,
    )
    analysed = pipeline.analyse(run.path)
    assert analysed.outcome.exit_code == 4
    assert {row.verdict for row in analysed.outcome.verdicts} == {"INVALID"}


def test_numbers_that_differ_are_printed_apart() -> None:
    assert fidelity.apart(6.7986, 6.8) == ("6.799", "6.800")
    assert fidelity.apart(2.1, 6.8) == ("2.1", "6.8")


def test_only_wires_of_the_virtual_clock_are_so_exact(tmp_path: Path) -> None:
    for run in (
        synthetic.make(tmp_path / "real", clock="real"),
        synthetic.make(tmp_path / "htb", settings=["link.model=htb"]),
    ):
        halve_round_trips(run)
        assert wire_check(run).status == "unknown"


def test_what_ping_rounds_is_not_too_short() -> None:
    of = trial("fig3a", "idle")
    (workload,) = of.arm.workloads
    table = pa.table(
        {"flow": [">".join(workload.flows[0])] * 3, "latency_us": [774.0, 2000.0, None]}
    )
    wire = registry.measures(workload).wire
    latencies = wire(table, workload, of) if wire else None
    assert latencies is not None
    assert latencies.measured_us[:2].tolist() == [774, pytest.approx(2010)] and np.isnan(
        latencies.measured_us[2]
    )
