"""How far a single long trial has come, in the line that the harness shows of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qjump_mn import resolve
from qjump_mn.backends.simulator import SimulatorBackend
from qjump_mn.errors import UsageError
from qjump_mn.toolbox import simulator
from tests.guest import trees
from tests.support.result_store import VARIABLE

pytestmark = pytest.mark.guest

LINE = re.compile(r"simulates, ([0-9]+) %, ([0-9]+\.[0-9]{3}) ms simulated, ([0-9]+) s left")


def test_a_long_trial_says_how_far_it_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial of several seconds on any machine, run now: its share and its simulated time grow,
    and it stays one stage."""
    trees.toolbox()
    simulator.package(print)
    monkeypatch.delenv(VARIABLE)
    plan = resolve.plan("fig9", "smoke", ["workloads.search.count=15000"])
    trial = next(trial for trial in plan.trials() if trial.arm.name.startswith("search_dctcp"))
    said: list[str] = []
    with SimulatorBackend() as backend:
        backend.check(plan, lambda line: None)
        ended = backend.run(trial, tmp_path, said.append)
    assert ended.exit_code == 0, ended.message
    assert said[0] == "simulates" and len(said) > 2, said
    found = [LINE.fullmatch(line) for line in said[1:]]
    assert all(found), said
    shares = [int(one[1]) for one in found if one]
    times = [float(one[2]) for one in found if one]
    assert shares == sorted(shares) and 0 < shares[0] < shares[-1] <= 100, said
    assert times == sorted(times) and times[0] < times[-1], said


def test_what_is_wrong_is_still_the_last_word() -> None:
    """A plan that the simulator cannot run is refused with its sentence, not with a line of
    progress."""
    trees.toolbox()
    simulator.package(print)
    plan = resolve.plan("fig9", "smoke", ["qjump.paper.budget_packet=200B"])
    with (
        SimulatorBackend() as backend,
        pytest.raises(UsageError, match="bytes an epoch, less than a packet"),
    ):
        backend.check(plan, lambda line: None)
