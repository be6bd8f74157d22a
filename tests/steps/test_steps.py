"""The steps of a plan: their order, what they change, and how they are undone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from qjump_mn.errors import UsageError
from qjump_mn.executor.steps import (
    OWNER,
    AnyStep,
    Finish,
    Mark,
    Measure,
    Measured,
    Offloads,
    Read,
    ReadSettings,
    Run,
    Settings,
    Sleep,
    Start,
    Stop,
    Wait,
)
from qjump_mn.links import commands, htb, registry
from qjump_mn.model import filenames, hooks
from qjump_mn.model.plan import ArmPlan, Plan, Trial
from qjump_mn.model.topology import SWITCHES
from qjump_mn.programs import registry as programs
from qjump_mn.resolve import loading, plan
from qjump_mn.steps import script, traces
from qjump_mn.steps.apply_arm import apply_arm, introduce_flows, qjump
from qjump_mn.steps.compile import trial_steps
from qjump_mn.steps.network import bring_up
from qjump_mn.steps.script import Script
from tests.support import distributions
from tests.support.processes import execute

EMULATED = [
    name
    for name in loading.names("experiments")
    if "guest" in plan(name, "smoke", []).shown.backends
]


def fig3a(*settings: str) -> Plan:
    return plan("fig3a", "course", list(settings))


def arm_of(resolved: Plan, name: str) -> ArmPlan:
    return next(arm for arm in resolved.arms if arm.name == name)


def batches(steps: Sequence[AnyStep], program: str) -> dict[str, list[str]]:
    """The lines that ``program`` is given, by node."""
    lines: dict[str, list[str]] = {}
    for step in steps:
        if isinstance(step, Run) and step.argv == (program, "-batch", "-"):
            lines.setdefault(step.node, []).extend(step.stdin.splitlines())
    return lines


def test_the_script_names_every_host_switch_and_program() -> None:
    resolved = fig3a()
    text = "\n".join(script.lines(resolved))
    for switch in resolved.shown.network.switches:
        assert f"ovs-vsctl add-br {switch} " in text
    for host in resolved.shown.network.hosts:
        assert f"ip netns add {host}\n" in text
        wire = f"qdisc add dev {host}-eth0 root handle 5: wire rate 10000000bit limit 152200"
        assert f"ip netns exec {host} tc -batch - << 'END'\n{wire}" in text
    for arm in resolved.arms:
        assert f"# arm {arm.name} (" in text
    assert "qjau -p 6 --library -- ping -D -n -i 0.01 -c 3000 -s 56 -W 5 10.0.0.10" in text
    assert (
        "parent 5:1 handle 6: qjump epoch 28800000ns limit 1000 level 7 1550 level 6 1550 level 5 "
        "un" in text
    )
    assert "egress-qos-map 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7" in text


@pytest.mark.parametrize("model", ["wire", "htb", "tbf"])
def test_script_is_valid_shell(model: str) -> None:
    text = "\n".join(script.lines(plan("fig3a", "smoke", [f"link.model={model}"])))
    done = execute(["sh", "-n"], input=text)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("model", ["wire", "htb", "tbf"])
def test_qjump_is_below_class_5_1_in_every_link_model(model: str) -> None:
    text = "\n".join(script.lines(fig3a(f"link.model={model}")))
    assert "parent 5:1 handle 6: qjump" in text
    assert f"root handle 5:{'0' if model == 'htb' else ''} {model}" in text


def test_2015_line_has_a_budget_for_every_level() -> None:
    arm = arm_of(plan("fig3a", "htb2015", []), "qjump")
    assert arm.qjump is not None
    assert qjump(arm.qjump, "h8-eth0") == (
        "qdisc add dev h8-eth0 parent 5:1 handle 6: qjump2015 epoch 28800000ns level 7 1550 "
        "level 6 1550 level 5 0 level 4 46500 level 3 232500 level 2 0 level 1 0 level 0 465000"
    )


def test_htb_switches_select_one_of_eight_queues_by_pcp() -> None:
    calls = commands.ovs_qos({"s1-eth1": 10**7}, [OWNER])
    assert sum(argument.startswith("--id=@q-s1-eth1-") for argument in calls) == 8
    chosen = "priority=100,vlan_tci=0xd000/0xf000,actions=set_queue:6,NORMAL"
    assert f"cookie={htb.COOKIE},{chosen}" in commands.ovs_flows(htb.COOKIE)


def test_tbf_serves_pcp_7_first() -> None:
    network = fig3a().shown.network
    shaping = registry.of("tbf").shape(network.link, "s1-eth1", on_switch=True, seed=1)
    assert any("flower vlan_prio 7 classid 10:1" in line for line in shaping.tc)
    assert shaping.ip[0] == "link add name i-s1-eth1 type ifb"


# A treatment and what takes it back.

TREATED = [
    *(("fig3a", (f"link.model={model}",), ()) for model in ("wire", "htb", "tbf")),
    ("fig3a", (), ("dctcp",)),
    ("fig3a", (), ("prio-tbf",)),
    *((name, (), ()) for name in EMULATED),
]


@pytest.mark.parametrize(("experiment", "settings", "schemes"), TREATED)
def test_apply_arm_has_an_undo_for_every_step(
    experiment: str, settings: tuple[str, ...], schemes: tuple[str, ...]
) -> None:
    for arm in plan(experiment, "smoke", list(settings), schemes=schemes).run.arms:
        steps = tuple(apply_arm(arm, 1))
        assert steps
        for step in steps:
            if isinstance(step, Settings | Offloads):
                assert step.restored if isinstance(step, Settings) else step.on
                continue
            assert isinstance(step, Run) and step.undo is not None
            assert step.undo.node == step.node and step.undo.undo is None
            # What was saved is what the undo is given; else it says itself what to do.
            assert not (step.saves and step.undo.stdin) and (step.saves or step.undo != step)
        for program in ("tc", "ip"):
            made = batches(steps, program)
            undone = batches(undos(steps), program)
            assert made.keys() == undone.keys()
            assert [sorted(undone[node]) for node in made] == [
                sorted(removals(made[node])) for node in made
            ]


def undos(steps: Sequence[AnyStep]) -> list[Run]:
    """What takes ``steps`` back; of a batch whose lines are all tried, as if it were a plain
    one."""
    runs = [step.undo for step in steps if isinstance(step, Run) and step.undo is not None]
    return [replace(run, argv=tuple(word for word in run.argv if word != "-force")) for run in runs]


def removals(lines: Sequence[str]) -> Iterator[str]:
    """The line that removes each thing that ``lines`` add, but for what goes with another: what is
    below a qdisc, and the qdiscs of an ifb."""
    for line in lines:
        if match := re.match(r"qdisc add dev ([^i]\S*) (root|ingress|clsact)\b", line):
            yield f"qdisc del dev {match[1]} {match[2]}"
        elif match := re.match(r"link add name (\S+) ", line):
            yield f"link del {match[1]}"


def test_saved_settings_are_those_that_are_set() -> None:
    arm = arm_of(plan("fig3a", "smoke", [], schemes=("dctcp",)), "dctcp")
    setting = [step for step in apply_arm(arm, 1) if isinstance(step, Settings)]
    assert [step.node for step in setting] == list(arm.network.hosts)
    for step in setting:
        assert step.values == {"net.ipv4.tcp_congestion_control": "dctcp", "net.ipv4.tcp_ecn": "1"}
        assert step.restored
        printed = Script()
        text = "net.ipv4.tcp_congestion_control = dctcp\nnet.ipv4.tcp_ecn = 1\n"
        node = f"ip netns exec {step.node} sysctl"
        assert list(printed.lines((step,))) == [
            f"saved1=$({node} net.ipv4.tcp_congestion_control net.ipv4.tcp_ecn)",
            f"{node} -qp - << 'END'\n{text}END",
        ]
        assert list(printed.undo()) == [f"printf '%s\\n' \"$saved1\" | {node} -qp - || true"]


def test_arm_overrides_tcp_settings_of_its_experiment() -> None:
    resolved = plan(
        "fig3b", "smoke", ["tcp.tail_loss_probe=false", "arms.qjump.tcp.tail_loss_probe=true"]
    )
    for name, value in (("contended", 0), ("qjump", 3)):
        arm = arm_of(resolved, name)
        values = [step.values for step in apply_arm(arm, 1) if isinstance(step, Settings)]
        assert values == [{"net.ipv4.tcp_early_retrans": str(value)}] * len(arm.network.hosts)
    assert resolved.shown.tcp.told == "TCP without a tail-loss probe"


def test_least_timeout_is_a_setting_of_every_host() -> None:
    resolved = plan("fig3b", "smoke", ["tcp.min_rto_us=200"])
    arm = arm_of(resolved, "idle")
    (values,) = {
        tuple(step.values.items()) for step in apply_arm(arm, 1) if isinstance(step, Settings)
    }
    assert values == (("net.ipv4.tcp_rto_min_us", "200"),)
    assert resolved.shown.tcp.told == "TCP with timeouts from 0.2 ms"
    with pytest.raises(UsageError, match=r"tcp\.min_rto_us = 0 is out of range: use 1 to 1000000"):
        plan("fig3b", "smoke", ["tcp.min_rto_us=0"])


def test_segmentation_offload_needs_links_that_segment() -> None:
    resolved = plan("fig3b", "smoke", ["tcp.segmentation_offload=true"])
    steps = [step for step in apply_arm(arm_of(resolved, "idle"), 1) if isinstance(step, Offloads)]
    assert [step.node for step in steps] == list(resolved.shown.network.hosts)
    printed, node = Script(), "ip netns exec h1 ethtool -K"
    assert list(printed.lines((steps[0],))) == [
        f"{node} h1-eth0 tso on gso on",
        f"{node} h1-eth0.2 tso on gso on",
    ]
    assert list(printed.undo()) == [
        f"{node} h1-eth0.2 tso off gso off || true",
        f"{node} h1-eth0 tso off gso off || true",
    ]
    with pytest.raises(
        UsageError, match=r"tcp\.segmentation_offload: only links of model wire .* model htb"
    ):
        plan("fig3b", "smoke", ["tcp.segmentation_offload=true", "link.model=htb"])


def test_only_measured_flows_are_introduced_to_switches() -> None:
    resolved = plan("fig3a", "smoke", [])
    h8, h10 = (resolved.shown.network.addresses[host] for host in ("h8", "h10"))
    steps = {step.node: step.argv for step in introduce_flows(arm_of(resolved, "qjump"))}
    assert steps == {
        "h8": ("sh", "-c", f"qjau -p 6 --library -- ping -n -q -c 1 -w 5 {h10} >/dev/null || :"),
        "h10": ("sh", "-c", f"qjau -p 6 --library -- ping -n -q -c 1 -w 5 {h8} >/dev/null || :"),
    }
    tapped = arm_of(plan("fig3a", "paper", []), "contended")
    assert {step.node for step in introduce_flows(tapped)} == {"h8", "h10"}


def test_settings_of_open_vswitch_are_restored() -> None:
    (keeps,) = [
        step
        for step in bring_up(plan("fig3a", "smoke", []).shown.network)
        if isinstance(step, Run) and "other_config:max-revalidator=86400000" in step.argv
    ]
    assert keeps.saves == ("ovs-vsctl", "--timeout=5", "get", "Open_vSwitch", ".", "other_config")
    assert keeps.undo is not None and '"other_config=$(cat)"' in keeps.undo.argv[-1]


# The order of a trial's steps.

ORDER = re.compile(
    "T+(?:sT*)?"
    "b+"
    "(?:s[wf])*"
    "zM"
    "s*"
    "l"
    "c+T?"
    r"\("
    "(?:s+f+|m)"
    r"\)"
    "d+q?"
    "x*f*z?x*"
    "a+"
)
"""Treat, and begin traces; read back; what serves, each until it is ready; a moment; what disturbs;
the warm-up; counters, and queues begin to be recorded; what measures, to its end, or the trial's
duration; counters and queues; what disturbs is stopped or ends, what is under way arrives, what
serves is stopped, and traces; counters."""
LETTERS: dict[type[Any], str] = {
    Run: "T", Settings: "T", Offloads: "T", Start: "s", Wait: "w", Finish: "f", Stop: "x", Mark: "M", Measure: "(", Measured: ")",
}  # fmt: skip


def letter(step: AnyStep) -> str:
    if isinstance(step, Read) and step.output == filenames.QUEUES:
        return "q"
    if isinstance(step, Read | ReadSettings):
        return {"before": "b", "began": "c", "ended": "d", "after": "a"}[step.output.split("/")[1]]
    if isinstance(step, Sleep):
        return {"": "z", "load": "l", "measurement": "m"}[step.mark]
    return LETTERS[type(step)]


@pytest.mark.parametrize("experiment", EMULATED)
def test_trial_steps_are_in_order(experiment: str) -> None:
    for trial in plan(experiment, "smoke", [], replicates=1).trials():
        steps = trial_steps(trial)
        assert ORDER.fullmatch("".join(map(letter, steps)))
        treated = tuple(apply_arm(trial.arm, trial.seed))
        assert steps[: len(treated)] == treated
        assert [step.name for step in steps if isinstance(step, Mark)] == ["load"]
        started = [step.output for step in steps if isinstance(step, Start)]
        ended = [step.program for step in steps if isinstance(step, Finish | Stop)]
        assert len(set(started)) == len(started) and Counter(ended) == Counter(started), (
            "each ends once"
        )
        assert phases_of(steps) == planned_phases(trial)


def phases_of(steps: Sequence[AnyStep]) -> dict[str, str]:
    """The phase in which each program is started, by its output."""
    phase, started = "serve", {}
    for step in steps:
        if isinstance(step, Mark | Measure):
            phase = "load" if isinstance(step, Mark) else "probe"
        elif isinstance(step, Start) and step.output != traces.OUTPUT:
            started[step.output] = phase
    return started


def planned_phases(trial: Trial) -> dict[str, str]:
    return {
        launch.output: str(launch.phase)
        for workload in trial.arm.workloads
        for launch in programs.of(workload).launches(workload, trial)
    }


def test_the_counters_of_every_node_are_read_four_times() -> None:
    trial = plan("fig3a", "smoke", []).trials()[0]
    names = [step.output for step in trial_steps(trial) if isinstance(step, Read)]
    assert len(set(names)) == len(names)
    for when in ("before", "began", "ended", "after"):
        counters = {f"asbuilt/{when}/tc-{node}.json" for node in (SWITCHES, *trial.network.hosts)}
        assert {name for name in names if name.startswith(f"asbuilt/{when}/tc-")} == counters


@pytest.mark.parametrize("experiment", EMULATED)
def test_seed_changes_only_instants_and_programs_seeds(experiment: str) -> None:
    resolved = plan(experiment, "smoke", [], replicates=2)
    by_seed = {(trial.arm.name, trial.seed): trial_steps(trial) for trial in resolved.trials()}
    first, second = resolved.run.seeds
    for arm in resolved.run.arms:
        pair = by_seed[arm.name, first], by_seed[arm.name, second]
        assert instants(pair[0]) != instants(pair[1])
        assert [without_seed(step) for step in pair[0]] == [without_seed(step) for step in pair[1]]


def test_switches_hold_the_flows_of_all_pairs_of_hosts() -> None:
    def limits(experiment: str, preset: str) -> list[str]:
        network = plan(experiment, preset, []).shown.network
        return [
            step.argv[2]
            for step in bring_up(network)
            if isinstance(step, Run) and "upcall/set-flow-limit" in step.argv
        ]

    assert limits("fig9", "linux") == [str(144 * 143 * 10 * 8)]
    assert limits("fig11", "smoke") == []


def test_seed_draws_link_rates_but_leaves_bring_up_alone() -> None:
    within = ["link.tolerance=200ppm"]
    first, second = plan("fig3a", "paper", within, only=["idle"], replicates=2).trials()
    rates = [
        {
            int(rate)
            for lines in batches(steps, "tc").values()
            for rate in re.findall(r"wire rate (\d+)", str(lines))
        }
        for steps in map(trial_steps, (first, second))
    ]
    assert rates[0] != rates[1] and all(len(one) == 15 for one in rates), (
        "both ends of a link have one"
    )
    assert all(10**10 <= rate <= 10**10 + 2 * 10**6 for one in rates for rate in one)
    assert bring_up(first.network.skeleton()) == bring_up(second.network.skeleton())


def instants(steps: Sequence[AnyStep]) -> list[float]:
    return [step.after_s for step in steps if isinstance(step, Sleep)]


def without_seed(step: AnyStep) -> AnyStep:
    """``step`` with another instant, and without the numbers that programs and links draw from."""
    if isinstance(step, Sleep):
        return replace(step, after_s=0.0)
    if isinstance(step, Start) and "--seed" in step.argv:
        place = step.argv.index("--seed") + 1
        return replace(step, argv=(*step.argv[:place], *step.argv[place + 1 :]))
    if isinstance(step, Run):
        return replace(step, stdin=re.sub(r" seed \d+$", " seed", step.stdin, flags=re.MULTILINE))
    return step


def test_warm_up_exceeds_plan_by_less_than_a_phase() -> None:
    resolved = plan("fig3a", "smoke", [], replicates=8)
    for trial in resolved.trials():
        (ping,) = [workload for workload in trial.arm.workloads if hooks.phase_ns(workload)]
        offset, warmup = instants(trial_steps(trial))[:2]
        assert 0 <= offset <= 0.1
        assert trial.warmup_ns <= round(warmup * 1e9) <= trial.warmup_ns + hooks.phase_ns(ping)


# Link models of somebody else's.

CABLE = """
from qjump_mn.links.base import LinkModel, Shaping


