"""One trial on a network that is up: treat it as the arm says, read it back, run the workloads, keep what they print."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from qjump_mn.backends.lateness import Lateness
from qjump_mn.errors import InvalidRunError
from qjump_mn.model.plan import ArmPlan, Trial
from qjump_mn.network import asbuilt
from qjump_mn.programs import registry
from qjump_mn.programs.launch import Phase
from qjump_mn.workloads.program import Program, Programs

if TYPE_CHECKING:
    from qjump_mn.network.testbed import Testbed

NS = 1e9
BACKGROUND_OFFSET_S = 0.1
"""What disturbs starts at a random instant of this length: another seed is another phase of TCP's sawtooth."""

DEADLINE_S = 60.0
"""How much longer than planned a program may take."""

Progress = Callable[[str], None]


def run(testbed: Testbed, trial: Trial, out: Path, progress: Progress) -> None:
    """Run ``trial`` and write raw/, asbuilt/ and trial.json into the empty folder ``out``.

    Raises InvalidRunError when the network built is not the network planned, LostError when a program dies.
    """
    chance = random.Random(trial.seed)
    treat(testbed, trial.arm, out / "asbuilt" / "before")
    with Programs() as programs:
        facts = _measure(testbed, trial, out, programs, chance, progress)
    asbuilt.counters(testbed, out / "asbuilt" / "after")
    (out / "trial.json").write_text(json.dumps({"trial": msgspec.to_builtins(trial), **facts}, indent=1, sort_keys=True) + "\n")


def treat(testbed: Testbed, arm: ArmPlan, folder: Path) -> None:
    """Give the network an arm's links, scheme and limiter, and read it back into ``folder``.

    Raises InvalidRunError when the network built is not the network planned, MachineError when tc, ip or sysctl refuse what is asked.
    """
    testbed.shape(arm.network)
    testbed.adopt(arm.scheme)
    if arm.qjump is not None:
        testbed.limit(arm.qjump)
    elif arm.uses_levels:
        testbed.prioritise_hosts()
    for workload in arm.workloads:
        for host, level in workload.echo_replies:
            # The kernel sends echo replies with priority 0 whatever the request had.
            testbed.mark_echo_replies(host, level)
    testbed.apply()
    asbuilt.collect(testbed, folder, arm)
    wrong = asbuilt.differences(folder, arm.network, arm)
    if wrong:
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        raise InvalidRunError(f"the network built is not the network planned: {'; '.join(wrong[:3])}{more}")


def _measure(testbed: Testbed, trial: Trial, out: Path, programs: Programs, chance: random.Random, progress: Progress) -> dict[str, Any]:
    raw = out / "raw"
    raw.mkdir(exist_ok=True)
    plans = [(plan, launch) for plan in trial.arm.workloads for launch in registry.of(plan).launches(plan, trial)]

    def start(phase: Phase) -> list[Program]:
        return [programs.start(testbed, launch, plan, raw) for plan, launch in plans if launch.phase == phase]

    servers = []
    for plan, launch in plans:
        if launch.phase == "serve":
            servers.append(programs.start(testbed, launch, plan, raw))
            servers[-1].wait_ready()
    time.sleep(chance.uniform(0, BACKGROUND_OFFSET_S))
    began_load = time.monotonic()
    load = start("load")
    # The warm-up is a length of time by definition; a seed moves the start of what is measured, such as a ping's phase in its interval.
    phase_s = chance.uniform(0, min((plan.phase_ns for plan in trial.arm.workloads if plan.phase_ns), default=0) / NS)
    _sleep_until(began_load + trial.warmup_ns / NS + phase_s)
    progress("measuring")
    # 6 virtual ms a namespace (80 for 12 hosts and the switches), over before anything is measured; bulk flows got as much as before it.
    read_ns = {"began": asbuilt.counters(testbed, out / "asbuilt" / "began")}
    ticks = _cpu_ticks()
    began, utc_ns = time.monotonic(), time.time_ns()
    with Lateness() as lateness:
        probes = start("probe")
        for probe in probes:
            programs.finish(probe, DEADLINE_S)
        if not probes:
            _sleep_until(began + trial.duration_ns / NS)
    ended = time.monotonic()
    busy = _busy_share(ticks, _cpu_ticks())
    read_ns["ended"] = asbuilt.counters(testbed, out / "asbuilt" / "ended")
    background = [*servers, *load]
    for program in background:
        if program.launch.itself:
            programs.finish(program, DEADLINE_S)
    time.sleep(max((program.launch.linger_s for program in background), default=0.0))
    for program in background:
        if not program.launch.itself:
            programs.finish(program, DEADLINE_S)
    window_s = [round(began - began_load, 6), round(ended - began_load, 6)]
    processor = {"cpu_busy": round(busy, 4), "cpu_late_us": lateness.quantiles_us()}
    return {**processor, "window_s": window_s, "began_ns": round(began * NS), "began_utc_ns": utc_ns, "read_ns": read_ns}


def _sleep_until(instant_s: float) -> None:
    time.sleep(max(0.0, instant_s - time.monotonic()))


def _cpu_ticks() -> list[int]:
    """The processor's time by use, in ticks: user nice system idle iowait irq softirq …"""
    return [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]


def _busy_share(before: list[int], after: list[int]) -> float:
    spent = [late - early for early, late in zip(before, after, strict=True)]
    total = sum(spent[:8])
    idle = spent[3] + spent[4]
    return 1 - idle / total if total else 0.0
