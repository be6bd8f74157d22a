"""Results as values: equal runs are equal, hash alike and have one JSON; a repr is short."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from qjump_sim import (
    FIG9,
    MS,
    US,
    Flows,
    Limit,
    Marking,
    Packets,
    Poisson,
    Scenario,
    Scheme,
    Source,
    Threshold,
    Time,
    Watch,
    ms,
    ns,
    run,
    us,
)
from qjump_sim.apps import Bulk, Ping

SCENARIO = Scenario(
    FIG9,
    "qjump-script",
    Poisson("search", load=0.6, count=80),
    sources=[Source(0, 1, gap=10 * US, bytes=100, count=9)],
    apps=[Ping(3, 4, bytes=100, gap=MS, count=5), Bulk(5, 4, until=5 * MS, interval=MS)],
)
WATCH = Watch(ports=True, flows=True, every_ps=100 * US, trace=[1])
CODE = """
import hashlib
from qjump_sim import *
print(hashlib.sha256(run(Scenario(FIG9, "dctcp", Poisson("search", load=0.6, count=80))).to_json().encode()).hexdigest())
"""


def test_runs_of_one_scenario_are_equal() -> None:
    one, other = run(SCENARIO, watch=WATCH), run(SCENARIO, watch=WATCH)
    assert one == other and hash(one) == hash(other) and one.to_json() == other.to_json()
    assert pickle.loads(pickle.dumps(one)) == one
    assert one.series == other.series and one.trace == other.trace and one.flows == other.flows and one.apps == other.apps
    different = run(replace(SCENARIO, seed=2), watch=WATCH)
    assert one != different and one.to_json() != different.to_json()
    assert run(SCENARIO) != one, "one was watched"
    assert one != "an outcome"


def test_equal_runs_hash_alike_in_other_processes() -> None:
    said = [subprocess.run([sys.executable, "-P", "-c", CODE], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    here = run(Scenario(FIG9, "dctcp", Poisson("search", load=0.6, count=80))).to_json()
    assert [line.strip() for line in said] == 2 * [hashlib.sha256(here.encode()).hexdigest()]


def test_json_has_every_field() -> None:
    outcome = run(SCENARIO, watch=WATCH)
    read = json.loads(outcome.to_json())
    assert set(read) == set(vars(outcome))
    assert read["finish"] == outcome.finish.tolist() and read["counters"]["sent"] == outcome.counters["sent"]._asdict()
    assert read["apps"][0]["latency"] == outcome.apps[0].latency.tolist()  # type: ignore[union-attr]
    assert outcome.series is not None and read["series"]["levels"] is not None
    assert read["series"]["queued"] == outcome.series.queued.tolist()
    assert read["ports"][0]["begin"] == ["host", 0] and read["sources"][0]["delivered"] == 9
    assert json.loads(run(Scenario(FIG9, "dctcp")).to_json())["start"] == []


def test_a_repr_is_short_and_says_how_much_there_is() -> None:
    outcome = run(SCENARIO, watch=WATCH)
    assert repr(outcome) == f"Outcome(<80 flows>, end={outcome.end}, data_bytes=1500)"
    assert outcome.trace is not None and repr(outcome.trace) == f"Trace(<{len(outcome.trace)} packets>)"
    assert repr(outcome.apps[0]) == "PingResult(<5 values>, lost=0)"
    assert all(len(repr(result)) < 100 for result in (outcome.series, outcome.flows, *outcome.apps, Flows([0], [0], [1], [2])))


@pytest.mark.parametrize("count", [math.nan, math.inf, -math.inf, "5", None, np.array([1.0])])
def test_times_name_what_is_no_number(count: float) -> None:
    for unit in (ns, us, ms):
        with pytest.raises(ValueError) as error:
            unit(count)
        assert str(error.value) == f"{unit.__name__}({count!r}): it needs a finite number of {unit.__name__}"


def test_times_cannot_become_endless() -> None:
    for factor in (math.nan, math.inf):
        with pytest.raises(ValueError, match=r"^a time of (nan|inf) ps: it must be a finite number$"):
            _ = us(5) * factor


@pytest.mark.parametrize(
    ("limit", "threshold", "sentence"),
    [
        (Packets(10), Packets(11), "queue: at 10000000000 bit/s its threshold of 11 packets is above its limit of 10: no packet would be marked"),
        (us(10), 15_000, "queue: at 10000000000 bit/s its threshold of 15000 bytes is above its limit of 12500: no packet would be marked"),
        (15_000, Time(us(13)), "queue: at 10000000000 bit/s its threshold of 16250 bytes is above its limit of 15000: no packet would be marked"),
    ],
)
def test_a_threshold_above_its_limit_is_refused(limit: Limit, threshold: Limit, sentence: str) -> None:
    scheme = Scheme.named("dctcp", FIG9)
    with pytest.raises(ValueError) as error:
        run(Scenario(FIG9, replace(scheme, queue=Threshold(limit, threshold))))
    assert str(error.value) == sentence
    # As large as the limit, it is a way to mark nothing.
    run(Scenario(FIG9, replace(scheme, queue=Threshold(limit, limit))))
    run(Scenario(FIG9, replace(scheme, queue=Marking(15_000, 15_000))))
    with pytest.raises(ValueError, match=r"^queue: its threshold of 15001 bytes is above its limit of 15000: no packet would be marked$"):
        run(Scenario(FIG9, replace(scheme, queue=Marking(15_000, 15_001))))
