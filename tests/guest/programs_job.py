"""Runs in the guest: ptpd, as the workloads start it. test_programs.py judges what it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

PTPD = "ptpd -C -L -E --clock:no_adjust=y --ptpengine:ip_mode=hybrid".split()
MASTER = ["-M"]
SLAVE = "-s --ptpengine:log_sync_interval=0 --ptpengine:log_delayreq_interval=0 --global:log_statistics=Y".split()
STAMPS = ["env", "LD_PRELOAD=/usr/lib/qjump-mn/libptpstamps.so"]
LEVEL = ["qjau", "-p", "7", "--"]
PTP_S, LOAD_FROM_S, LOAD_S = 24, 18, 2

# 10.37 Mb/s of payload into a link of 10 Mb/s.
FLOOD = """
import socket, sys, time
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flood.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
due = time.monotonic()
for _ in range(int(float(sys.argv[1]) / 0.00108)):
    flood.sendto(bytes(1400), ("10.0.0.2", 9))
    due += 0.00108
    time.sleep(max(0, due - time.monotonic()))
"""


def shell(line: str) -> str:
    """What a command line prints, both ways."""
    return subprocess.run(
        ["sh", "-c", line], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ).stdout


def cpu_ms(process: subprocess.Popen[bytes]) -> float:
    """The processor time of a process; 0 where none counts it, for time stands still while programs
    run."""
    path = Path(f"/proc/{process.pid}/schedstat")
    return int(path.read_text().split()[0]) / 1e6 if path.exists() else 0.0


def in_host(host: str, argv: list[str], output: str) -> subprocess.Popen[bytes]:
    """A program in the namespace of a host, with what it says in a file."""
    argv = ["ip", "netns", "exec", host, *argv]
    with open(output, "wb") as file:
        return subprocess.Popen(argv, stdout=file, stderr=subprocess.STDOUT)


def pair(name: str, model: str) -> tuple[str, str]:
    """Two hosts with a wire of 10 Mb/s between them, tagged as in the networks under test."""
    hosts = f"{name}m", f"{name}s"
    for host in hosts:
        shell(f"ip netns add {host}")
    ends = [f"{host}-eth0 netns {host}" for host in hosts]
    shell(f"ip link add {ends[0]} type veth peer name {ends[1]}")
    for number, host in enumerate(hosts, 1):
        device = f"{host}-eth0"
        shell(f"""ip netns exec {host} sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
            ip -n {host} link set lo up; ip -n {host} link set {device} up
            ip -n {host} link add link {device} name {device}.2 type vlan id 2 egress-qos-map 7:7
            ip -n {host} addr add 10.0.0.{number}/8 dev {device}.2; ip -n {host} link set {device}.2 up
            ip netns exec {host} tc qdisc add dev {device} root handle 5: wire rate 10mbit limit 152200 {model}""")
    return hosts


def ptp() -> dict[str, list[float]]:
    """ptpd in four pairs of hosts, whose masters' links are full for a while: processor time of
    master and slave, ms in each second."""
    processes: dict[str, subprocess.Popen[bytes]] = {}
    floods = []
    cases: tuple[tuple[str, str, list[str]], ...] = (
        ("late", "noorphan", []),
        ("urgent", "orphan", LEVEL),
        ("stamps", "noorphan", STAMPS),
        ("plain", "orphan", [*STAMPS, *LEVEL]),
    )
    for name, model, preload in cases:
        master, slave = pair(name, model)
        slaves = [*SLAVE, f"--global:statistics_file={name}.slave.csv"]
        for role, host, options in (("master", master, MASTER), ("slave", slave, slaves)):
            argv = [*preload, *PTPD, *options, "-i", f"{host}-eth0.2"]
            processes[f"{name}.{role}"] = in_host(host, argv, f"{name}.{role}.txt")
        if name != "plain":
            floods.append(master)
    used: dict[str, list[float]] = {name: [] for name in processes}
    for second in range(PTP_S):
        if second == LOAD_FROM_S:
            for host in floods:
                in_host(host, [sys.executable, "-c", FLOOD, str(LOAD_S)], f"{host}.flood.txt")
        before = {name: cpu_ms(process) for name, process in processes.items()}
        time.sleep(1)
        for name, process in processes.items():
            used[name].append(cpu_ms(process) - before[name])
    for process in processes.values():
        process.terminate()
        process.wait()
    return used


if __name__ == "__main__":
    Path("ptp.json").write_text(json.dumps(ptp()))
