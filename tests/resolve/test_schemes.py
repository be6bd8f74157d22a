"""Schemes: what their files resolve to, the lines they stand for, the sentence for each that cannot
be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qjump_mn.errors import UsageError
from qjump_mn.executor.steps import MACHINE, Run
from qjump_mn.links import registry as links
from qjump_mn.model import hooks
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.resolve import loading, plan
from qjump_mn.steps import script
from qjump_mn.steps.apply_arm import apply_arm, limiter

MINE = """
label = "mine"
about = "a scheme of somebody's own"
look = { colour = "#123456", marker = "o" }
parameters = { share = 0.5 }
switch_port = ["qdisc add dev {dev} parent {parent} handle 20: bfifo limit {share * buffer}"]
"""


def with_schemes(*names: str, preset: str = "course", settings: tuple[str, ...] = ()) -> Plan:
    return plan("fig3a", preset, list(settings), schemes=names)


def arm(resolved: Plan, name: str) -> ArmPlan:
    return next(one for one in resolved.arms if one.name == name)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder with a scheme "mine"."""
    (tmp_path / "schemes").mkdir()
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    path = tmp_path / "schemes" / "mine.toml"
    path.write_text(MINE)
    return path


@pytest.mark.parametrize("name", loading.names("schemes"))
def test_every_scheme_may_be_added_to_every_experiment_that_compares(name: str) -> None:
    for experiment in ("fig3a", "fig3b", "fig3c", "fig5", "fig6"):
        # 2015's rules need a budget for level 0, which is unlimited in all others.
        settings = [
            f"qjump.{next(iter(loading.experiment(experiment, 'smoke', [])[0].qjump))}.factors.0=1000"
        ]
        resolved = plan(experiment, "smoke", settings, schemes=[name])
        key = name.replace("-", "_")
        assert key in resolved.shown.figure.arms
        assert name in {one.scheme.name for one in resolved.arms if key in (one.series, one.name)}


def test_an_arm_may_be_called_as_its_scheme_is() -> None:
    resolved = plan("fig3a", "smoke", [], schemes=["fq-codel"], only=["idle", "fq-codel"])
    assert [one.name for one in resolved.run.arms] == ["idle", "fq_codel"]


def test_a_scheme_meets_the_workloads_of_the_contended_arm() -> None:
    resolved = with_schemes("dctcp")
    added, contended = arm(resolved, "dctcp"), arm(resolved, "contended")
    assert added.workloads == contended.workloads
    assert (added.label, added.scheme.congestion_control, added.scheme.ecn) == (
        "DCTCP",
        "dctcp",
        True,
    )
    assert resolved.shown.figure.arms[-1] == "dctcp"


def test_an_arm_that_has_the_scheme_already_is_not_added_again() -> None:
    assert [one.name for one in with_schemes("qjump").arms] == [
        one.name for one in with_schemes().arms
    ]


def test_thresholds_follow_the_buffer() -> None:
    for buffer, least in (("152.2kB", 9893), ("304.4kB", 19786)):
        (line,) = arm(
            with_schemes("dctcp", settings=(f"link.buffer={buffer}",)), "dctcp"
        ).scheme.switch_port
        assert f" min {least} max {least + 1522} avpkt 1522 " in line


def test_an_experiment_may_change_a_parameter() -> None:
    (line,) = arm(
        with_schemes("dctcp", settings=("schemes.dctcp.parameters.mark=0.2",)), "dctcp"
    ).scheme.switch_port
    assert " min 30440 " in line


def test_token_buckets_have_the_limiters_rates() -> None:
    qjump = arm(with_schemes("prio-tbf"), "prio_tbf").qjump
    assert qjump is not None
    lines = limiter(qjump, "h1-eth0", with_schemes().shown.network)
    bucket = "tbf rate 430555bit burst 1550 limit 1522000 overhead 28 mpu 84"
    assert f"qdisc add dev h1-eth0 parent 6:2 handle 67: {bucket}" in lines
    assert "qdisc add dev h1-eth0 parent 6:3 handle 66: pfifo limit 100" in lines, (
        "a level without a factor is not limited"
    )


