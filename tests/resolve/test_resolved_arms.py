"""Arms of a small experiment: what is resolved of their workloads, windows, links and series."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qjump_mn.errors import UsageError
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.resolve import plan
from qjump_mn.resolve.arms import FIRST_PORT, MIN_WINDOW_BYTES

FILE = """
remarks = ["Known to be so."]
[workloads.ping]
program = "ping"
flows = ["h1>h2"]
interval = "10ms"
level = 6
[workloads.bulk]
program = "iperf"
flows = ["h3>h4"]
level = 2
"""

Make = Callable[..., Plan]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Plan the file with more text in it."""
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    (tmp_path / "experiments").mkdir()

    def made(text: str, *settings: str, **options: Any) -> Plan:
        (tmp_path / "experiments/mine.toml").write_text(FILE + text)
        return plan("mine", "course", list(settings), **options)

    return made


def arm(text: str = "", workloads: str = '["ping", "bulk"]', name: str = "one") -> str:
    return f"[arms.{name}]\nworkloads = {workloads}\n{text}\n"


def only(made: Plan) -> ArmPlan:
    (found,) = made.run.arms
    return found


def test_workloads_have_ports_levels_and_the_schemes_window(make: Make) -> None:
    found = only(make(arm('scheme = "priorities"\nwindow = "4096B"')))
    ping, bulk = found.workloads
    assert (ping.port, bulk.port) == (FIRST_PORT, FIRST_PORT + 100)
    assert (ping.level, bulk.level, found.uses_levels) == (6, 2, True)
    assert (ping.window_bytes, bulk.window_bytes) == (None, MIN_WINDOW_BYTES)
    plain = only(make(arm()))
    assert [load.level for load in plain.workloads] == [0, 0] and not plain.uses_levels
    assert [load.window_bytes for load in plain.workloads] == [None, None]
    (second,) = only(make(arm(workloads='["bulk"]'))).workloads
    assert second.port == FIRST_PORT + 100, "of its place in the file"


def test_star_is_every_other_host(make: Make) -> None:
    bulk = only(make(arm(), "workloads.bulk.flows=*>h4")).workloads[1]
    assert bulk.flows == tuple((f"h{n}", "h4") for n in range(1, 13) if n != 4)


def test_link_is_the_arms_over_the_schemes_over_the_experiments(make: Make) -> None:
    text = arm('link = {rate = "20Mbit"}') + arm(name="other")
    found = make(text + '[schemes.none]\nlink = {rate = "1Mbit", buffer = "9kB"}', "link.delay=5us")
    links = [made.network.link for made in found.run.arms]
    assert [(link.rate_bps, link.buffer_bytes, link.delay_ns) for link in links] == [
        (20 * 10**6, 9000, 5000),
        (10**6, 9000, 5000),
    ]


SWEEP = '[sweeps.s]\nsets = ["link.buffer"]\nvalues = ["10kB", "20 kB"]\nlabel = "buffer"\n'
POINTS = (
    '[sweeps.s]\nsets = []\nvalues = ["much", "few"]\nlabel = "load"\n'
    '[sweeps.s.points.few]\n"workloads.ping.interval" = "1s"\n'
    '[sweeps.s.points.much]\n"workloads.ping.interval" = "1ms"\n'
)


@pytest.mark.parametrize(
    ("sweep", "arms"),
    [
        (SWEEP, [("one_10kB", "L, 10kB", 10.0), ("one_20_kB", "L, 20 kB", 20.0)]),
        (POINTS, [("one_much", "L, much", 2.0), ("one_few", "L, few", 1.0)]),
    ],
)
def test_series_has_an_arm_for_each_value(
    sweep: str, arms: list[tuple[str, str, float]], make: Make
) -> None:
    found = make(
        sweep + arm('label = "L"\nsweep = "s"') + '[figure]\nplot = "latency_cdf"\narms = ["one"]'
    )
    assert [(made.name, made.label, made.x) for made in found.run.arms] == arms
    assert {made.series for made in found.run.arms} == {"one"}
    assert found.run.arms[0] != msgspec.structs.replace(found.run.arms[1], name=arms[0][0])


def test_remarks_of_the_file_are_in_the_plan_once(make: Make) -> None:
    found = make(arm() + arm(name="two")).shown.remarks
    assert found.count("Known to be so.") == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (arm(workloads="[]"), r"arms\.one: an arm needs at least one workload"),
        (arm(workloads='["ping", "bulk", "ping"]'), r"arms\.one: workload 'ping' is named twice"),
        (arm(workloads='["pign"]'), r"arms\.one: there is no workload 'pign': did you mean 'ping'"),
        (arm('window = "4095B"'), r"a window of 4.095kB is smaller than the kernel's minimum"),
        (arm(name="-x"), r"arms.*'-x'"),
        (arm('sweep = "nosuch"'), r"arms\.one: there is no sweep 'nosuch'"),
        (SWEEP.replace('"link.buffer"', "") + arm('sweep = "s"'), r"sweeps\.s: `sets` is empty"),
        (
            POINTS.replace("workloads.ping.interval", "title") + arm('sweep = "s"'),
            r"sweeps\.s\.points\.much: 'title' belongs to the whole run",
        ),
        (
            SWEEP.replace("link.buffer", "seeds") + arm('sweep = "s"'),
            r"sweeps\.s: 'seeds' belongs to the whole run",
        ),
        (arm() + '[workloads.more]\nprogram = "ping"\nflows = ["h1>h99"]', "has no host 'h99'"),
        (
            arm().replace(
                "[arms", '[workloads.more]\nprogram = "ping"\nflows = ["h1>h2"]\nlevel = 8\n[arms'
            ),
            "8' is not a level",
        ),
    ],
)
def test_arm_that_cannot_be_is_refused(text: str, sentence: str, make: Make) -> None:
    with pytest.raises(UsageError, match=sentence):
        make(text)