class Cable(LinkModel):
    name = "cable"
    modules = ("sch_netem",)

    def shape(self, link, device, *, on_switch, seed):
        line = f"qdisc add dev {device} root handle 5: cable rate {link.rate_bps}bit"
        return Shaping((), (line,), (f"qdisc del dev {device} root",), ())
"""


@pytest.fixture
def cable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution with a link model "cable" is installed."""
    points, modules = {"cable": "cables_of_somebody:Cable"}, {"cables_of_somebody": CABLE}
    monkeypatch.syspath_prepend(
        str(distributions.make(tmp_path, "cables", registry.GROUP, points, modules))
    )
    registry.of.cache_clear()
    yield
    registry.of.cache_clear()


@pytest.mark.usefixtures("cable")
def test_a_link_model_of_an_extension_shapes_the_links() -> None:
    resolved = plan("fig3a", "smoke", ["link.model=cable", "link.trunk_rate=40Mbit"])
    network = resolved.shown.network
    assert network.link.model == network.trunk.model == "cable"
    (loading_modules,) = [
        step for step in bring_up(network) if isinstance(step, Run) and "sch_netem" in step.argv
    ]
    assert loading_modules.argv[0] == "modprobe" and "sch_wire" not in loading_modules.argv
    arm = arm_of(resolved, "qjump")
    lines = batches(tuple(apply_arm(arm, 1)), "tc")
    rates = network.by_device()
    assert lines[""] == [
        f"qdisc add dev {device} root handle 5: cable rate {rates[device].rate_bps}bit"
        for device in network.switch_ports()
    ]
    for host in network.hosts:
        assert lines[host][0] == f"qdisc add dev {host}-eth0 root handle 5: cable rate 10000000bit"
        assert " parent 5:1 handle 6: qjump epoch " in lines[host][1]
    # A model without priorities of its own is given them where no limiter has any.
    unlimited = replace(arm, qjump=None)
    assert unlimited.uses_levels
    assert "prio bands 8" in batches(tuple(apply_arm(unlimited, 1)), "tc")["h1"][1]


@pytest.mark.usefixtures("cable")
@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("link.model=xyz",
         r"link\.model: there is no link model 'xyz': known are wire, htb, tbf, cable$"),
        ("link.model=cabel", "there is no link model 'cabel': did you mean 'cable'"),
        ("link.orphan=false",
         "orphan = false is for links of model wire: cable releases no packet early"),
    ],
)  # fmt: skip
def test_unsupported_link_model_settings_are_refused(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        plan("fig3a", "smoke", ["link.model=cable", setting])
