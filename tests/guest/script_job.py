"""Runs in the guest: the scripts that ``--dry-run`` prints, each on a machine where only Open
vSwitch runs.

test_script.py judges what they leave."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from executor import steps, trial

HOME = Path(__file__).parent
LOOKS = {
    "namespaces": "ip netns list",
    "bridges": "ovs-vsctl list-br",
    "shapers": "ovs-vsctl --bare --columns=_uuid list qos; ovs-vsctl --bare --columns=_uuid list queue",
    "interfaces": "ls /sys/class/net",
    "qdiscs": "tc qdisc show",
    "settings": "sysctl net.core.wmem_max net.core.rmem_max net.core.netdev_max_backlog "
    "net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_allowed_congestion_control "
    "net.ipv4.tcp_congestion_control net.ipv4.tcp_ecn",
}


def look() -> dict[str, str]:
    """What there is on this machine."""
    looks = LOOKS.items()
    return {what: subprocess.check_output(["sh", "-c", line], text=True) for what, line in looks}


start = steps.decode(json.loads((HOME / "openvswitch.json").read_text()))
trial.Network().build(start, Path("/tmp"))
results = {}
for script in sorted(HOME.glob("*.sh")):
    Path("/dev/console").write_text(f"{trial.PROGRESS}{script.name}\n")
    folder = Path(script.stem)
    folder.mkdir()
    before = look()
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        code = subprocess.call(["sh", str(script)], cwd=folder, stdout=stdout, stderr=stderr)
    results[script.stem] = {"code": code, "before": before, "after": look()}
Path("results.json").write_text(json.dumps(results))
