"""What the emulation costs here: the network's set-up, a fork, and processor seconds for the same frames at
each rate. Prints a Markdown table.

    python bench/emulation.py [--write docs/emulation.md]

Seconds are those that QEMU and what starts it kept one core of this machine busy, the least of three: alone
on its core, a guest takes as long. The same work is the same number of instructions everywhere, so only their
speed differs. `--write` replaces the table between the two marks in that file.
"""

from __future__ import annotations

import os
import platform
import resource
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import marks
from qjump_mn import guest
from qjump_mn.backends.guest import GuestBackend, setup
from qjump_mn.model.plan import Trial
from qjump_mn.model.resolve import plan

ROUNDS = 3
RATES_MBPS = (10, 100, 1000, 10000)
"""At more than the first the clock is dilated."""


def main() -> None:
    """Measure, print and, if asked, write."""
    rows = [*setting_up(), *running()]
    width = max(len(name) for name, _ in rows)
    table = [
        f"| {'what':<{width}} | seconds |",
        f"| {'-' * width} | --- |",
        *(f"| {name:<{width}} | {value} |" for name, value in rows),
    ]
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "?",
    )
    text = "\n".join(
        [f"{platform.system()} {platform.machine()}, {model}, {os.cpu_count()} processors:", "", *table]
    )
    print(text)
    if sys.argv[1:2] == ["--write"]:
        marks.write(Path(sys.argv[2]), "emulation", text)


def setting_up() -> list[tuple[str, str]]:
    """Boot, Open vSwitch and 12 hosts from nothing; an empty fork."""
    image = guest.prepare(lambda line: None)
    built = setup(plan("fig3a", "smoke", []).network.skeleton())
    cold, forks = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for index in range(ROUNDS):
            began = busy_s()
            result = guest.run(image, guest.Job(script=""), Path(scratch, f"cold{index}"), setup=built)
            cold.append(busy_s() - began)
            assert result.exit_code == 0
        state = guest.snapshot(image, built)
        for index in range(ROUNDS):
            began = busy_s()
            guest.run(image, guest.Job(script=""), Path(scratch, f"fork{index}"), snapshot=state)
            forks.append(busy_s() - began)
    return [
        ("boot, Open vSwitch, 12-host network, from cold", f"{min(cold):.1f} s"),
        ("a fork that does nothing", f"{min(forks):.2f} s"),
    ]


def running() -> list[tuple[str, str]]:
    """Seconds for as long as a link takes for the frames of a second at 10 Mb/s, by the difference between a
    long and a short trial."""
    rows = []
    for rate in RATES_MBPS:
        unit_s = RATES_MBPS[0] / rate
        for arm in ("idle", "contended", "qjump"):
            seconds, virtuals = [], []
            for units in (2, 8):
                best = min((once(rate, arm, units * unit_s) for _ in range(ROUNDS)), key=lambda cost: cost[0])
                seconds.append(best[0])
                virtuals.append(best[1])
            cost_s = (seconds[1] - seconds[0]) / (virtuals[1] - virtuals[0]) * unit_s
            rows.append((f"{unit_s * 1e3:g} virtual ms at {rate} Mb/s, arm {arm}", f"{cost_s:.2f} s"))
    return rows


def once(rate: int, arm: str, duration_s: float) -> tuple[float, float]:
    """Processor and virtual seconds of one trial."""
    scale = RATES_MBPS[0] / rate
    times = {"warmup": 2 * scale, "duration": duration_s, "workloads.ping.interval": 0.02 * scale}
    settings = [f"{name}={value * 1e9:.0f}ns" for name, value in times.items()]
    resolved = plan("fig3a", "smoke", [f"link.rate={rate}Mbit", *settings])
    backend = GuestBackend()
    backend.prepare(resolved, lambda line: None)
    trial: Trial = next(trial for trial in resolved.trials() if trial.arm.name == arm)
    began = busy_s()
    with tempfile.TemporaryDirectory() as scratch:
        ended = backend.run(trial, Path(scratch), lambda line: None)
    assert ended.exit_code == 0, ended.message
    assert ended.virtual_s is not None
    return busy_s() - began, ended.virtual_s


def busy_s() -> float:
    """How long this process's children kept a processor busy, of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
