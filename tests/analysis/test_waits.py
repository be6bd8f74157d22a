"""Latencies against the waits at ports, at both limits: what fits, and what is a nanosecond off."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from qjump_mn.analysis import waits
from qjump_mn.analysis.waits import ROUNDED, _Longest, _Port
from qjump_mn.links.base import Wait
from qjump_mn.model.plan import Trial
from qjump_mn.programs import registry
from qjump_mn.programs.measures_api import hundredth_us
from qjump_mn.resolve import plan

PLAN = plan("fig3a", "smoke", [], only=["contended", "qjump"])
CONTENDED, LIMITED = PLAN.trials()
FAST = plan("fig3a", "smoke", ["link.rate=100Mbit"], only=["contended"]).trials()[0]
PING = CONTENDED.arm.workloads[0]
PORT = ("s2", "s0")


def tables(trial: Trial = CONTENDED, rows: int = 1) -> Any:
    named = {load.name: SimpleNamespace(num_rows=rows) for load in trial.arm.workloads}
    return SimpleNamespace(trial=trial, tables=named)


def longest(
    longest_us: float,
    *waited: tuple[int, int, int],
    level: int = 6,
    wire_us: float = 100.0,
    drained_ns: int = 0,
) -> _Longest:
    """On its way are ports with (wait before, wait at the end, lateness), in ns; frames that left
    after the end waited for ``drained_ns`` more."""
    way = [
        _Port(
            PORT, level, Wait(5, before, 0), Wait(6, ended, late), Wait(7, ended + drained_ns, late)
        )
        for before, ended, late in waited
    ]
    return _Longest("h8>h10", way, longest_us, wire_us)


MOST_US = (100 + 30 + 5 + hundredth_us(CONTENDED.network)) * (1 + ROUNDED)


@pytest.mark.parametrize(("us", "found"), [(MOST_US - 1e-9, 0), (MOST_US + 1e-9, 1)])
def test_latency_is_at_most_wire_and_all_waits(us: float, found: int) -> None:
    made = longest(us, (0, 10_000, 2000), (0, 20_000, 3000))
    problems = list(waits._too_long(tables(), made))
    assert len(problems) == found
    assert not found or ("h8>h10 took 148" in problems[0] and "waits of 35 us" in problems[0])


def test_latency_may_have_waits_of_frames_that_left_after_the_end() -> None:
    made = longest(MOST_US + 1, (0, 30_000, 5000), drained_ns=1000)
    assert list(waits._too_long(tables(), made)) == []


def changed(**network: Any) -> Trial:
    made = msgspec.structs.replace(CONTENDED.network, **network)
    arm = msgspec.structs.replace(CONTENDED.arm, network=made)
    return msgspec.structs.replace(CONTENDED, arm=arm)


@pytest.mark.parametrize(
    ("trial", "level", "found"),
    [
        (LIMITED, next(i for i, b in enumerate(LIMITED.arm.qjump.budget_bytes) if b), 0),  # type: ignore[union-attr]
        (LIMITED, next(i for i, b in enumerate(LIMITED.arm.qjump.budget_bytes) if not b), 1),  # type: ignore[union-attr]
        (changed(jittery=(("h8", ((0.0, 0), (100.0, 1))),)), 6, 0),
        (changed(link=msgspec.structs.replace(CONTENDED.network.link, orphan=False)), 6, 0),
        (CONTENDED, 6, 1),
    ],
)
def test_time_that_no_port_counts_excuses_a_latency(trial: Trial, level: int, found: int) -> None:
    made = longest(1000, (0, 0, 0), level=level)
    assert len(list(waits._too_long(tables(trial), made))) == found


@pytest.mark.parametrize(
    ("us", "waited", "found"),
    [
        (118.9, (0, 20_000, 0), 1),
        (119.0, (0, 20_000, 0), 0),
        (100.0, (20_000, 20_000, 0), 0),  # it waited before the measurement
        (100.0, (19_999, 20_000, 0), 1),
    ],
)
def test_latency_is_at_least_wire_and_the_longest_wait(
    us: float, waited: tuple[int, int, int], found: int
) -> None:
    problems = list(waits._too_short(tables(), PING, longest(us, waited)))
    assert len(problems) == found
    assert not found or "waited 20 us at s2>s0: at least 120 us" in problems[0]


def test_clock_rounds_less_on_fast_links() -> None:
    made = longest(119.5, (0, 20_000, 0))
    assert list(waits._too_short(tables(), PING, made)) == []
    assert len(list(waits._too_short(tables(FAST), PING, made))) == 1


def test_several_flows_share_their_waits() -> None:
    several = msgspec.structs.replace(PING, flows=(("h8", "h10"), ("h7", "h10")))
    assert list(waits._too_short(tables(), several, longest(1, (0, 20_000, 0)))) == []


def other(**changes: Any) -> Any:
    """A workload with these hooks, which are asked of its class."""
    plain = {
        "name": "other",
        "levels": {6},
        "SENDS": True,
        "copied": False,
        "packet_bytes": 100,
        "answer_bytes": 0,
        "MULTICAST": False,
        "conversations": (("h7", "h10"),),
    }
    return type("Load", (), plain | changes)()


@pytest.mark.parametrize(
    ("also", "alone"),
    [
        (other(), False),
        (other(levels={5}), True),
        (other(SENDS=False), True),
        (other(name="mine"), True),
        (other(conversations=(("h7", "h8"),)), True),
        (other(conversations=(("h7", "h8"),), answer_bytes=None), True),
        (other(conversations=(("h10", "h7"),), answer_bytes=None), False),
        (other(conversations=(("h7", "h8"),), copied=True), False),
    ],
)
def test_port_is_alone_unless_others_send_there_at_the_level(also: Any, alone: bool) -> None:
    arm = SimpleNamespace(workloads=[other(name="mine"), also])
    trial = SimpleNamespace(network=CONTENDED.network, arm=arm)
    there = longest(1, (0, 1, 0)).way[0]
    assert (
        waits._alone(cast("Any", SimpleNamespace(trial=trial)), other(name="mine"), there) is alone
    )


@pytest.mark.parametrize(("rows", "alone"), [(0, False), (1, True), (2, False)])
def test_watcher_is_alone_if_it_saw_every_frame(rows: int, alone: bool) -> None:
    watcher = other(name=PING.name, SENDS=False)
    there = longest(1, (0, 1, 0)).way[0]
    assert waits._alone(tables(rows=rows), watcher, there) is alone


def test_way_is_none_where_a_port_does_not_count() -> None:
    read = [Wait(1, 2, 3), Wait(4, 5, 6), Wait(7, 8, 9)]
    crossed = ((PORT, 6),)
    readings: list[waits.Waits] = [{PORT: {6: wait}} for wait in read]
    assert waits._way(crossed, readings) == [_Port(PORT, 6, *read)]
    assert waits._way(crossed, [{PORT: {}}, *readings[1:]]) is None
    assert waits._way(crossed, [{}, {}, {}]) is None


def test_each_flow_is_compared_that_has_latencies_and_counting_ports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of five flows two have no latency, one a port that does not count, and two took too long."""
    flows = ["silent", "blind", "first", "second"]
    latencies = SimpleNamespace(
        measured_us=np.array([np.nan, 900.0, 500.0, 600.0]), least_us=np.array([1.0, 2.0, 3.0, 4.0])
    )
    crossed = {flow: [(PORT, 6 if flow != "blind" else 5)] for flow in ["absent", *flows]}
    measures = SimpleNamespace(
        wire=lambda *about: latencies, crossed=lambda workload, trial: crossed
    )
    monkeypatch.setattr(registry, "measures", lambda workload: measures)
    nulls = SimpleNamespace(null_count=1)
    named = {"flow": pa.array(flows), "latency_us": nulls}
    made: Any = SimpleNamespace(trial=CONTENDED, tables={PING.name: named})
    counted = {PORT: {6: Wait(1, 0, 0)}}
    found = list(waits._of_workload(made, PING, [counted] * 3))
    assert [text.partition(",")[0] for text in found] == [
        "first took 500 us",
        "second took 600 us",
    ]
    assert "the wire takes 3 us" in found[0] and "the wire takes 4 us" in found[1]


def test_nothing_is_checked_on_a_real_clock_without_readings_or_on_other_links() -> None:
    run = cast("Any", SimpleNamespace(trial=None))

    def read(read_ns: Any, trial: Trial = CONTENDED) -> Any:
        return SimpleNamespace(trial=trial, facts=SimpleNamespace(read_ns=read_ns))

    htb = plan("fig3a", "smoke", ["link.model=htb"], only=["idle"]).trials()[0]
    for clock, data in (
        ("virtual", []),
        ("real", [read({})]),
        ("virtual", [read(None)]),
        ("virtual", [read({}, htb)]),
    ):
        assert waits.check(run, clock, data) == []
