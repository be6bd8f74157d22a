"""What the jobs of test_mininet_networks.py share: the package put where pip puts it, Open vSwitch,
looks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from executor import steps, trial

HOME = Path(__file__).parent
PACKAGES = Path("/usr/lib/python3/dist-packages")
LOOKS = {
    "interfaces": "ls /sys/class/net",
    "qdiscs": "tc qdisc show",
    "bridges": "ovs-vsctl list-br",
    "shapers": "ovs-vsctl --bare --columns=_uuid list qos; ovs-vsctl --bare --columns=_uuid list queue",
    "nodes": "pgrep -f '[m]ininet:' || true",
}


def bring_up() -> None:
    """The machine as somebody has it who has installed Mininet, Open vSwitch and the package."""
    for name, text in json.loads((HOME / "package.json").read_text()).items():
        (PACKAGES / name).parent.mkdir(exist_ok=True)
        (PACKAGES / name).write_text(text)
    start = steps.decode(json.loads((HOME / "openvswitch.json").read_text()))
    trial.Network().build(start, Path("/tmp"))


def say(line: str) -> None:
    """A line of progress, for whoever waits."""
    Path("/dev/console").write_text(f"{trial.PROGRESS}{line}\n")


def look() -> dict[str, str]:
    """What there is on this machine that a network may leave."""
    looks = LOOKS.items()
    return {what: subprocess.check_output(["sh", "-c", line], text=True) for what, line in looks}


def left(before: dict[str, str]) -> dict[str, tuple[str, str]]:
    """What is otherwise than before, with both."""
    after = look()
    return {what: (before[what], after[what]) for what in LOOKS if before[what] != after[what]}
