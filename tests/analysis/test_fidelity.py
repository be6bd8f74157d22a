"""Each check of fidelity at its limit, on numbers small enough to count."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from qjump_mn import theory
from qjump_mn.analysis import fidelity
from qjump_mn.analysis.fidelity import LATEST_US, MOST_CPU
from qjump_mn.errors import LostError
from qjump_mn.links.base import Wait
from qjump_mn.model import guarantee
from qjump_mn.model.guarantee import Bounds, Unknown
from qjump_mn.programs import counters, registry
from qjump_mn.programs.facts import Check, TrialFacts
from qjump_mn.resolve import plan
from qjump_mn.results import asbuilt, links

PLAN = plan("fig3a", "smoke", [], only=["idle", "qjump"])
TRIALS = PLAN.trials()


def manifest(clock: str = "virtual", backend: str = "guest") -> Any:
    return SimpleNamespace(clock=clock, backend=backend, plan=PLAN, trials={})


def tables(
    busy: float = 0.1,
    late_us: float | None = None,
    *,
    trial: Any = TRIALS[0],
    real: bool = False,
    seconds: float = 1,
) -> Any:
    late = None if late_us is None else {"p50": 0.0, "p99": late_us, "max": 1e9}
    facts = TrialFacts(busy, (0, seconds), 0, 0, cpu_late_us=late)
    arm = msgspec.structs.replace(trial.arm, real_time=real or None)
    return SimpleNamespace(
        trial=SimpleNamespace(name=trial.name, arm=arm, network=arm.network), facts=facts
    )


@pytest.mark.parametrize(
    ("data", "clock", "status", "text"),
    [
        ([], "virtual", "unknown", "no trial says how busy the CPU was"),
        (
            [tables(0.1), tables(0.6999, trial=TRIALS[1])],
            "virtual",
            "pass",
            "the virtual CPU was at most 70% busy (qjump/1); nothing was late, by construction",
        ),
        ([tables(0.5)], "real", "pass", "the CPU was at most 50% busy (idle/1)"),
        (
            [tables(0.1, 30.0), tables(0.1, LATEST_US - 1, real=True)],
            "real",
            "pass",
            "the CPU was at most 10% busy (idle/1); 99 wake-ups of a hundred were at most 5 ms late",
        ),
        (
            [tables(MOST_CPU)],
            "real",
            "fail",
            "idle/1: 70% busy, 70% is the most: lower link.rate or the load",
        ),
        (
            [tables(0.1, LATEST_US)],
            "real",
            "fail",
            "idle/1: one wake-up of a hundred is 5 ms late or more, 5 ms is the most: lower "
            "link.rate or the load",
        ),
        (
            [tables(real=True)],
            "real",
            "fail",
            "idle/1: trial.json does not say how late programs got the CPU",
        ),
    ],
)
def test_cpu_fails_from_its_limits_on(data: Any, clock: str, status: str, text: str) -> None:
    found = fidelity._cpu(manifest(clock), data)
    assert (found.name, found.status, found.text) == ("CPU", status, text)


@pytest.mark.parametrize(
    ("shares", "seconds", "status", "text"),
    [
        ([1.0], 0.0625, "pass", "at most 0% busy (idle/1)"),
        ([1.0, 0.25], 0.0625, "pass", "at most 62% busy (2 short trials)"),
        ([1.0, 0.5], 0.0625, "fail", "2 short trials: 75% busy, 70% is the most"),
        ([1.0, 0.25], 0.125, "fail", "idle/1: 100% busy, 70% is the most"),
    ],
)
def test_trials_of_a_few_ticks_are_judged_together(
    shares: list[float], seconds: float, status: str, text: str
) -> None:
    data = [
        tables(share, trial=trial, seconds=seconds)
        for share, trial in zip(shares, TRIALS, strict=False)
    ]
    found = fidelity._cpu(manifest(), data)
    assert found.status == status and text in found.text


@pytest.mark.parametrize(
    ("one", "other", "texts"),
    [
        (6.8, 6.9, ("6.8", "6.9")),
        (6.7991, 6.8, ("6.799", "6.800")),
        (1.0, 1.0, ("1.0", "1.0")),
        (1.0, 1.0 + 2**-52, ("1.0", "1.0000000000000002")),
    ],
)
def test_apart_has_as_many_digits_as_differ(
    one: float, other: float, texts: tuple[str, str]
) -> None:
    assert fidelity.apart(one, other) == texts


def test_complete_counts_missing_trials_and_no_claim_is_invalid_for_them() -> None:
    assert fidelity._complete(PLAN, {}) == Check(
        name="complete", status="pass", text="2 of 2 trials done", completeness=True
    )
    found = fidelity._complete(PLAN, {"idle/1": "lost"})
    assert (found.status, found.text) == ("fail", "1 of 2 trials done")


FATES = dict.fromkeys(counters.DROPS, 0) | {"delivered": {"data": 7, "ack": 1}, "in_flight": 1}


@pytest.mark.parametrize(
    ("counted", "status", "text"),
    [
        ({"sent": {"data": 9}} | FATES, "pass", "all 9 packets were delivered, dropped"),
        ({"sent": 10} | FATES, "fail", "idle/1: 10 packets were sent, and 9 are accounted for"),
        ({"sent": 8} | FATES, "fail", "idle/1: 8 packets were sent, and 9 are accounted for"),
        (FATES, "fail", "idle/1: counters.json cannot be read"),
        (None, "fail", "idle/1: counters.json cannot be read"),
    ],
)
def test_simulated_packets_are_all_accounted_for(
    counted: dict[str, Any] | None, status: str, text: str, tmp_path: Path
) -> None:
    if counted is not None:
        (tmp_path / counters.NAME).write_text(json.dumps(counted))
    run = cast("Any", SimpleNamespace(raw=lambda name: tmp_path))
    found = fidelity._conserved(run, [tables()])
    assert found.status == status and text in found.text


@pytest.mark.parametrize(
    ("measured_us", "backend", "clock", "status", "text"),
    [
        ([10.0, np.nan, 9.0], "guest", "virtual", "pass", "none of 2 latencies is shorter"),
        ([10.0, 8.99], "guest", "virtual", "fail", "1 of 2 latencies of ping are"),
        ([9.999], "simulator", "virtual", "pass", "none of 1 latencies is shorter"),
        ([9.99], "simulator", "virtual", "fail", "such as 9.99 us where it takes 10.00 us"),
        ([np.nan], "guest", "virtual", "unknown", "of which the least is known"),
        ([1.0], "guest", "real", "unknown", "of which the least is known"),
    ],
)
def test_wire_allows_what_clocks_round(
    measured_us: list[float],
    backend: str,
    clock: str,
    status: str,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured = np.array(measured_us)
    latencies = SimpleNamespace(measured_us=measured, least_us=np.full(len(measured), 10.0))
    measures = SimpleNamespace(wire=lambda table, workload, trial: latencies)
    monkeypatch.setattr(registry, "measures", lambda workload: measures)
    data = tables()
    data.tables = {workload.name: None for workload in data.trial.arm.workloads}
    found = fidelity._wire(manifest(clock, backend), [data])
    assert found.status == status and text in found.text


def test_wire_is_unknown_where_no_link_is_exact_or_no_workload_says_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = tables()
    data.tables = {workload.name: None for workload in data.trial.arm.workloads}
    for wire in (None, lambda table, workload, trial: None):
        measures = SimpleNamespace(wire=wire)
        monkeypatch.setattr(registry, "measures", lambda workload, made=measures: made)
        assert fidelity._wire(manifest(), [data]).status == "unknown"
    other = plan("fig3a", "smoke", ["link.model=htb"], only=["idle"]).trials()[0]
    assert fidelity._wire(manifest(), [tables(trial=other)]).status == "unknown"


def test_as_built_names_trials_that_their_backend_or_files_contradict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = cast("Any", SimpleNamespace(trial=Path))
    made, data = manifest(), [tables()]

    def built(*differences: str) -> tuple[str, str]:
        monkeypatch.setattr(asbuilt, "differences", lambda folder, arm: differences)
        found = fidelity._as_built(run, made, data)
        return found.status, found.text

    assert fidelity._as_built(run, made, []).status == "unknown"
    assert built() == ("pass", "the network read back is the network planned in 1 of 1 trials")
    assert built("no tbf") == ("fail", "idle/1: no tbf")
    made.trials = {
        "idle/1": SimpleNamespace(status="invalid", message=""),
        "qjump/1": SimpleNamespace(status="done", message="late"),
        "other/1": SimpleNamespace(status="invalid", message="not a replicate"),
    }
    assert built() == ("fail", "idle/1: not as planned")
    assert fidelity._as_built(run, made, []).status == "fail"


NEAR, FAR = ("s2", "h8"), ("s0", "s3")
FULL_NS = theory.occupancy_ns(1522, 10**7)


def bound(
    monkeypatch: pytest.MonkeyPatch,
    waits: dict[Any, Wait] | LostError,
    known: dict[Any, float],
    unknown: tuple[Any, ...] = (),
) -> list[tuple[str, str]]:
    """Status and text where level 7 of these ports has these waits and bounds."""

    def counted(network: Any, folder: Path) -> dict[Any, dict[int, Wait]]:
        if isinstance(waits, LostError):
            raise waits
        return {port: {7: waits[port]} if port in waits else {} for port in (NEAR, FAR)}

    why = {(port, 7): Unknown(7, port, (7,), 20e6, 10**7) for port in unknown}
    bounds = Bounds({(port, 7): ns for port, ns in known.items()}, why)
    monkeypatch.setattr(guarantee, "of_arm", lambda arm: bounds)
    monkeypatch.setattr(links, "waits", counted)
    run = cast("Any", SimpleNamespace(asbuilt=lambda name: Path(name, "asbuilt")))
    return [(check.status, check.text) for check in fidelity._bound(run, [tables()])]


@pytest.mark.parametrize(
    ("waits", "status", "frames"),
    [
        ({NEAR: Wait(5, 1000, 0)}, "pass", 5),
        ({NEAR: Wait(5, 1001, 0)}, "fail", 5),
        ({FAR: Wait(4, 2000, 0), NEAR: Wait(5, 1000, 0)}, "pass", 9),
        ({NEAR: Wait(0, 9000, 0), FAR: Wait(4, 2001, 0)}, "fail", 4),
        # ping's way has four links, at each of which frames may come so late, up to a frame's time.
        ({NEAR: Wait(5, 1000 + 4 * 10, 3), FAR: Wait(4, 0, 10)}, "pass", 9),
        ({NEAR: Wait(5, 1001 + 4 * 10, 3), FAR: Wait(4, 0, 10)}, "fail", 9),
        ({NEAR: Wait(5, 1000 + FULL_NS, FULL_NS)}, "pass", 5),
        ({NEAR: Wait(5, 1001 + FULL_NS, FULL_NS)}, "fail", 5),
    ],
)
def test_wait_is_at_most_its_bound_and_what_came_late(
    waits: dict[Any, Wait], status: str, frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((found, text),) = bound(monkeypatch, waits, {NEAR: 1000.0, FAR: 2000.0})
    assert found == status
    assert status == "fail" or f"none of {frames} frames" in text


def test_nearest_wait_to_its_bound_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for near, told in ((500, "s2>h8"), (499, "s0>s3")):
        waits = {NEAR: Wait(1, near, 0), FAR: Wait(1, 999, 0)}
        ((_, text),) = bound(monkeypatch, waits, {NEAR: 1000.0, FAR: 2000.0})
        assert f"(idle/1: level 7 at {told} waited" in text


def test_ports_without_a_bound_are_told_if_frames_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "no bound: level 7 may offer 20 Mb/s to s0>s3, which carries 10 Mb/s"
    assert bound(monkeypatch, {FAR: Wait(1, 9, 0)}, {}, (FAR,)) == [("unknown", why)]
    assert bound(monkeypatch, {FAR: Wait(0, 9, 0)}, {}, (FAR,)) == []
    assert bound(monkeypatch, {}, {}) == []
    waits = {NEAR: Wait(1, 9, 0), FAR: Wait(1, 9, 0)}
    ((status, text),) = bound(monkeypatch, waits, {NEAR: 1000.0}, (FAR,))
    assert status == "pass" and text.endswith(f"; {why}")
    lost = LostError("gone")
    assert bound(monkeypatch, lost, {NEAR: 1000.0}) == [("fail", "idle/1: gone")]