def test_departure_times_are_given_to_limited_levels_and_kept_by_fq() -> None:
    """The command of the host, what takes it back, and an fq that neither paces nor lets go
    early."""
    of_plan = arm(with_schemes("qjump-edt"), "qjump_edt")
    assert of_plan.qjump is not None
    lines = limiter(of_plan.qjump, "h1-eth0", of_plan.network)
    kept = "fq limit 2000 flow_limit 2000 nopacing horizon 4000s timer_slack 0"
    assert f"qdisc add dev h1-eth0 parent 6:2 handle 67: {kept}" in lines
    assert "qdisc add dev h1-eth0 parent 6:3 handle 66: pfifo limit 100" in lines
    (given,) = (
        step
        for step in apply_arm(of_plan, 1)
        if isinstance(step, Run) and (step.node, step.argv[0]) == ("h1", "qjump-edt")
    )
    assert " ".join(given.argv) == (
        "qjump-edt add h1-eth0 epoch 28800000 slack 25000 limit 1000 level 7 1550 level 6 1550 "
        "level 4 46500 level 3 232500 level 0 465000 priomap 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 "
        "overhead 28 mpu 84"
    )
    assert given.undo is not None
    assert given.undo.argv == ("qjump-edt", "del", "h1-eth0")


def test_where_packets_are_not_cut_before_they_are_charged_tcp_makes_single_frames() -> None:
    for preset, lines in (("course", set()), ("paper", {"h1-eth0", "h1-eth0.2"})):
        steps = apply_arm(arm(with_schemes("qjump-edt", preset=preset), "qjump_edt"), 1)
        of_host = "".join(
            step.stdin for step in steps if isinstance(step, Run) and step.node == "h1"
        )
        assert {*re.findall(r"link set dev (\S+) gso_max_segs 1\n", of_host)} == lines


def test_only_switch_ports_pause() -> None:
    network = arm(with_schemes("pause"), "pause").network
    wire = links.of("wire")
    (line,) = wire.shape(network.link, "s1-eth1", on_switch=True, seed=1).tc
    assert line.endswith(" pause 15220 7610")
    (line,) = wire.shape(network.link, "h1-eth0", on_switch=False, seed=1).tc
    assert "pause" not in line
    network = arm(with_schemes("pfc"), "pfc").network
    (line,) = wire.shape(network.link, "s1-eth1", on_switch=True, seed=1).tc
    assert "pause 15220 7610 pfc 0,1,2,3,4,5,6,7" in line


