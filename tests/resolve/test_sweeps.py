"""Series of arms, one for each value of a sweep, and claims about all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from qjump_mn import resolve
from qjump_mn.analysis import claims
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Plan
from qjump_mn.programs.ping.program import PingPlan
from qjump_mn.results import panels
from tests.support.user_files import Write

EXPERIMENT = """
title = "A sweep"
reproduces = "nothing"
question = "?"
topology = "single"
warmup = "1s"
duration = "1s"
replicates = 1
link = {}
qjump.limit = { factors = { 7 = 1 } }
workloads.ping = { program = "ping", label = "ping", flows = ["h1>h2"], level = 7, interval = "10ms" }
arms.idle = { label = "idle", workloads = ["ping"] }
arms.limited = { label = "limited", workloads = ["ping"], scheme = "qjump", sweep = "pace" }
arms.free = { label = "free", workloads = ["ping"], scheme = "priorities", sweep = "pace" }
sweeps.pace = { label = "interval, ms", sets = ["workloads.ping.interval"], values = ["5ms", "10ms", "20ms"] }
figure = { plot = "latency_cdf", workload = "ping", arms = ["idle"] }
presets.course = { about = "all" }
presets.few = { about = "fewer", sweeps.pace.values = ["10ms"] }

[claims.each]
statement = "at every interval"
source = "none"
predicate = "limited.ping.p50_ms <= 2 * free.ping.p50_ms"
shows = "limited.ping.p50_ms"

[claims.some]
statement = "from 10 ms"
source = "none"
predicate = "limited.ping.p50_ms * x <= 20 * idle.ping.p50_ms"
where = "x >= 10"
"""


Sweep = Callable[..., Plan]


@pytest.fixture
def sweep(own: Write) -> Sweep:
    """The plan of an experiment with this text, by a preset, of some arms ``only``."""

    def resolved(
        preset: str = "course", *, text: str = EXPERIMENT, only: Sequence[str] = ()
    ) -> Plan:
        own("experiments/sweep.toml", text)
        return resolve.plan("sweep", preset, [], only=only)

    return resolved


def test_series_has_an_arm_for_each_value(sweep: Sweep) -> None:
    plan = sweep()
    assert [
        arm.name for arm in plan.arms
    ] == "idle limited_5ms limited_10ms limited_20ms free_5ms free_10ms free_20ms".split()
    assert [(arm.series, arm.x) for arm in plan.arms][:3] == [
        ("", None),
        ("limited", 5.0),
        ("limited", 10.0),
    ]
    pings = [
        workload
        for arm in plan.arms
        for workload in arm.workloads
        if isinstance(workload, PingPlan)
    ]
    assert [ping.interval_ns // 10**6 for ping in pings] == [10, 5, 10, 20, 5, 10, 20]
    assert plan.arms[1].label == "limited, 5ms"
    assert plan.shown.axes == {"pace": "interval, ms"}


def test_a_series_may_be_asked_for_whole(sweep: Sweep) -> None:
    plan = sweep(only=("idle", "free"))
    assert [arm.name for arm in plan.run.arms] == ["idle", "free_5ms", "free_10ms", "free_20ms"]
    assert [
        arm.name for arm in plan.judged.not_run
    ] == "limited_5ms limited_10ms limited_20ms".split()


def test_a_preset_may_have_other_values(sweep: Sweep) -> None:
    assert [arm.name for arm in sweep("few").arms] == "idle limited_10ms free_10ms".split()


def measured(**medians: float) -> claims.Measured:
    return {arm: {"ping": {"p50_ms": value}} for arm, value in medians.items()}


def test_claim_of_a_series_is_of_each_arm(sweep: Sweep) -> None:
    plan = sweep()
    each, some = claims.Claim.of(plan, "each"), claims.Claim.of(plan, "some")
    assert each.arms == tuple(
        "limited_5ms free_5ms limited_10ms free_10ms limited_20ms free_20ms".split()
    )
    assert some.arms == ("limited_10ms", "idle", "limited_20ms")
    good = measured(
        idle=1, limited_5ms=2, free_5ms=1, limited_10ms=2, free_10ms=1, limited_20ms=1, free_20ms=1
    )
    assert each.holds(good, {}) and some.holds(good, {})
    assert each.shown(good, {}) == 2
    assert not each.holds({**good, **measured(limited_5ms=2.1)}, {})
    assert some.holds({**good, **measured(limited_5ms=1000)}, {})
    assert not some.holds({**good, **measured(limited_20ms=1.1)}, {}), (
        "20 ms times 1.1 is more than 20 times 1"
    )
    assert not each.holds({key: value for key, value in good.items() if key != "free_20ms"}, {})


OTHER = """
arms.NAME = { label = "other", workloads = ["ping"], sweep = "delay" }
sweeps.delay = { label = "delay, us", sets = ["link.delay"], values = ["1us", "2us"] }
claims.none = { statement = "s", source = "s", predicate = "max(idle.ping.p50_ms, 2 * hosts) < 9" }
claims.other = { statement = "s", source = "s", predicate = "NAME.ping.p50_ms < 9 * x" }
claims.shown = { statement = "s", source = "", predicate = "1 < 2", shows = "limited.ping.sent", where = "x>5" }

