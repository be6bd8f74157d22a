"""Runs in the guest, as on somebody's machine: others have bridges, QoS, namespaces, settings and
processes there, and the host backend runs beside them, to its end or until it is killed at some
moment.

test_host_backend.py judges what is there afterwards.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from executor import steps, trial

HOME = Path(__file__).parent
HARNESS = "/opt/harness"
GOLDEN = (5**0.5 - 1) / 2
sys.path.insert(0, HARNESS)

from qjump_mn.backends import host_claim  # noqa: E402

THEIRS = """
ip netns add theirs
ip link add out0 type veth peer name in0 netns theirs
ip link set out0 up
ip -n theirs link set in0 up
ip -n theirs addr add 192.0.2.2/24 dev in0
tc qdisc add dev out0 root handle 1: prio
ip link add i-theirs type ifb
tc qdisc add dev i-theirs root netem delay 1ms
ip link add h1 type dummy
ovs-vsctl add-br theirs
ovs-vsctl add-port theirs out0 -- set port out0 qos=@q -- --id=@q create qos type=linux-htb \
  other-config:max-rate=1000000 queues=0=@zero external_ids:owner=somebody \
  -- --id=@zero create queue other-config:max-rate=500000 external_ids:owner=somebody
ovs-vsctl -- create qos type=linux-htb other-config:max-rate=77 external_ids:owner=mininet-qos
ovs-vsctl set Open_vSwitch . other_config:max-idle=12345
ovs-ofctl add-flow theirs cookie=0x716a,priority=5,actions=NORMAL
sysctl -qw net.core.wmem_max=300001 net.core.netdev_max_backlog=1234
modprobe sch_fq
"""
PROCESSES = (
    ("ip", "netns", "exec", "theirs", "sleep", "1000000"),
    ("sleep", "1000001"),
    ("iperf3", "-s", "-p", "5201"),
    ("bash", "-c", "while :; do sleep 100000; done", "mininet:h1"),
)
LOOKS = {
    "interfaces": "ip -d link show | sed 's/ state [A-Z]*//'",
    "addresses": "ip -o addr show",
    "namespaces": "ls -i /run/netns; ip -n theirs -d addr show",
    "qdiscs": "tc qdisc show; tc -n theirs qdisc show; tc class show dev out0; tc filter show dev out0",
    "routes": "ip route show table all; ip rule show; ip neigh show nud permanent",
    "bridges": "ovs-vsctl show",
    "open "
    "vswitch": "for table in bridge port qos queue; do ovs-vsctl --columns=_uuid,external_ids,other_config "
    "list $table; done; ovs-vsctl --columns=name,type,ofport list interface; "
    "ovs-vsctl --columns=other_config,external_ids,bridges list Open_vSwitch",
    "flows": "ovs-ofctl --no-stats dump-flows theirs",
    "settings": "sysctl -a 2>/dev/null | grep -E '^net\\.(core|ipv4\\.tcp_|ipv4\\.ip_|ipv6\\.conf\\.(all|default|out0))'"
    " | grep -v -E 'metrics|fastopen_key'",
    "modules": "cut -d' ' -f1 /proc/modules | sort",
    "processes": "for folder in /proc/[0-9]*; do [ -s $folder/cmdline ] && echo ${folder#/proc/} "
    '$(tr "\\0" " " < $folder/cmdline); done 2>/dev/null | grep -v -E "grep|job.py|sh -c|agent.py" || :',
    "journal": f"ls {host_claim.FOLDER} 2>/dev/null || :",
}


def look() -> dict[str, str]:
    """What there is on this machine, whoever's it is."""
    looks = LOOKS.items()
    return {what: subprocess.check_output(["sh", "-c", line], text=True) for what, line in looks}


def differences(before: dict[str, str]) -> dict[str, list[str]]:
    """What is otherwise than before; waits until the kernel has removed what it was told to."""
    until = time.monotonic() + 10
    while True:
        now = look()
        found = {what: [before[what], now[what]] for what in now if now[what] != before[what]}
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.5)


