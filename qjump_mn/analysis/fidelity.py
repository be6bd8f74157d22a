"""Check whether a run may be believed: one check for each possible reason against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from qjump_mn import theory
from qjump_mn.analysis import bookkeeping, copies, waits
from qjump_mn.errors import LostError
from qjump_mn.links import registry as links
from qjump_mn.links.base import Wait
from qjump_mn.model import guarantee, identity
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.model.workload import Flow
from qjump_mn.programs import counters, registry
from qjump_mn.programs.facts import Check, CheckStatus, TrialTables
from qjump_mn.results import asbuilt, contents
from qjump_mn.results import links as link_loads
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest

MOST_CPU = 0.70
"""Above this share, queues form at the CPU, and it becomes part of what is measured."""

ENOUGH_S = 0.1
"""The kernel counts its processor's time in ticks of 10 ms: ten of them say how busy it was."""

LATEST_US = 5000.0
"""The most that 99 of 100 wake-ups may be late at 10 Mb/s, in us. On a real clock with time to
spare, a program waits at most for the scheduler's tick (4 ms)."""

SIMULATED_US = 0.001
"""The rounding of floating point numbers in the simulator, whose times are whole ps; in us."""


def checks(
    run: RunDirectory, manifest: Manifest, data: Sequence[TrialTables], missing: Mapping[str, str]
) -> tuple[Check, ...]:
    """Return all checks of a run: ``data`` has its trials with tables, ``missing`` why others have
    none."""
    return (
        _complete(manifest.plan, missing),
        _untouched(run, manifest, data),
        *of_trials(run, manifest, data),
    )


def of_trials(
    run: RunDirectory, manifest: Manifest, data: Sequence[TrialTables]
) -> tuple[Check, ...]:
    """Return the checks that need only ``data``."""
    if manifest.backend == "simulator":
        wire = _wire(manifest, data)
        return (_conserved(run, data), *([wire] if wire.status != "unknown" else []))
    ran = {
        registry.of(workload).name: workload
        for tables in data
        for workload in tables.trial.arm.workloads
    }
    return (
        _as_built(run, manifest, data),
        _cpu(manifest, data),
        _wire(manifest, data),
        *_bound(run, data),
        *waits.check(run, manifest.clock, data),
        bookkeeping.check(run, data),
        bookkeeping.switches(run, data),
        *(
            check
            for workload in ran.values()
            for check in registry.measures(workload).checks(manifest.clock, data)
        ),
    )


def _complete(plan: Plan, missing: Mapping[str, str]) -> Check:
    planned = len(plan.trials())
    status: CheckStatus = "fail" if missing else "pass"
    return Check(
        name="complete",
        status=status,
        text=f"{planned - len(missing)} of {planned} trials done",
        completeness=True,
    )


def _untouched(run: RunDirectory, manifest: Manifest, data: Sequence[TrialTables]) -> Check:
    problems = [*contents.discrepancies(run.path, manifest), *copies.sentences(manifest, data)]
    if identity.sha256(manifest.plan.judged) != manifest.judged_sha256:
        problems.insert(0, "the claims in the manifest are not those of the run")
    if manifest.plan.hash != manifest.plan_sha256:
        problems.insert(0, "the plan in the manifest is not the one that was run")
    good = f"all {len(manifest.files)} files of the trials are those of the manifest and of DONE"
    return Check.of("files", problems, good)


def _as_built(run: RunDirectory, manifest: Manifest, data: Sequence[TrialTables]) -> Check:
    """Compare each trial's network again from its files, whatever the run's backend reported."""
    replicates = {trial.name for trial in manifest.plan.unperturbed.trials()}
    problems = [
        f"{name}: {record.message or 'not as planned'}"
        for name, record in manifest.trials.items()
        if record.status == "invalid" and name in replicates
    ]
    problems += [
        f"{tables.trial.name}: {difference}"
        for tables in data
        for difference in asbuilt.differences(run.trial(tables.trial.name), tables.trial.arm)
    ]
    if not problems and not data:
        return Check(name="as built", status="unknown", text="no trial left a network to compare")
    return Check.of(
        "as built",
        problems,
        f"the network read back is the network planned in {len(data)} of {len(data)} trials",
    )