[claims.each]"""


@pytest.mark.parametrize("name", ["ping", "p50_ms", "hosts"])
def test_only_what_stands_in_the_place_of_an_arm_is_a_series(name: str, sweep: Sweep) -> None:
    text = EXPERIMENT.replace("[claims.each]", OTHER.replace("NAME", name), 1)
    plan = sweep(text=text)
    arms = {claim: claims.Claim.of(plan, claim).arms for claim in plan.judged.claims}
    assert arms["none"] == ("idle",), "workloads, measures and constants are no series"
    assert arms["other"] == (f"{name}_1us", f"{name}_2us")
    assert arms["shown"] == ("limited_10ms", "limited_20ms")
    assert set(arms["each"]) == {arm.name for arm in plan.arms if arm.series in ("limited", "free")}


POINTS = """
[sweeps.pace]
label = "pace"

[sweeps.pace.points."as it is"]

[sweeps.pace.points."5 ms/10 us"]
"workloads.*.interval" = "5ms"
"link.delay" = "10us"
"""


def named(points: str = POINTS) -> str:
    plain = re.sub(r"^sweeps.pace = .*\n", "", EXPERIMENT, flags=re.MULTILINE)
    return plain.replace('values = ["10ms"]', 'values = ["5 ms/10 us"]') + points


def test_named_values_have_their_settings(sweep: Sweep) -> None:
    plan = sweep(text=named())
    series = [arm for arm in plan.arms if arm.series == "limited"]
    assert [(arm.name, arm.label, arm.x) for arm in series] == [
        ("limited_as_it_is", "limited, as it is", 1.0),
        ("limited_5_ms_10_us", "limited, 5 ms/10 us", 2.0),
    ]
    pings = [
        workload for arm in series for workload in arm.workloads if isinstance(workload, PingPlan)
    ]
    assert [ping.interval_ns // 10**6 for ping in pings] == [10, 5]
    assert [arm.network.link.delay_ns for arm in series] == [0, 10_000]
    assert panels.has_names(plan.arms) and [panels.point(arm) for arm in series] == [
        "as it is",
        "5 ms/10 us",
    ]


def test_a_preset_may_choose_among_them(sweep: Sweep) -> None:
    plan = sweep("few", text=named())
    assert [(arm.name, arm.x) for arm in plan.arms] == [
        ("idle", None),
        ("limited_5_ms_10_us", 2.0),
        ("free_5_ms_10_us", 2.0),
    ]


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('"workloads.*.interval"', '"workloads.*.intervall"',
         r"points.5 ms/10 us has no setting 'workloads.\*.intervall'"),
        ('"5ms"\n', "[5]\n", r"sweeps.pace: points"),
        ("5 ms/10 us", "5ms", "'5ms' is a number and others are not"),
        ("5 ms/10 us", "5 ms, 10 us", "the name .5 ms, 10 us. has a comma"),
    ],
)  # fmt: skip
def test_points_that_cannot_be_are_told(
    before: str, after: str, sentence: str, sweep: Sweep
) -> None:
    with pytest.raises(UsageError, match=sentence):
        sweep(text=named(POINTS.replace(before, after, 1)))


def test_preset_with_unknown_points_fails(sweep: Sweep) -> None:
    with pytest.raises(UsageError, match="there is no point '5 ms/10 us'"):
        sweep("few", text=named(POINTS.replace("5 ms/10 us", "6 ms/10 us")))


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('"5ms", "10ms"', '"5ms", "10s"', "values must be numbers with one unit"),
        ('"5ms", "10ms"', '"5ms", "5ms"', "a value is given twice"),
        ('"5ms", "10ms", "20ms"', "", "the sweep has no values: give at least one"),
        ("workloads.ping.interval", "workloads.ping.intervall",
         "has no setting 'workloads.ping.intervall'"),
        ('sweep = "pace"', 'sweep = "pcae"', "there is no sweep 'pcae': did you mean 'pace'"),
        ("workloads.ping.interval", "warmup",
         "'warmup' belongs to the whole run, not to an arm: sweep a setting of"),
        ("workloads.ping.interval", "duration",
         "or make a run for each value, as in -s duration=ONE,OTHER"),
        ('arms = ["idle"] }',
         'arms = ["idle", "free"], panels = [{ measures = ["ping.p50_ms"], label = "x", '
         'relative_to = { pong = "idle" } }] }',
         "figure.panels: relative_to: there is no workload 'pong': did you mean 'ping'"),
        (
            'arms = ["idle"] }',
            'arms = ["idle"], panels = [{ measures = ["ping.p50_ms"], label = "x", arms = ["free"] }] }',
            "figure.panels: 'free' is not one of the figure's arms: add it to figure.arms, or "
            "name one of idle",
        ),
        ("x >= 10", "x >= 100", "no value of the sweep is left"),
        ("x >= 10", "x >= idle.ping.p50_ms",
         "claims.some.where: character 6: 'idle.ping.p50_ms' is a mea"),
        ("x >= 10", "free > 1",
         "claims.some.where: character 1: 'free' is a series: write a measure"),
        ("limited.ping.p50_ms * x", "x", "claims.some.where: the claim names no series"),
        ("* x <=", "* y <=", "claims.some.predicate: character 23: 'y' is not known"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told(before: str, after: str, sentence: str, sweep: Sweep) -> None:
    with pytest.raises(UsageError, match=sentence):
        claims.check(sweep(text=EXPERIMENT.replace(before, after, 1)))


@pytest.mark.parametrize("has_delay", [False, True])
@pytest.mark.parametrize("how", ["file", "preset", "setting"])
def test_what_a_file_leaves_out_of_links_is_its_topologys_wherever_that_is_named(
    how: str, has_delay: bool, sweep: Sweep, tmp_path: Path
) -> None:
    text = EXPERIMENT.replace("link = {}", 'link = { delay = "3us" }' if has_delay else "")
    if how == "file":
        text = text.replace('topology = "single"', 'topology = "fast"')
    (tmp_path / "topologies").mkdir()
    single = Path("topologies/single.toml").read_text().partition("[link]")[0]
    (tmp_path / "topologies/fast.toml").write_text(
        f'{single}[link]\nmodel = "wire"\nbuffer = "150kB"\nrate = "1Gbit"\ndelay = "7us"\n'
    )
    if how == "preset":
        text = text.replace(
            "presets.few =", 'presets.fast = { about = "x", topology = "fast" }\npresets.few =', 1
        )
    sweep(text=text)
    settings = ["topology=fast"] if how == "setting" else []
    link = resolve.plan(
        "sweep", "fast" if how == "preset" else "course", settings
    ).shown.network.link
    assert (link.rate_bps, link.delay_ns) == (10**9, 3000 if has_delay else 7000)


SIZES = """
[sweeps.pace]
label = "hosts"