def start(out: str, *plans: str) -> subprocess.Popen[str]:
    """The host backend, with the plans, in a process of its own."""
    files = [str(HOME / f"{plan}.json") for plan in plans]
    argv = [sys.executable, str(HOME / "carry_out.py"), out, *files]
    env = {**os.environ, "PYTHONPATH": HARNESS, "SUDO_UID": "0"}
    return subprocess.Popen(
        argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    """How it ended, and what it said."""
    said, _ = process.communicate()
    return {"code": process.returncode, "said": said}


def whole(plan: str, before: dict[str, str]) -> dict[str, Any]:
    """A run to its end, and how long it takes."""
    say(f"whole {plan}")
    began = time.monotonic()
    ended = finished(start("whole", plan))
    return {**ended, "took_s": time.monotonic() - began, "left": differences(before)}


def killed(plan: str, after_s: float, before: dict[str, str]) -> dict[str, Any]:
    """A run that is killed after so long, and what ``clean`` says and leaves."""
    process = start("killed", plan)
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    process.wait()  # what it started may still have its output
    lines: list[str] = []
    stayed = sorted(what for what, text in look().items() if text != before[what])
    host_claim.clean(lines.append)
    left = differences(before)
    say(f"killed {plan} after {after_s:.2f} s: {len(lines)} things taken back, left {sorted(left)}")
    return {"plan": plan, "after_s": after_s, "stayed": stayed, "cleaned": lines, "left": left}


def second(before: dict[str, str]) -> dict[str, Any]:
    """Another run and ``clean`` beside one that runs; that one, killed, and a third run, which
    takes it back."""
    say("second")
    first = start("first", "wire")
    assert first.stdout is not None
    first.stdout.readline()  # it brings its network up
    other = finished(start("other", "wire"))
    lines: list[str] = []
    host_claim.clean(lines.append)
    running = first.poll() is None
    first.kill()
    first.wait()
    third = finished(start("third", "wire"))
    return {
        "pid": first.pid, "other": other, "clean": lines, "running": running, "third": third,
        "left": differences(before),
    }  # fmt: skip


def in_the_way(before: dict[str, str]) -> dict[str, Any]:
    """A stranger's namespace or bridge with a name of ours is no longer theirs alone to be lost."""
    say("in the way")
    told = {}
    for make, unmake in (
        ("ip netns add h2", "ip netns delete h2"),
        ("ovs-vsctl add-br s1", "ovs-vsctl del-br s1"),
        ("ip link add s1-eth1 type dummy", "ip link delete s1-eth1"),
    ):
        subprocess.run(make.split(), check=True)
        told[make] = finished(start("in-the-way", "wire"))
        subprocess.run(unmake.split(), check=True)
    return {"told": told, "left": differences(before)}


def say(line: str) -> None:
    """A line of progress, for whoever waits."""
    Path("/dev/console").write_text(f"{trial.PROGRESS}{line}\n")


def main() -> None:
    work = json.loads((HOME / "work.json").read_text())
    trial.Network().build(steps.decode(work["openvswitch"]), Path("/tmp"))
    subprocess.run(["sh", "-e", "-c", THEIRS], check=True)
    for argv in PROCESSES:
        subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2)
    Path(host_claim.FOLDER).mkdir(parents=True)
    (host_claim.FOLDER / host_claim.LOCK).touch()
    before = look()
    results: dict[str, Any] = {"before": before, "whole": {}, "killed": []}
    for plan in work["plans"]:
        results["whole"][plan] = whole(plan, before)
    results["second"] = second(before)
    results["in the way"] = in_the_way(before)
    for number in range(work["kills"]):
        plan = work["plans"][number % len(work["plans"])]
        # By the golden ratio, so that the moments are all over a run however many they are.
        after_s = (number + 1) * GOLDEN % 1 * results["whole"][plan]["took_s"]
        results["killed"].append(killed(plan, after_s, before))
    Path("results.json").write_text(json.dumps(results, indent=1))


main()
