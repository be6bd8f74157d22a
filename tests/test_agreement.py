"""Whether programs agree with themselves: what real ones left does, and does not when its times are halved."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from qjump_mn.model import resolve
from qjump_mn.model.plan import Trial
from qjump_mn.programs import arrivals, pace, registry
from qjump_mn.programs.measures_api import Said
from qjump_mn.programs.noise.program import NoisePlan
from qjump_mn.results import tables
from tests.test_program_memcaslap import TRIAL as MEMCASLAP
from tests.test_workload_logs import FANIN

PROGRAMS = Path(__file__).parents[1] / "qjump_mn/programs"
ALWAYS = tables.TrialFacts(cpu_busy=0.1, window_s=(0.0, 9e9), began_ns=0, began_utc_ns=0)


def trial(experiment: str, arm: str, *settings: str) -> Trial:
    plan = resolve.plan(experiment, "smoke", list(settings))
    return next(one for one in plan.trials() if one.arm.name == arm)


def said(program: str, of: Trial, change: Callable[[str], str] = str) -> Said:
    """What the program's golden files say, each text changed."""
    workload = next(one for one in of.arm.workloads if registry.of(one).name == program)

    def read(name: str) -> str:
        return change((PROGRAMS / program / "golden" / name).read_text())

    columns = registry.of(workload).table(workload, of, read)
    table = pa.table(dict(columns), schema=tables.schema(workload))
    return Said(workload, table, of, ALWAYS, read, virtual=True)


def problems(one: Said) -> list[str]:
    agrees = registry.measures(one.plan).agrees
    assert agrees is not None
    return list(agrees(one))