def test_a_users_scheme_is_a_file(mine: Path) -> None:
    resolved = with_schemes("mine")
    assert arm(resolved, "mine").scheme.switch_port == (
        "qdisc add dev {dev} parent {parent} handle 20: bfifo limit 76100",
    )
    line = "qdisc add dev s0-eth1 parent 5:1 handle 20: bfifo limit 76100"
    (at_switches,) = [
        step
        for step in apply_arm(arm(resolved, "mine"), 1)
        if isinstance(step, Run) and step.node == MACHINE and step.argv[0] == "tc"
    ]
    assert line in at_switches.stdin.splitlines()
    assert line in "\n".join(script.lines(resolved)).splitlines()
    assert resolved.shown.schemes["mine"].look.colour == "#123456"


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("-buffer + 2 * buffer", 152200),
        ("min(buffer, 3 * frame) / 2", 2283),
        ("max(mtu, share, -1)", 1500),
        (" abs(1 - 3) ", 2),
    ],
)
def test_a_field_is_an_expression(text: str, limit: int, mine: Path) -> None:
    mine.write_text(MINE.replace("share * buffer", text))
    assert arm(with_schemes("mine"), "mine").scheme.switch_port[0].endswith(f" limit {limit}")


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('label = "mine"', "", "scheme 'mine': Object missing required field `label`"),
        (
            '"o"',
            '"o", dashes = "wavy"',
            "scheme 'mine': look.dashes: 'wavy' is not possible: known are ",
        ),
        (
            "share * buffer",
            "shard * rate",
            "mine': switch_port: {shard * rate}: character 1: 'shard' is",
        ),
        (
            "share * buffer",
            "shard",
            "'shard' is not known: known are rate, buffer, frame, mtu, share",
        ),
        (
            "share * buffer",
            "share ** buffer",
            "'share ** buffer' is not allowed in an expression: use numbers",
        ),
        (
            "share * buffer",
            "share < buffer",
            "'share < buffer' is a condition, but must be a number",
        ),
        (
            "share * buffer",
            "share.buffer",
            "{share.buffer}: character 1: 'share.buffer' is not known",
        ),
        (
            "share * buffer",
            "rate * dev",
            "character 8: 'dev' cannot be part of an expression: write {dev}",
        ),
        ("share * buffer", "", "{}: character 1: '' is not an expression"),
        (
            "share * buffer",
            "buffer / (share - 0.5)",
            "{buffer / (share - 0.5)}: it divides by zero",
        ),
        (
            "qdisc add dev {dev}",
            "tc qdisc add dev {dev}",
            "is not a line for tc: write it without 'tc'",
        ),
        ("share = 0.5", "frame = 0.5", "parameters.frame: this name is taken by the link"),
        ('["', 'levels = true\nswitch_port = ["', "not valid TOML"),
        (
            "parameters",
            'trunk_port = ["qdisc add dev {dev} parent {parent} pfifo"]\nparameters',
            "unknown field `trunk_port`",
        ),
        ("share = 0.5", "level = 0.5", "parameters.level: this name is taken by the link"),
        (
            "parameters",
            'limiter = "drop"\nparameters',
            "a limiter without levels limits nothing but level 0",
        ),
        (
            "parameters",
            'congestion_control = "cubic; reboot"\nparameters',
            "is not a kernel's name of a congestion control",
        ),
        (
            "parameters",
            'link = { model = "tbf" }\nparameters',
            "have no place for queues at switch ports: use model wire",
        ),
        (
            "parameters",
            'link = { xoff = "100kB", xon = "10kB" }\nparameters',
            "ports of s0 may send",
        ),
        (
            "parameters",
            'link = { xoff = "10kB", xon = "20kB" }\nparameters',
            "xoff = 10000B and xon = 20000B do not fit",
        ),
        (
            "parameters",
            'link = { xoff = "20kB", xon = "20kB" }\nparameters',
            "xoff = 20000B and xon = 20000B do not fit",
        ),
        ("parameters", "link = { pfc = true }\nparameters", "pfc = true needs thresholds"),
        (
            "parameters",
            'link = { xoff = "15220B", xon = "7610B", pfc = true }\nparameters',
            "pfc pauses levels of the links' own queues",
        ),
    ],
)
def test_a_scheme_that_cannot_be_is_refused_in_one_sentence(
    before: str, after: str, sentence: str, mine: Path
) -> None:
    assert before in MINE
    mine.write_text(MINE.replace(before, after, 1))
    with pytest.raises(UsageError) as refusal:
        with_schemes("mine")
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_line_with_a_level_is_one_for_each(mine: Path) -> None:
    line = (
        '"qdisc add dev {dev} parent 20:{8 - level} handle 3{level}: bfifo limit {share * buffer}"'
    )
    mine.write_text(MINE.replace('switch_port = ["', f'levels = true\nswitch_port = [{line}, "'))
    *each, last = arm(with_schemes("mine"), "mine").scheme.switch_port
    assert each == [
        f"qdisc add dev {{dev}} parent 20:{8 - level} handle 3{level}: bfifo limit 76100"
        for level in range(7, -1, -1)
    ]
    assert last == "qdisc add dev {dev} parent {parent} handle 20: bfifo limit 76100"


def test_queues_below_a_port_see_levels_as_priorities(mine: Path) -> None:
    def marks(text: str) -> list[str]:
        mine.write_text(text)
        at_switches = [
            line
            for step in apply_arm(arm(with_schemes("mine"), "mine"), 1)
            if isinstance(step, Run) and step.node == MACHINE and step.argv[0] == "tc"
            for line in [
                *step.stdin.splitlines(),
                *(step.undo.stdin.splitlines() if step.undo else []),
            ]
        ]
        return [line for line in at_switches if "clsact" in line or "skbedit" in line]

    assert marks(MINE) == []
    found = marks(MINE.replace("parameters", "levels = true\nparameters"))
    ports = with_schemes("mine").shown.network.switch_ports()
    of_one = [line for line in found if f"dev {ports[0]} " in line]
    assert len(found) == len(ports) * len(of_one) and len(of_one) == 9
    frame = f"filter add dev {ports[0]} egress pref 1 protocol 802.1q flower vlan_prio"
    assert f"{frame} 6 action skbedit priority 6" in of_one
    assert of_one[-1] == f"qdisc del dev {ports[0]} clsact"