def _conserved(run: RunDirectory, data: Sequence[TrialTables]) -> Check:
    """Check that the simulator delivered, dropped or still has in flight every packet that it
    sent."""
    problems, sent = [], 0
    for tables in data:
        name = tables.trial.name
        try:
            counted = counters.read(run.raw(name))
            handed, rest = (
                counters.total(counted["sent"]),
                sum(counters.total(counted[fate]) for fate in counters.FATES),
            )
        except (OSError, msgspec.DecodeError, KeyError) as error:
            problems.append(f"{name}: {counters.NAME} cannot be read: {error}")
            continue
        sent += handed
        if handed != rest:
            problems.append(f"{name}: {handed} packets were sent, and {rest} are accounted for")
    return Check.of(
        "packets",
        problems,
        f"all {sent} packets were delivered, dropped for a counted reason, or under way at the end",
    )


def _busy(data: Sequence[TrialTables]) -> dict[str, float]:
    """Return the share of time for which the processor was busy, by trial.

    A trial shorter than ``ENOUGH_S`` has so few ticks that its share is chance. Such trials have
    one share together, or 0 if even together they are too short.
    """
    busy: dict[str, float] = {}
    short: dict[str, tuple[float, float]] = {}
    for tables in data:
        start_s, end_s = tables.facts.window_s
        if end_s - start_s >= ENOUGH_S:
            busy[tables.trial.name] = tables.facts.cpu_busy
        else:
            short[tables.trial.name] = tables.facts.cpu_busy, end_s - start_s
    if short:
        total_s = sum(window_s for _, window_s in short.values())
        busy_s = sum(share * window_s for share, window_s in short.values())
        name = f"{len(short)} short trials" if len(short) > 1 else next(iter(short))
        busy[name] = busy_s / total_s if total_s >= ENOUGH_S else 0.0
    return busy


def _cpu(manifest: Manifest, data: Sequence[TrialTables]) -> Check:
    """Check the processor's mean load, and how long programs waited for it.

    A processor that is half busy on average may be fully busy for a while.
    """
    busy = _busy(data)
    if not busy:
        return Check(name="CPU", status="unknown", text="no trial says how busy the CPU was")
    problems = [
        f"{name}: {share:.0%} busy, {MOST_CPU:.0%} is the most"
        for name, share in busy.items()
        if share >= MOST_CPU
    ]
    lates_us: list[float] = []
    for tables in data:
        if tables.facts.cpu_late_us is None:
            continue
        late_us = tables.facts.cpu_late_us["p99"]
        lates_us.append(late_us)
        if late_us >= LATEST_US:
            problems.append(
                f"{tables.trial.name}: one wake-up of a hundred is {late_us / 1e3:.3g} ms late or "
                f"more, {LATEST_US / 1e3:g} ms is the most"
            )
    if problems:
        problems[0] += ": lower link.rate or the load"
    problems += [
        f"{tables.trial.name}: trial.json does not say how late programs got the CPU"
        for tables in data
        if tables.trial.arm.real_time and tables.facts.cpu_late_us is None
    ]
    worst = max(busy, key=lambda name: busy[name])
    whose = "the virtual CPU" if manifest.clock == "virtual" else "the CPU"
    late = "; nothing was late, by construction" if manifest.clock == "virtual" else ""
    if lates_us:
        late = f"; 99 wake-ups of a hundred were at most {max(lates_us) / 1e3:.2g} ms late"
    return Check.of("CPU", problems, f"{whose} was at most {busy[worst]:.0%} busy ({worst}){late}")


def apart(one: float, other: float) -> tuple[str, str]:
    """Format two numbers with as many digits as show that they differ: ("6.799", "6.800")."""
    pairs = ((f"{one:.{digits}f}", f"{other:.{digits}f}") for digits in range(1, 16))
    return next(
        ((first, second) for first, second in pairs if first != second), (repr(one), repr(other))
    )


