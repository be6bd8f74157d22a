"""Experiments and topologies: what they resolve to, and the sentence for each thing that cannot
be."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qjump_mn.analysis.check import check
from qjump_mn.errors import UsageError
from qjump_mn.model import units
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.programs import registry
from qjump_mn.programs.iperf.program import IperfPlan
from qjump_mn.programs.ping.program import PingPlan
from qjump_mn.resolve import loading, plan
from qjump_mn.resolve.wiring import resolve_network


def fig3a(*settings: str, preset: str = "course") -> Plan:
    return plan("fig3a", preset, list(settings))


@pytest.mark.parametrize("name", loading.names("experiments"))
def test_every_preset_of_every_experiment_resolves(name: str) -> None:
    presets = loading.presets(name)
    assert {"smoke", "course", "paper"} <= set(presets)
    for preset, about in presets.items():
        assert about
        resolved = plan(name, preset, [])
        check(resolved)  # as `run` does
        assert resolved.trials()


@pytest.mark.parametrize("name", loading.names("topologies"))
def test_every_topology_resolves(name: str) -> None:
    spec = loading.topology(name)
    network = resolve_network(name, spec, "mine", spec.link)
    assert network.path(network.hosts[0], network.hosts[-1])[0][0] == network.hosts[0]


def test_paper12_is_the_papers_tree() -> None:
    network = fig3a().shown.network
    assert network.hosts == tuple(f"h{index}" for index in range(1, 13))
    assert network.path("h8", "h10") == (("h8", "s2"), ("s2", "s0"), ("s0", "s3"), ("s3", "h10"))
    assert network.path("h7", "h9") == (("h7", "s2"), ("s2", "h9"))


def test_course_parameters_are_those_of_2015() -> None:
    resolved = fig3a()
    arm = next(arm for arm in resolved.arms if arm.name == "qjump")
    assert arm.qjump is not None
    assert arm.qjump.epoch_ns == 28_800_000
    assert arm.qjump.budget_bytes == (300 * 1550, 0, 0, 150 * 1550, 30 * 1550, 0, 1550, 1550)
    probe = arm.workloads[0]
    assert isinstance(probe, PingPlan)
    assert (probe.flows, probe.level, probe.interval_ns, probe.count) == (
        (("h8", "h10"),),
        6,
        10_000_000,
        3000,
    )


def test_levels_are_marked_only_in_arms_that_use_them() -> None:
    for arm in fig3a().arms:
        assert [workload.level for workload in arm.workloads] == [
            {"ping": 6, "probe": 7}.get(workload.name, 0) if arm.uses_levels else 0
            for workload in arm.workloads
        ]


def test_a_window_is_only_for_the_workloads_it_names() -> None:
    arm = next(arm for arm in fig3a().arms if arm.name == "window_only")
    assert {type(workload): workload.window_bytes for workload in arm.workloads} == {
        PingPlan: None,
        IperfPlan: 15500,
    }


def test_what_the_limiter_does_is_computed_beforehand() -> None:
    constants = fig3a().judged.constants
    assert constants["limiter_drop_predicted_loss"] == pytest.approx(3 / 4)
    assert constants["limiter_delay_predicted_wait_ms"] == pytest.approx(288)


def test_the_hash_is_of_the_plan_and_of_nothing_else() -> None:
    assert fig3a().hash == fig3a().hash
    assert fig3a().hash != fig3a("link.rate=11Mbit").hash
    assert fig3a().hash != plan("fig3a", "course", [], seed=2).hash


def test_a_trial_survives_json() -> None:
    for trial in fig3a().trials():
        assert (
            msgspec.json.decode(msgspec.json.encode(trial), type=Trial, dec_hook=registry.decode)
            == trial
        )


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("link.ratee=5Mbit", "no setting 'link.ratee': did you mean 'link.rate'"),
        ("link.rate=10", "link.rate: '10' is not a rate"),
        ("link.rate=10ms", "link.rate: '10ms' is not a rate"),
        ("link.rate=0bit", "out of range"),
        ("link.model=htp", "link.model: there is no link model 'htp': did you mean 'htb'?"),
        ("link.buffer=100B", "is less than a full-size frame"),
        ("workloads.ping.level=9", "'9' is not a level: use 0 to 7; 7 is the most urgent"),
        ("workloads.ping.level=-1", "is not a level"),
        ("workloads.ping.flows=h8>h99", "no host 'h99'"),
        ("workloads.ping.flows=h8", "'h8' is not a flow"),
        ("workloads.ping.flows=h8>h8", "is not a flow"),
        ("workloads.ping.interval=0ms", "interval: 0ns is out of range"),
        ("workloads.bulk.streams=0", "streams: 0 is out of range"),
        ("qjump.course.epoch=0ns", "an epoch of 0 us is out of range"),
        ("qjump.course.factors.7=0.01", "less than the smallest frame costs (84 bytes)"),
        ("qjump.course.factors.8=1", "'8' is not a level"),
        (
            "schemes.qjump.limiter=hold",
            "'hold' is not possible: known are 2015, delay, drop, edt, tbf",
        ),
        (
            "arms.limiter_drop.scheme=qjump-2015",
            "arms.limiter_drop: frames without a level would have level 0, of which the limiter "
            "lets nothing pass",
        ),
        ("arms.limiter_drop.scheme=qjmp", "no scheme 'qjmp': did you mean 'qjump'"),
        (
            "arms.qjump.scheme=none",
            "arms.qjump: qjump = 'course' needs a scheme that limits, and 'none' does not",
        ),
        ("schemes.window.window=1kB", "a window of 1kB is smaller than the kernel's minimum"),
        ("arms.qjump.qjump=nothing", "no limiter qjump.nothing"),
        ("arms.qjump.workloads=pong", "no workload 'pong'"),
        ("figure.arms=idel", "no arm 'idel': did you mean 'idle'"),
        ("duration=1ns", "a duration of 1ns is out of range"),
        ("replicates=0", "replicates must be 1 to 1000 (got 0)"),
        ("replicates=many", "replicates: must be a whole number (got a text)"),
        ("schemes.none.ecn=maybe", "schemes.none.ecn: must be true or false (got a text)"),
        ("ecn=true", "has no setting 'ecn': write the whole name, one of schemes."),
        ("duration", "is not a setting: write key=value"),
        ("topology=paper13", "no topology 'paper13': did you mean 'paper12'"),
        ("topology=single", "no host"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_one_sentence(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError) as refusal:
        fig3a(setting)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_only_the_arms_asked_for_are_run() -> None:
    two = plan("fig3a", "smoke", [], replicates=2, only=["qjump", "idle"])
    assert [trial.name for trial in two.trials()] == ["idle/1", "qjump/1", "idle/2", "qjump/2"]
    assert two.hash != plan("fig3a", "smoke", [], replicates=2).hash
    with pytest.raises(UsageError, match=r"there is no arm 'qjmp': did you mean 'qjump'\?"):
        plan("fig3a", "smoke", [], only=["qjmp"])


def test_2015_lets_nothing_pass_of_a_level_without_a_factor() -> None:
    resolved = plan("fig3a", "htb2015", [])
    limiters = {arm.name: arm.qjump for arm in resolved.arms}
    old, repaired = limiters["qjump"], limiters["repaired"]
    assert old and repaired
    assert (old.mode, old.epochs, repaired.mode, repaired.epochs) == (
        "2015",
        "first-packet",
        "delay",
        "rolling",
    )
    assert old.budget_bytes == repaired.budget_bytes
    assert [level for level in range(8) if old.blocks(level)] == [1, 2, 5]
    assert not any(repaired.blocks(level) for level in range(8))
    assert any("nothing of level 1, 2, 5 passes" in remark for remark in resolved.shown.remarks)
    with pytest.raises(
        UsageError,
        match=r"arms\.qjump: ping would have level 5, of which the limiter lets nothing pass",
    ):
        plan("fig3a", "htb2015", ["workloads.ping.level=5"])
    with pytest.raises(UsageError, match="in mode 2015 epochs start with the first packet"):
        plan("fig3a", "htb2015", ["qjump.course.epochs=aligned"])


def test_a_preset_leaves_out_what_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scaled = fig3a(preset="10g")
    assert [arm.name for arm in scaled.arms] == [
        "idle",
        "contended",
        "qjump",
        "priority_only",
        "window_only",
        "qjump_drop",
    ]
    assert "limiter_drops" not in scaled.judged.claims and scaled.shown.backends == ("simulator",)
    text = (Path(loading.__file__).parents[2] / "experiments" / "fig3a.toml").read_text()
    (tmp_path / "experiments").mkdir()
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    for wrong in ("arms.prob", "arm.probe", "title.text"):
        (tmp_path / "experiments" / "fig3a.toml").write_text(
            text.replace('"workloads.probe"', f'"{wrong}"')
        )
        with pytest.raises(
            UsageError,
            match=f"^experiment 'fig3a': presets.10g.without: there is no '{wrong}' to leave out$",
        ):
            fig3a(preset="10g")


def test_names_that_do_not_exist_are_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no experiment 'fig3z': did you mean 'fig3"):
        plan("fig3z", "course", [])
    with pytest.raises(UsageError, match="no preset 'curse': did you mean 'course'"):
        plan("fig3a", "curse", [])


@pytest.mark.parametrize(
    ("key", "within"),
    [
        ("link.host_jitter_of", "link.host_jitter_of.NAME"),
        ("qjump.course.factors", "qjump.course.factors.7"),
        ("workloads.ping", "workloads.ping.program"),
        ("arms.idle", "arms.idle.label"),
    ],
)
def test_a_table_is_set_by_what_is_in_it(key: str, within: str) -> None:
    with pytest.raises(
        UsageError, match=rf"{key} is a table, not a setting: .*, such as {within}=VALUE$"
    ):
        fig3a(f"{key}={{h1=1}}")


def test_an_experiment_has_the_names_of_all_figures_that_it_stands_for() -> None:
    assert [
        loading.experiment_called(name) for name in ("fig1a", "fig1b", "fig1c", "fig5", "fig0")
    ] == [
        "fig5",
        "fig3b",
        "fig3c",
        "fig5",
        "fig0",
    ]
    every = [one for name in loading.names("experiments") for one in (name, *loading.also(name))]
    assert len(every) == len(set(every))


def test_settings_reach_the_plan() -> None:
    resolved = fig3a(
        "link.rate=100Mbit",
        "duration=2s",
        "workloads.ping.flows=h1>h2, h3>h4",
        "qjump.course.factors.5=2.5",
    )
    assert resolved.shown.network.link.rate_bps == 10**8
    assert resolved.run.duration_ns == 2 * 10**9
    arm = next(arm for arm in resolved.arms if arm.name == "qjump")
    assert arm.workloads[0].flows == (("h1", "h2"), ("h3", "h4"))
    assert arm.qjump is not None
    assert arm.qjump.budget_bytes[5] == 3875
    assert arm.qjump.epoch_ns == 2_880_000


def test_a_users_own_experiment_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "experiments").mkdir()
    ours = next(
        folder / "fig3a.toml"
        for folder in loading.folders("experiments")
        if (folder / "fig3a.toml").exists()
    )
    (tmp_path / "experiments" / "fig3a.toml").write_text(
        ours.read_text().replace('title = "', 'title = "My own: ', 1)
    )
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    assert fig3a().shown.title.startswith("My own: ")


def test_a_file_that_is_no_toml_or_has_unknown_fields_is_refused_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "experiments").mkdir()
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    (tmp_path / "experiments" / "broken.toml").write_text("title = ")
    with pytest.raises(UsageError, match=r"broken\.toml is not valid TOML: Invalid value"):
        plan("broken", "course", [])
    ours = next(
        folder / "fig3a.toml"
        for folder in loading.folders("experiments")
        if (folder / "fig3a.toml").exists()
    )
    (tmp_path / "experiments" / "odd.toml").write_text(
        ours.read_text()
        .replace("payload", "pay")
        .replace("[arms.idle]\n", "[arms.idle]\nwindov = 3\n")
    )
    with pytest.raises(
        UsageError, match=r"experiment 'odd': arms\.idle: Object contains unknown field `windov`"
    ):
        plan("odd", "course", [])


@pytest.mark.parametrize(
    ("switches", "sentence"),
    [
        ({"s1": ["h1"], "s2": ["h2"]}, "must form a single tree"),
        ({"s1": ["s2", "h1"], "s2": ["s1", "h2"]}, "is a loop"),
        ({"s0": ["h1", "h2"], "s1": ["s2"], "s2": ["s1"]}, "is a loop"),
        ({"s1": ["h1", "h1"]}, "is below both"),
        ({"s1": ["h1"]}, "a network needs at least two hosts"),
    ],
)
def test_a_topology_that_is_no_tree_is_refused(
    switches: dict[str, list[str]], sentence: str
) -> None:
    spec = msgspec.structs.replace(loading.topology("single"), switches=switches)
    with pytest.raises(UsageError, match=sentence):
        resolve_network("odd", spec, "mine", spec.link)


@given(st.sampled_from([units.Rate, units.Duration, units.Size]), st.integers(0, 10**12))
def test_a_quantity_survives_its_own_text(kind: type[units.Quantity], value: int) -> None:
    assert kind.parse(str(kind(value))) == value


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        (units.Duration, "0.5ns", "'0.5ns' is not a whole number of ns"),
        (units.Size, "1.5B", "'1.5B' is not a whole number of bytes"),
        (units.Rate, "0.0001kbit", "'0.0001kbit' is not a whole number of bit/s"),
    ],
)
def test_quantity_is_a_whole_number_of_base_units(
    kind: type[units.Quantity], text: str, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        kind.parse(text)


@pytest.mark.parametrize(
    "text", ["", "10", "10 furlongs", "-5ms", "1e3ms", "ms", "10 M bit", None, 10]
)
def test_what_is_no_quantity_is_refused(text: object) -> None:
    with pytest.raises(UsageError):
        units.Duration.parse(text)
