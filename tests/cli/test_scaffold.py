"""``new``: files that run as they are, and what is refused."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from qjump_mn import resolve
from qjump_mn.analysis.check import check
from qjump_mn.cli import scaffold
from qjump_mn.errors import UsageError
from qjump_mn.resolve import loading
from qjump_mn.results import manifest
from qjump_mn.steps import script
from tests.support.processes import cli


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_experiment_can_be_run_and_judged(here: Path) -> None:
    assert scaffold.write("experiment", "mine") == [Path("experiments/mine.toml")]
    plan = resolve.plan("mine", loading.usual_preset("mine"), [])
    check(plan)
    assert plan.shown.backends == ("guest", "simulator")
    assert [arm.name for arm in plan.arms] == ["idle", "contended", "qjump"]
    assert plan.shown.title == "mine" and len(plan.judged.claims) == 2
    assert any("ping" in line for line in script.lines(plan))


@pytest.mark.parametrize("kind", ["experiment", "topology"])
def test_what_is_new_runs_with_the_command_that_is_printed(kind: str, here: Path) -> None:
    """In the simulator; it ends with 0, for every claim holds."""
    printed = cli("new", kind, "mine").stdout
    words = shlex.split(printed.partition("and run  qjump-mn ")[2])
    done = cli(*words)
    what = done.stdout.splitlines()[1]
    assert done.returncode == 0, done.stderr
    assert what.startswith(
        "mine, preset course: 3 arms" if kind == "experiment" else "fig3a (QJump (NSDI'15), "
    )
    plan = manifest.read(here / "results/last").plan
    assert (
        plan.shown.title == "mine"
        if kind == "experiment"
        else plan.shown.network.topology == "mine"
    )


def test_a_new_topology_is_ours_until_it_is_changed(here: Path) -> None:
    assert scaffold.write("topology", "mine") == [Path("topologies/mine.toml")]
    plans = [resolve.plan("fig3a", "smoke", [f"topology={name}"]) for name in ("paper12", "mine")]
    links = [
        [(link.rate_bps, link.buffer_bytes, link.delay_ns)]
        for link in (one.shown.network.link for one in plans)
    ]
    assert links[0] == links[1]
    assert plans[0].shown.network.switches == plans[1].shown.network.switches
    file = here / "topologies/mine.toml"
    file.write_text(re.sub("^# trunk_", "trunk_", file.read_text(), flags=re.MULTILINE))
    changed = resolve.plan("fig3a", "10g", ["topology=mine"])
    assert changed.shown.network.trunk.rate_bps == 5 * 10**9, "what stands in a comment can be used"


def test_a_new_scheme_meets_an_experiment_of_ours(here: Path) -> None:
    assert scaffold.write("scheme", "mine") == [Path("schemes/mine.toml")]
    plan = resolve.plan("fig3a", "smoke", [], schemes=["mine"])
    check(plan)
    assert "mine" in [arm.scheme.name for arm in plan.arms]
    assert any("pfifo limit 10" in line for line in script.lines(plan))


def test_new_congestion_control_is_a_scheme_with_a_module(here: Path) -> None:
    """The guest runs it: tests/guest/test_modules.py."""
    paths = scaffold.write("scheme", "mine", congestion=True)
    assert paths == [Path("schemes/mine.toml"), Path("schemes/tcp_mine.c")]
    assert not any("@NAME@" in path.read_text() for path in paths)
    plan = resolve.plan("fig3a", "smoke", [], schemes=["mine"])
    scheme = next(arm.scheme for arm in plan.arms if arm.scheme.name == "mine")
    assert scheme.congestion_control == "mine"
    assert scheme.module and scheme.module.source == paths[1].read_text()
    assert scheme.module_parameters == ("increase=2", "kept=70")


@pytest.mark.parametrize(
    ("kind", "name", "sentence"),
    [
        ("experiment", "mine", "new experiment: --congestion is for a scheme: leave it out"),
        ("scheme", "my-tcp", "new scheme: 'my-tcp' is not a kernel's name of a congestion control"),
        ("scheme", "vegas", "Linux has a congestion control 'vegas': use another name"),
    ],
)
def test_what_cannot_be_a_congestion_control_is_refused(
    kind: str, name: str, sentence: str, here: Path
) -> None:
    with pytest.raises(UsageError, match=sentence):
        scaffold.write(kind, name, congestion=True)
    assert not list(here.iterdir())


@pytest.mark.parametrize(
    ("kind", "name", "sentence"),
    [
        ("experiments", "mine",
         r"^there is no template for 'experiments': did you mean 'experiment'\?"),
        ("experiment", "a b", "new experiment: 'a b' is not a valid name: start with"),
        ("experiment", "fig3a",
         r"experiment 'fig3a' exists already, .*/experiments/fig3a\.toml: use"),
        ("experiment", "fig1a", "'fig1a' is another name of 'fig5': use a different one"),
        ("experiment", "all",
         "no experiment can be called 'all', because it stands for all of them"),
        ("scheme", "qjump", "scheme 'qjump' exists already"),
    ],
)  # fmt: skip
def test_what_cannot_be_begun_is_refused(kind: str, name: str, sentence: str, here: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        scaffold.write(kind, name)
    assert not list(here.iterdir())


def test_a_folder_that_cannot_be_written_is_one_sentence(here: Path) -> None:
    (here / "experiments").write_text("no folder")
    with pytest.raises(
        UsageError, match=r"^experiments/mine\.toml cannot be written: file exists$"
    ):
        scaffold.write("experiment", "mine")


def test_what_has_an_obvious_value_may_be_left_out(here: Path) -> None:
    (here / "experiments").mkdir()
    ping = 'workloads.ping = { program = "ping", flows = ["h8>h10"] }'
    (here / "experiments/mine.toml").write_text(f'{ping}\narms.idle.workloads = ["ping"]\n')
    plan = resolve.plan("mine", loading.usual_preset("mine"), [])
    check(plan)
    assert loading.presets("mine") == {"course": "as the file has it"}
    assert (plan.shown.title, plan.shown.network.topology) == ("mine", "paper12")
    assert (plan.run.warmup_ns, plan.run.duration_ns) == (2 * 10**9, 10 * 10**9)
    figure = plan.shown.figure
    assert (figure.plot, figure.workload, figure.arms) == ("latency_cdf", "ping", ["idle"])
    (arm,) = plan.arms
    assert (arm.label, arm.workloads[0].label, arm.workloads[0].level) == ("idle", "ping", 0)
    assert plan.run.seeds == (1,) and not plan.judged.claims