def halved(start: str, *ends: str) -> Callable[[str], str]:
    """Every time from ``start`` to one of ``ends``, in a log of our programs."""

    def change(text: str) -> str:
        lines = text.splitlines()
        names = lines[1].split()[2:]
        if start not in names:
            return text
        rows = []
        for line in lines[2:-1]:
            row = dict(zip(names, map(int, line.split()), strict=True))
            since = row[start]
            row |= {end: since + (row[end] - since) // 2 for end in ends if row[end]}
            rows.append(" ".join(map(str, row.values())))
        return "\n".join([*lines[:2], *rows, lines[-1]]) + "\n"

    return change


FAN_IN = trial("fig11", "levels_25ms", *FANIN)
LOGS = [
    (
        "barrier",
        trial("fig3c", "contended"),
        ("start_ns", "end_ns"),
        r"passed \d+ of \d+ barriers before it can",
    ),
    (
        "memcached",
        trial("fig3b", "contended", "duration=5s"),
        ("due_ns", "done_ns"),
        r"h3>h11: \d+ requests were sent before they were due, or answered before that",
    ),
    (
        "shuffle",
        trial("fig3b", "contended", "duration=5s"),
        ("start_ns", "end_ns"),
        r"7 of 7 rounds did not begin when the one before had ended, such as one that began \d+",
    ),
]


@pytest.mark.parametrize(("program", "of", "times", "sentence"), LOGS)
def test_halved_times_contradict_each_other(
    program: str, of: Trial, times: tuple[str, ...], sentence: str
) -> None:
    assert problems(said(program, of)) == []
    found = problems(said(program, of, halved(*times)))
    assert any(re.search(sentence, problem) for problem in found), found


BACK_TO_BACK = """\
# q2pc 1 role=coordinate transport=udp
# columns start_ns votes_ns end_ns retries failed
20012268955 20014736283 20017210441 0 0
20017210441 20019677802 20022687655 0 0
20022687655 20025155014 20028171121 0 0
# end rows=3 early=0
"""


def test_the_next_request_begins_when_the_last_has_ended() -> None:
    of = trial("fig6", "udp_1")
    workload = next(one for one in of.arm.workloads if registry.of(one).name == "q2pc")

    def left(text: str) -> Said:
        return Said(workload, pa.table({"latency_us": []}), of, ALWAYS, lambda name: text, virtual=True)

    assert problems(left(BACK_TO_BACK)) == []
    (problem,) = problems(left(halved("start_ns", "votes_ns", "end_ns")(BACK_TO_BACK)))
    said = (
        "2 of 2 requests did not begin when the one before had ended, such as one that began 2.471 ms later"
    )
    assert problem == said


@pytest.mark.parametrize(("name", "errors"), [("qjump_1", 7), ("udp_1", 7), ("tcp_1", 0)])
def test_who_answers_a_coordinator_that_has_ended_is_told_so(name: str, errors: int) -> None:
    """By its kernel, at level 0, in frames that the links count."""
    of = trial("fig6", name)
    workload = next(one for one in of.arm.workloads if registry.of(one).name == "q2pc")
    data = pa.table({"latency_us": pa.array([], pa.float64())})
    told = registry.measures(workload).moved
    assert told is not None
    found = list(told(Said(workload, data, of, ALWAYS, lambda name: "", virtual=True)))
    from_kernel = [one for one in found if one.level == 0 and one.sent_frames == 1]
    assert [one.flow for one in from_kernel] == ([*workload.flows] if errors else [])
    assert len(from_kernel) == errors


@pytest.mark.parametrize(("intervals", "told"), [(3.5, False), (4.5, True)])
def test_what_is_measured_when_no_burst_comes_any_more_is_told(
    intervals: float, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection whose SYN was lost is there a second later, and by then a short run's bursts are over."""
    of = trial("fig6", "tcp_1")
    workload = next(one for one in of.arm.workloads if isinstance(one, NoisePlan))
    starts = [number * workload.interval_ns for number in range(3)]
    rows = {"flow": [">".join(workload.flows[0])] * 3, "start_ns": starts}
    window_s = (0.0, intervals * workload.interval_ns / 1e9)
    facts = tables.TrialFacts(cpu_busy=0.1, window_s=window_s, began_ns=0, began_utc_ns=0)
    monkeypatch.setattr(arrivals, "agrees", lambda said, mtu_bytes: iter(()))
    found = problems(Said(workload, pa.table(rows), of, facts, lambda name: "", virtual=True))
    assert [one.endswith("the rest was not disturbed") for one in found] == ([True] if told else [])


def test_copies_that_were_halved_do_not_end_with_their_round() -> None:
    def change(text: str) -> str:
        lines = text.splitlines()
        quick = halved("start_ns", "end_ns")(text).splitlines()
        # Step 3 is the round as a whole.
        kept = [
            line if line.split()[1] == "3" else other
            for line, other in zip(lines[2:-1], quick[2:-1], strict=True)
        ]
        return "\n".join([*lines[:2], *kept, lines[-1]]) + "\n"

    found = problems(said("shuffle", trial("fig3b", "contended", "duration=5s"), change))
    assert any("8 of 8 rounds did not end with the last of their copies" in problem for problem in found), (
        found
    )


def test_the_latencies_of_memcaslap_fill_its_time() -> None:
    workload = next(one for one in MEMCASLAP.arm.workloads if registry.of(one).name == "memcaslap")
    name = f"{workload.name}-{'-'.join(workload.flows[0])}.memcaslap.txt"
    files = {name: "alone.txt"}

    def version(change: Callable[[str], str]) -> Said:
        def read(asked: str) -> str:
            golden = PROGRAMS / "memcaslap/golden"
            return "memaslap v1.0\n" if "version" in asked else change((golden / files[asked]).read_text())

        columns = registry.of(workload).table(workload, MEMCASLAP, read)
        table = pa.table(dict(columns), schema=tables.schema(workload))
        return Said(workload, table, MEMCASLAP, ALWAYS, read, virtual=True)

    def scaled(factor: float) -> Callable[[str], str]:
        return lambda text: re.sub(r"Avg: +(\d+)", lambda one: f"Avg:  {int(int(one[1]) * factor)}", text)

    assert problems(version(str)) == []
    for factor in (0.5, 2.0):
        (problem,) = problems(version(scaled(factor)))
        assert "128 connections asked without a pause for 10 s, 1280 s together" in problem


def test_datagrams_come_no_faster_than_their_link_carries_them() -> None:
    of = FAN_IN
    assert problems(said("fanin", of)) == []

    def together(text: str) -> str:
        """All within a moment."""
        lines = text.splitlines()
        names = lines[1].split()[2:]
        if "received_ns" not in names:
            return text
        place = names.index("received_ns")
        rows = [line.split() for line in lines[2:-1]]
        first = int(rows[0][place])
        for number, row in enumerate(rows):
            row[place] = str(first + number)
        return "\n".join([*lines[:2], *map(" ".join, rows), lines[-1]]) + "\n"

    (problem,) = problems(said("fanin", of, together))
    assert re.search(r"datagrams reached h11 faster than its link carries them: \d+\.\d+ ms sooner", problem)


def test_sends_know_nothing_of_latencies_to_come() -> None:
    chance = np.random.default_rng(1)
    true_us = chance.uniform(1000, 5000, 200)
    sent_us = np.arange(200) * 10_000 + chance.normal(0, 300, 200)
    for factor, expected in ((0.5, 1.0), (2.0, -0.5), (1.0, 0.0)):
        told_us = true_us * factor
        found = pace.slope(sent_us + true_us - told_us, told_us)
        assert found is not None and found.value == pytest.approx(expected, abs=0.1)
        assert bool(pace.follows(sent_us + true_us - told_us, told_us, time_scale=1)) == (factor != 1)
    assert pace.slope(sent_us[:5], true_us[:5]) is None
    assert pace.slope(sent_us, np.full(200, 7.0)) is None


def test_a_request_that_is_late_and_slow_for_one_reason_is_no_slope() -> None:
    chance = np.random.default_rng(2)
    latency_us = 774 + chance.uniform(0, 5, 3000)
    sent_us = np.arange(3000) * 10_000 + chance.normal(0, 2, 3000)
    latency_us[1143] += 128
    sent_us[1143] += 1600
    found = pace.slope(sent_us, latency_us)
    assert found is not None and found.value > 5 and found.error < 0.2
    assert pace.follows(sent_us, latency_us, time_scale=1) == ""
    # The same at 10 Gb/s is of another size.
    assert pace.follows(sent_us, latency_us, time_scale=1000)


@pytest.mark.parametrize(
    "points", [((0.0, 0), (100.0, 80_000)), ((0.0, 0), (50.0, 15_000), (100.0, 110_000))]
)
def test_a_row_that_is_written_after_a_second_message_may_come_later_the_less_the_first_waited(
    points: tuple[tuple[float, int], ...],
) -> None:
    rng = np.random.default_rng(7)
    share, drawn_ns = zip(*points, strict=True)
    first_us, second_us = (np.interp(rng.uniform(0, 100, 400), share, drawn_ns) / 1e3 for _ in range(2))
    at_us = 7812.5 * np.arange(400) + rng.uniform(0, 2, 400) + np.maximum(first_us, second_us)
    found = pace.slope(at_us - first_us, first_us)
    expected = pace.second_later(points, first_us)
    assert found and -0.6 < expected < -0.25 and abs(found.value - expected) < 0.1
    assert pace.follows(at_us - first_us, first_us, expected, time_scale=1000) == ""
    for factor in (0.4, 2.0):
        told_us = factor * first_us
        expected = pace.second_later(points, told_us)
        assert pace.follows(at_us - told_us, told_us, expected, time_scale=1000), factor
    assert pace.second_later((), first_us) == 0