[sweeps.pace.points."4 hosts"]
topology = "small"
"workloads.ping.interval" = "5ms"

[sweeps.pace.points."12 hosts"]
topology = "paper12"
"""


def test_points_that_are_numbers_stand_there_and_may_set_the_topology(
    sweep: Sweep, tmp_path: Path
) -> None:
    plain = (
        named("")
        .replace('values = ["5 ms/10 us"]', 'values = ["12 hosts"]')
        .replace('"h1>h2"', '"*>h2"')
    )
    (tmp_path / "topologies").mkdir()
    single = Path("topologies/single.toml").read_text()
    (tmp_path / "topologies/small.toml").write_text(single)
    plan = sweep(text=plain + SIZES)
    limited = [arm for arm in plan.arms if arm.series == "limited"]
    assert [(arm.name, arm.x, arm.network.topology) for arm in limited] == [
        ("limited_4_hosts", 4.0, "small"),
        ("limited_12_hosts", 12.0, "paper12"),
    ]
    assert not panels.has_names(plan.run.arms)
    for arm in limited:
        assert arm.workloads[0].flows == tuple(
            (host, "h2") for host in arm.network.hosts if host != "h2"
        )
    assert [arm.qjump.epoch_ns for arm in limited if arm.qjump][1] == 12 * 2 * 1500 * 8 * 100, (
        "Eq. 2 of the arm's own hosts"
    )
    few = resolve.plan("sweep", "few", [])
    assert [arm.name for arm in few.arms if arm.series == "free"] == ["free_12_hosts"]