def test_what_must_be_root_stands_on_a_vlan_device_with_queues_and_leaves_one_without() -> None:
    etf = arm(with_schemes("etf"), "etf")
    steps = [step for step in apply_arm(etf, 1) if isinstance(step, Run) and step.node == "h8"]
    made, placed = (steps[at] for at in range(1, 3))
    undone = made.undo
    assert undone is not None and placed.undo is not None
    for step, queues, below in ((made, " numtxqueues 8", 1), (undone, "", 8)):
        lines = step.stdin.splitlines()
        assert step.argv[-1].splitlines()[:2] == [f"ethtool -L h8-eth0 tx {below}", "ip -batch -"]
        assert lines[0] == "link del h8-eth0.2"
        assert lines[1].startswith(f"link add link h8-eth0 name h8-eth0.2{queues} type vlan id 2 ")
        assert "addr add 10.0.0.8/24 dev h8-eth0.2" in lines
        assert step.stdin.count("nud permanent") == len(etf.network.hosts) - 1
    first, *queues_below = placed.stdin.splitlines()
    assert first.startswith("qdisc add dev h8-eth0.2 root handle 100: taprio num_tc 8 ")
    # A full-size frame takes 1.2336 ms at 10 Mb/s.
    assert (
        " sched-entry S c0 1233600 sched-entry S 3f 22204800 sched-entry S 00 1233600 flags 0x1 "
        in first
    )
    assert [line.split()[5] for line in queues_below] == [
        f"100:{number}" for number in range(8, 0, -1)
    ]
    assert all(
        line.endswith(" etf clockid CLOCK_TAI delta 1233600 skip_sock_check")
        for line in queues_below
    )
    assert placed.undo.stdin == "qdisc del dev h8-eth0.2 root\n"
    others = [step for step in apply_arm(arm(with_schemes(), "qjump"), 1) if isinstance(step, Run)]
    assert not any("numtxqueues" in " ".join(step.argv) for step in others)


def test_gates_come_after_what_else_is_added_to_their_interface() -> None:
    taprio = arm(with_schemes("taprio"), "taprio")
    (replies,) = (host for workload in taprio.workloads for host, _ in hooks.echo_replies(workload))
    lines = [
        line
        for step in apply_arm(taprio, 1)
        if isinstance(step, Run) and step.node == replies and step.argv[0] == "tc"
        for line in step.stdin.splitlines()
        if f"dev {replies}-eth0.2 " in line
    ]
    assert lines[0].endswith(" clsact")
    whole = f"max-sdu{' 1500' * 8}"
    gates = "sched-entry S c0 1233600 sched-entry S 3f 22204800 sched-entry S 00 1233600"
    assert lines[-1] == (
        f"qdisc change dev {replies}-eth0.2 root handle 100: taprio base-time 0 {whole} {gates} "
        "clockid CLOCK_TAI"
    )


def test_an_arm_of_another_scheme_keeps_its_name(mine: Path) -> None:
    mine.rename(mine.with_name("contended.toml"))
    with pytest.raises(UsageError, match="has an arm 'contended' with another scheme, 'none'"):
        with_schemes("contended")


def test_an_experiment_that_compares_nothing_says_so() -> None:
    with pytest.raises(
        UsageError, match=r"experiment 'ratelimit' compares parameters, not schemes"
    ):
        plan("ratelimit", "smoke", [], schemes=["dctcp"])


def test_a_limiting_scheme_needs_a_limiter() -> None:
    with pytest.raises(
        UsageError,
        match=r"scheme 'qjump' needs a limiter, and the experiment has none: add a table \[qjump\.NAME\]",
    ):
        plan("table1", "smoke", [], schemes=["qjump"])
