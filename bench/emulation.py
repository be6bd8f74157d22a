"""What the emulation costs here: the network's set-up, a fork, and processor seconds for the same frames at
each rate, with Mininet's own TC links too. Prints a Markdown table.

    python bench/emulation.py [--write docs/emulation.md]

Seconds are those that QEMU and what starts it kept one core of this machine busy, the least of three: alone
on its core, a guest takes as long. The same work is the same number of instructions everywhere, so only their
speed differs. `--write` replaces the table between the two marks in that file.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import machine, marks
from qjump_mn import guest
from qjump_mn.backends.guest import GuestBackend, setup
from qjump_mn.model.plan import Trial
from qjump_mn.model.resolve import plan

ROUNDS = 3
RATES_MBPS = (10, 100, 1000, 10000)
"""At more than the first the clock is dilated."""
ARMS = {"wire": ("idle", "contended", "qjump"), "htb": ("idle", "contended")}
"""What is measured with each model of a link; "htb" has Mininet's own TC links, which are for the first rate
only."""
RESOLUTION_S = 0.05
"""By how much the same work differs from time to time: what costs less is not told."""
BULK_FRAMES = RATES_MBPS[0] * 1e6 / (8 * 1542)
"""Full-size frames on the link that all flows share, in the time of a row; each crosses four links."""


def main() -> None:
    """Measure, print and, if asked, write."""
    rows = [("what", "seconds", "ms a bulk packet"), *setting_up(), *running()]
    width = max(len(name) for name, *_ in rows)
    first, *others = (f"| {name:<{width}} | {' | '.join(values)} |" for name, *values in rows)
    table = [first, f"| {'-' * width} | --- | --- |", *others]
    text = "\n".join([f"{machine.told()}:", "", *table])
    print(text)
    if sys.argv[1:2] == ["--write"]:
        marks.write(Path(sys.argv[2]), "emulation", text)


def setting_up() -> list[tuple[str, str, str]]:
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
        ("boot, Open vSwitch, 12-host network, from cold", f"{min(cold):.1f} s", "–"),
        ("a fork that does nothing", f"{min(forks):.2f} s", "–"),
    ]


def running() -> list[tuple[str, str, str]]:
    """Seconds for as long as a link takes for the frames of a second at 10 Mb/s, by the difference between a
    long and a short trial."""
    rows = []
    for model, arms in ARMS.items():
        for rate in RATES_MBPS if model == "wire" else RATES_MBPS[:1]:
            unit_s = RATES_MBPS[0] / rate
            links = f"{rate} Mb/s" if model == "wire" else "10 Mb/s on Mininet's TC links"
            for arm in arms:
                cost_s = apiece_s(model, rate, arm, unit_s)
                bulk = "–" if arm == "idle" else f"{cost_s / BULK_FRAMES * 1e3:.2f}"
                told = f"{cost_s:.2f} s" if cost_s >= RESOLUTION_S else f"< {RESOLUTION_S} s"
                rows.append((f"{unit_s * 1e3:g} virtual ms at {links}, arm {arm}", told, bulk))
    return rows


def apiece_s(model: str, rate: int, arm: str, unit_s: float) -> float:
    """Processor seconds of each unit, of eight beside two."""
    short, long = (
        min((once(model, rate, arm, units * unit_s) for _ in range(ROUNDS)), key=lambda cost: cost[0])
        for units in (2, 8)
    )
    return (long[0] - short[0]) / (long[1] - short[1]) * unit_s


def once(model: str, rate: int, arm: str, duration_s: float) -> tuple[float, float]:
    """Processor and virtual seconds of one trial."""
    scale = RATES_MBPS[0] / rate
    times = {"warmup": 2 * scale, "duration": duration_s, "workloads.ping.interval": 0.02 * scale}
    settings = [f"{name}={value * 1e9:.0f}ns" for name, value in times.items()]
    resolved = plan("fig3a", "smoke", [f"link.rate={rate}Mbit", f"link.model={model}", *settings])
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
