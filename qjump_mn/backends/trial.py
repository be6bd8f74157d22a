"""One trial on a network that is up: treat it as the arm says, read it back, run the workloads, keep what they print."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from qjump_mn.errors import InvalidRunError
from qjump_mn.model.plan import IperfPlan, PingPlan, Trial
from qjump_mn.network import asbuilt
from qjump_mn.workloads import iperf, ping
from qjump_mn.workloads.program import Programs

if TYPE_CHECKING:
    from qjump_mn.network.testbed import Testbed

NS = 1e9
BULK_OFFSET_S = 0.1
"""Bulk flows start at a random instant of this length: another seed is another phase of TCP's sawtooth."""

DEADLINE_S = 60.0
"""How much longer than planned a program may take."""

Progress = Callable[[str], None]


def run(testbed: Testbed, trial: Trial, out: Path, progress: Progress) -> None:
    """Run ``trial`` and write raw/, asbuilt/ and trial.json into the empty folder ``out``.

    Raises InvalidRunError when the network built is not the network planned, LostError when a program dies.
    """
    chance = random.Random(trial.seed)
    _treat(testbed, trial)
    asbuilt.collect(testbed, out / "asbuilt" / "before")
    wrong = asbuilt.differences(out / "asbuilt" / "before", trial.network, trial.arm)
    if wrong:
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        raise InvalidRunError(f"the network built is not the network planned: {'; '.join(wrong[:3])}{more}")
    raw = out / "raw"
    raw.mkdir(exist_ok=True)
    with Programs() as programs:
        facts = _measure(testbed, trial, raw, programs, chance, progress)
    asbuilt.counters(testbed, out / "asbuilt" / "after")
    (out / "trial.json").write_text(json.dumps({"trial": msgspec.to_builtins(trial), **facts}, indent=1, sort_keys=True) + "\n")


def _treat(testbed: Testbed, trial: Trial) -> None:
    testbed.shape(trial.network)
    if trial.arm.qjump is not None:
        testbed.limit(trial.arm.qjump)
    elif trial.arm.uses_levels:
        testbed.prioritise_hosts()
    for workload in trial.arm.workloads:
        if isinstance(workload, PingPlan):
            ping.prepare(testbed, workload)
    testbed.apply()


def _measure(testbed: Testbed, trial: Trial, raw: Path, programs: Programs, chance: random.Random, progress: Progress) -> dict[str, Any]:
    pings = [workload for workload in trial.arm.workloads if isinstance(workload, PingPlan)]
    bulks = [workload for workload in trial.arm.workloads if isinstance(workload, IperfPlan)]
    ends = [end for bulk in bulks for end in iperf.start_servers(testbed, bulk, raw, programs)]
    time.sleep(chance.uniform(0, BULK_OFFSET_S))
    bulk_started = time.monotonic()
    seconds = iperf.seconds(trial)
    ends += [end for bulk in bulks for end in iperf.start(testbed, bulk, raw, programs, seconds)]
    # The warm-up is a length of time by definition; a seed moves the pings' phase within their interval.
    phase_s = chance.uniform(0, min(plan.interval_ns for plan in pings) / NS) if pings else 0.0
    _sleep_until(bulk_started + trial.warmup_ns / NS + phase_s)
    progress("measuring")
    ticks = _cpu_ticks()
    began = time.monotonic()
    probes = [probe for plan in pings for probe in ping.start(testbed, plan, raw, programs)]
    for probe in probes:
        probe.finish(max(plan.longest_ns for plan in pings) / NS + ping.LINGER_S + DEADLINE_S, good=ping.GOOD)
    if not probes:
        _sleep_until(began + trial.duration_ns / NS)
    ended = time.monotonic()
    busy = _busy_share(ticks, _cpu_ticks())
    for end in ends:
        end.finish(seconds + DEADLINE_S)
    return {"cpu_busy": round(busy, 4), "window_s": [round(began - bulk_started, 6), round(ended - bulk_started, 6)]}


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
