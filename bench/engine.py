"""Measure the cost of a frame in the guest and on this machine's own kernel in real time: Figure
3a's network and its bulk flows on both, in turn.

    python3 bench/engine.py [--write]

Needs root, two idle cores and a kernel with namespaces, veth, bridges and tbf. On the host each
link is a veth with tbf at both ends and each switch a bridge, at the guest's rate, with the guest's
iperf3. A hop is a frame on one link. `--write` replaces the table in docs/emulation.md; without it,
print the table. Takes two minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import machine, marks
from qjump_mn import toolbox
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.results import links
from qjump_mn.results.manifest import read

PAGE = ROOT / "docs/emulation.md"
ROUNDS = 3
SECONDS = 5
"""Seconds of real time on the host."""
STREAMS = 3
PRESET = ("fig3a", "--preset", "paper", "--arms", "idle,contended")


class Cost(NamedTuple):
    """Hops, and the processor seconds that they took."""

    hops: int
    cpu_s: float

    @property
    def each_us(self) -> float:
        """Return the cost of one hop, in us."""
        return self.cpu_s / self.hops * 1e6


def main() -> None:
    """Measure, and print or write."""
    guests, hosts = [], []
    for number in range(ROUNDS):
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
        trial, cost = in_guest()
        guests.append(cost)
        hosts.append(on_host(trial))
    text = table(guests, hosts)
    if "--write" in sys.argv:
        marks.write(PAGE, "engine", text)
    else:
        print(text)


def table(guests: list[Cost], hosts: list[Cost]) -> str:
    """Return the table of the medians of the rounds and of their ratios."""
    ratio = median(guest.each_us / host.each_us for guest, host in zip(guests, hosts, strict=True))
    rows = [
        f"{machine.description()}; medians of {ROUNDS} rounds in turn:\n",
        "| where | hops | CPU s | us a hop |",
        "|---|---|---|---|",
    ]
    for name, costs in (("the guest", guests), ("this kernel, real time", hosts)):
        hops, cpu_s, each_us = (
            median(column) for column in zip(*((*one, one.each_us) for one in costs), strict=True)
        )
        rows.append(f"| {name} | {hops / 1e6:.2f} million | {cpu_s:.1f} | {each_us:.2f} |")
    rows.append(f"\nA hop costs {ratio:.1f} times as much in the guest.")
    return "\n".join(rows)


def in_guest() -> tuple[Trial, Cost]:
    """Return the contended arm's hops until its measurement ended, and what it cost beyond the idle
    arm."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-P", "-m", "qjump_mn.run", "run", *PRESET, "--out", folder]
        subprocess.run(
            argv, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        run = Path(folder, "last").resolve()
        manifest = read(run)
        trials = {trial.arm.name: trial for trial in manifest.plan.trials()}
        contended, idle = (manifest.trials[trials[arm].name].cpu_s for arm in ("contended", "idle"))
        assert contended is not None and idle is not None
        trial = trials["contended"]
        carried = links.carried(trial.network, run / "trials" / trial.name, "before", "after")
        hops = sum(count.frames for levels in carried.values() for count in levels.values())
    return trial, Cost(hops, contended - idle)


def on_host(trial: Trial) -> Cost:
    """Run the same flows on this kernel."""
    network = trial.network
    flows = [flow for one in trial.arm.workloads if one.name == "bulk" for flow in one.flows]
    iperf3 = toolbox.toolbox().program("usr/bin/iperf3")
    with ExitStack() as stack:
        for command in up(network):
            subprocess.run(command.split(), check=True)
            if command.startswith("ip netns add "):
                stack.callback(
                    subprocess.run, f"ip netns del {command.split()[-1]}".split(), check=False
                )
        servers = [
            subprocess.Popen(
                inside(to, [*iperf3, "-s"]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            for _, to in flows
        ]
        for server in servers:
            stack.callback(server.wait)
            stack.callback(server.terminate)
        time.sleep(1)
        before = hops(network), busy_s()
        clients = [
            subprocess.Popen(
                inside(
                    one,
                    [*iperf3, "-c", network.addresses[to], "-P", str(STREAMS), "-t", str(SECONDS)],
                ),
                stdout=subprocess.DEVNULL,
            )
            for one, to in flows
        ]
        if any(client.wait() for client in clients):
            raise SystemExit("iperf3 failed on the host")
        return Cost(hops(network) - before[0], busy_s() - before[1])


def inside(host: str, argv: list[str]) -> list[str]:
    """Return a command in a host's namespace."""
    return ["ip", "netns", "exec", f"bench-{host}", *argv]


def up(network: Network) -> Iterator[str]:
    """Return the commands that build the network."""
    yield "ip netns add bench-switches"
    for switch in network.switches:
        yield f"ip -n bench-switches link add {switch} up type bridge"
    for host in network.hosts:
        yield f"ip netns add bench-{host}"
    for (above, port), (below, device) in network.ports():
        where = "bench-switches" if below in network.switches else f"bench-{below}"
        yield f"ip -n bench-switches link add {port} type veth peer name {device} netns {where}"
        yield f"ip -n bench-switches link set {port} master {above} up"
        if below in network.switches:
            yield f"ip -n bench-switches link set {device} master {below} up"
        else:
            yield f"ip -n {where} addr add {network.addresses[below]}/24 dev {device}"
            yield f"ip -n {where} link set {device} up"
        for namespace, end in (("bench-switches", port), (where, device)):
            link = network.by_device()[port]
            shape = f"rate {link.rate_bps}bit burst {link.mtu_bytes * 10} limit {link.buffer_bytes}"
            yield f"tc -n {namespace} qdisc add dev {end} root tbf {shape}"


def hops(network: Network) -> int:
    """Count the frames that all ends have sent."""
    total = 0
    for node in ("switches", *network.hosts):
        text = subprocess.run(
            inside(node, ["cat", "/proc/net/dev"]), check=True, capture_output=True, text=True
        ).stdout
        total += sum(int(line.split()[10]) for line in text.splitlines() if "-eth" in line)
    return total


def busy_s() -> float:
    """Return the busy seconds of all processors."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
