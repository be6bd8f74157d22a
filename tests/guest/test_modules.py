"""Kernel modules of schemes: compiled for exactly the guest's kernel, loaded there, and in effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qjump_mn import toolbox
from qjump_mn.backends.guest import GuestBackend
from qjump_mn.cli import scaffold
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import plan
from qjump_mn.toolbox import um
from tests.guest import trees
from tests.guest.laboratory import Laboratory
from tests.support.processes import cli
from tests.support.user_files import Write

pytestmark = pytest.mark.guest

LIFO = """
label = "last in, first out"
about = "switch ports serve what came last"
look = { colour = "#123456", marker = "o" }
module = "sch_lifo.c"
switch_port = ["qdisc add dev {dev} parent {parent} handle 20: lifo"]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a new congestion control, mine; skips where modules cannot be compiled."""
    trees.needed(lambda progress: toolbox.made(um.LOCK, progress))
    monkeypatch.chdir(tmp_path)
    scaffold.write("scheme", "mine", congestion=True)
    return tmp_path


def resolved(scheme: str, *settings: str) -> Plan:
    return plan("fig3a", "smoke", ["duration=1s", "warmup=1s", *settings], schemes=[scheme])


def outputs(trial: Path) -> dict[str, bytes]:
    """What the programs of a trial printed, by file."""
    return {path.name: path.read_bytes() for path in (trial / "raw").iterdir()}


def flow(trial: Path) -> dict[str, object]:
    """What the sender of a bulk flow says of the whole test."""
    (path, *_) = sorted((trial / "raw").glob("*.client.json"))
    end: dict[str, object] = json.loads(path.read_text())["end"]
    return end


def test_new_congestion_control_is_in_effect(laboratory: Laboratory) -> None:
    left = {}
    for congestion, settings in {
        "reno": ["schemes.mine.congestion_control=reno"],
        "mine": [],
    }.items():
        _, left[congestion] = laboratory.run(resolved("mine", *settings), "mine")
        assert flow(left[congestion])["sender_tcp_congestion"] == congestion
    assert outputs(left["reno"]) != outputs(left["mine"])


def test_parameters_reach_the_module(laboratory: Laboratory) -> None:
    """With the constants of Reno it does what Reno does, to the bit."""
    settings = [f"schemes.mine.parameters.{one}" for one in ("increase=1", "kept=50")]
    _, reno = laboratory.run(resolved("mine", "schemes.mine.congestion_control=reno"), "mine")
    _, mine = laboratory.run(resolved("mine", *settings), "mine")
    names = [path.name for path in (mine / "raw").iterdir() if path.suffix != ".json"]
    assert names and {name: outputs(mine)[name] for name in names} == {
        name: outputs(reno)[name] for name in names
    }


def test_qdisc_is_at_the_switches_ports(own: Write, laboratory: Laboratory) -> None:
    own("schemes/lifo.toml", LIFO)
    own("schemes/sch_lifo.c", (Path(__file__).parent / "sch_lifo.c").read_text())
    _, out = laboratory.run(resolved("lifo"), "lifo")
    kinds = {
        qdisc["kind"]: qdisc
        for qdisc in json.loads((out / "asbuilt/after/tc-switches.json").read_text())
        if qdisc.get("dev") == "s0-eth3"
    }
    assert kinds["lifo"]["packets"] > 100


def test_refusal_of_the_kernel_is_the_trials_error(here: Path, tmp_path: Path) -> None:
    found = resolved("mine", "schemes.mine.parameters.kept=100")
    backend = GuestBackend()
    backend.prepare(found, print)
    trial = next(trial for trial in found.trials() if trial.arm.name == "mine")
    ended = backend.run(trial, tmp_path / "out", print)
    assert ended.exit_code == 3
    assert ended.message.startswith("the kernel refuses the module tcp_mine.c: ")
    assert "kept 1 to 99" in ended.message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("return -EINVAL;", "return mistake;", "tcp_mine.c:53:24: error: 'mistake' undeclared"),
        ("tcp_slow_start(", "tcp_fast_start(", "error: implicit declaration of function"),
        ('MODULE_LICENSE("GPL");', "", "missing MODULE_LICENSE()"),
        ('MODULE_LICENSE("GPL");', 'MODULE_LICENSE("Proprietary");', "GPL-incompatible module"),
        ("#include <net/tcp.h>", '#include "HERE/schemes/mine.toml"', "mine.toml: No such file"),
        ("#include <net/tcp.h>", '#include "/proc/version"', "/proc/version: No such file"),
    ],
)
def test_errors_of_the_compiler_come_before_anything_starts(
    old: str, new: str, message: str, here: Path
) -> None:
    source = here / "schemes/tcp_mine.c"
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new.replace("HERE", str(here))))
    done = cli("run", "fig3a", "--preset", "smoke", "--scheme", "mine", cwd=here)
    assert done.returncode == 2
    assert "tcp_mine.c does not compile for Linux" in done.stderr
    assert message in done.stderr and "/build" not in done.stderr
    assert not (here / "results").exists()


def test_warnings_are_shown(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = here / "schemes/tcp_mine.c"
    source.write_text(source.read_text() + "static int idle(void) { return 1; }\n")
    for _ in range(2):  # also when it is taken from the cache
        GuestBackend().check(resolved("mine"), print)
        assert "tcp_mine.c:68:12: warning: 'idle' defined but not used" in capsys.readouterr().out