def _wire(manifest: Manifest, data: Sequence[TrialTables]) -> Check:
    """Check that no latency is shorter than the wire allows, where that is known."""
    problems, compared = [], 0
    for tables in data:
        if manifest.clock != "virtual" or not links.of(tables.trial.network.model).exact:
            continue  # only these links on this clock are exact
        for workload in tables.trial.arm.workloads:
            wire = registry.measures(workload).wire
            latencies = wire(tables.tables[workload.name], workload, tables.trial) if wire else None
            if latencies is None:
                continue
            compared += int(np.count_nonzero(~np.isnan(latencies.measured_us)))
            simulated = manifest.backend == "simulator"
            rounded_us = SIMULATED_US if simulated else waits.CLOCK_US / tables.trial.arm.time_scale
            short = latencies.measured_us < latencies.least_us - rounded_us
            if np.any(short):
                first = int(np.argmax(short))
                measured, least = apart(latencies.measured_us[first], latencies.least_us[first])
                problems.append(
                    f"{tables.trial.name}: {np.count_nonzero(short)} of {len(short)} latencies of "
                    f"{workload.name} are "
                    f"shorter than the wire allows, such as {measured} us where it takes {least} us"
                )
    if not compared:
        text = "no latency over links of model wire of which the least is known"
        return Check(name="wire", status="unknown", text=text)
    return Check.of(
        "wire", problems, f"none of {compared} latencies is shorter than what the wire takes"
    )


class _LevelWait(NamedTuple):
    """The longest wait of a level at a switch port in one trial, and the most that is allowed."""

    frames: int
    longest_ns: float
    most_ns: float
    text: str


def _bound(run: RunDirectory, data: Sequence[TrialTables]) -> list[Check]:
    """Compare each wait of a limited level at a switch port with :mod:`qjump_mn.model.guarantee`.

    Says so where there is no bound. Returns no check if no frame of a limited level passed.
    """
    arms = {tables.trial.arm.name: tables.trial.arm for tables in data}
    guaranteed = {name: guarantee.of_arm(arm) for name, arm in arms.items()}
    problems, frames, nearest, nearest_text = [], 0, 0.0, ""
    unknown: list[guarantee.Unknown] = []
    for tables in data:
        trial, bounds = tables.trial, guaranteed[tables.trial.arm.name]
        if not bounds.waits_ns and not bounds.unknown:
            continue
        try:
            counted = link_loads.waits(trial.arm.network, run.asbuilt(trial.name).parent)
        except LostError as error:
            problems.append(f"{trial.name}: {error}")
            continue
        crossed = {key: counted[key[0]].get(key[1]) for key in (*bounds.waits_ns, *bounds.unknown)}
        unknown += [
            why for key, why in bounds.unknown.items() if (wait := crossed[key]) and wait.frames
        ]
        for level in _level_waits(trial, bounds, crossed):
            frames += level.frames
            if level.longest_ns > level.most_ns:
                problems.append(level.text)
            # The bound is 0 where only one host sends, at the rate of its own link.
            share = level.longest_ns / level.most_ns if level.most_ns else 0.0
            if share >= nearest:
                nearest, nearest_text = share, level.text
    without = "; ".join(f"no bound: {why.text}" for why in guarantee.worst(unknown))
    if not problems and not frames:
        return [Check(name="bound", status="unknown", text=without)] if without else []
    good = (
        f"none of {frames} frames of limited levels waited longer at a switch than limits allow "
        f"({nearest_text})"
    )
    return [Check.of("bound", problems, f"{good}; {without}" if without else good)]


def _level_waits(
    trial: Trial, bounds: guarantee.Bounds, crossed: Mapping[tuple[Flow, int], Wait | None]
) -> Iterator[_LevelWait]:
    """Yield the waits that have a bound.

    Frames that the processor hands over late come closer together by as much. That is allowed at
    each port on the longest way, up to the time of a full-size frame.
    """
    network = trial.arm.network
    late_ns = max((wait.late_ns for key in bounds.waits_ns if (wait := crossed[key])), default=0)
    flows = {flow for workload in trial.arm.workloads for flow in workload.flows}
    full_ns = theory.occupancy_ns(theory.frame_bytes(network.mtu_bytes), network.slowest_bps)
    allowed_ns = min(late_ns * max(len(network.path(*flow)) for flow in flows), full_ns)
    for (port, level), bound_ns in bounds.waits_ns.items():
        wait, most_ns = crossed[port, level], bound_ns + allowed_ns
        if wait is None or not wait.frames:
            continue
        text = (
            f"{trial.name}: level {level} at {'>'.join(port)} waited {wait.longest_ns / 1e3:.5g} "
            f"us, {most_ns / 1e3:.5g} is the most, {allowed_ns / 1e3:.5g} of it for what came "
            f"late, by {late_ns / 1e3:.5g} us at most"
        )
        yield _LevelWait(wait.frames, wait.longest_ns, most_ns, text)
