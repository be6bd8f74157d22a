"""May this run be believed? One check a reason, each with its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.analysis.measured.statistics import percentile
from qjump_mn.model import identity
from qjump_mn.model.plan import Plan
from qjump_mn.model.programs import AnyPlan, IperfPlan, PingPlan
from qjump_mn.results import contents, counters
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import Check, CheckStatus
from qjump_mn.results.tables import TrialTables

MOST_CPU = 0.70
"""Above this the one virtual CPU is part of what is measured: queues form in front of it."""

LATEST_US = 5000.0
"""Of 99 wake-ups of a hundred, or all but two. Where the processor has time to spare a program waits for the tick of the kernel's scheduler (4 ms) at most:
5.2 ms was the latest of all wake-ups of 150 trials at 10 Mb/s. Where programs queued for it, at 100 Mb/s, it was 10 ms for one of a hundred."""

CPU_TERM_US = (20.0, 120.0)
"""What the guest's CPU adds to an idle round trip over switches of kernel code; prototypes had 49 to 50 us."""

CPU_TERM_VARIES_US = 20.0
"""An idle network is nearly the same for every ping: nine of ten lie within this of the quickest (measured: 1 to 4 us). The kernel's tick
delays one in a hundred by 30 us; one that meets a full-size packet of 100 Mb/s takes 123 us longer."""

PACE_PERCENT = 2.0
"""How far the interval between two requests may be from the one asked for (measured: 0.2 % at 10 ms)."""

MODEL_VALUE = "the idle RTT is a model value, not a measurement"


def checks(run: RunDirectory, manifest: Manifest, data: Sequence[TrialTables], missing: Mapping[str, str]) -> tuple[Check, ...]:
    """Every check of a run; ``data`` are its trials with tables, ``missing`` the others with the reason."""
    whole = (_complete(manifest.plan, missing), _untouched(run, manifest))
    if manifest.backend == "simulator":
        return (*whole, _conserved(run, data))
    return (
        *whole,
        _as_built(run, manifest, data),
        _idle(manifest, data),
        _cpu(manifest, data),
        _pings(data),
        _bulk(data),
    )


def _check(name: str, problems: Sequence[str], good: str) -> Check:
    """Failed with up to three of its problems, else passed."""
    if not problems:
        return Check(name=name, status="pass", text=good)
    more = f", and {len(problems) - 3} more" if len(problems) > 3 else ""
    return Check(name=name, status="fail", text="; ".join(problems[:3]) + more)


def _complete(plan: Plan, missing: Mapping[str, str]) -> Check:
    planned = len(plan.trials())
    status: CheckStatus = "fail" if missing else "pass"
    return Check(name="complete", status=status, text=f"{planned - len(missing)} of {planned} trials done", completeness=True)


def _untouched(run: RunDirectory, manifest: Manifest) -> Check:
    problems = contents.discrepancies(run.path, manifest)
    if identity.sha256(manifest.plan.judged) != manifest.judged_sha256:
        problems.insert(0, "the claims in the manifest are not those of the run")
    if manifest.plan.hash != manifest.plan_sha256:
        problems.insert(0, "the plan in the manifest is not the one that was run")
    good = f"all {len(manifest.files)} files of the trials are those of the manifest and of DONE"
    return _check("files", problems, good)


def _as_built(run: RunDirectory, manifest: Manifest, data: Sequence[TrialTables]) -> Check:
    problems = [f"{name}: {record.message or 'not as planned'}" for name, record in manifest.trials.items() if record.status == "invalid"]
    unread = [tables.trial.name for tables in data if not any((run.asbuilt(tables.trial.name) / "before").glob("*"))]
    if not problems and (unread or not data):
        return Check(name="as built", status="unknown", text=f"nothing was read back in {', '.join(unread) or 'any trial'}")
    return _check("as built", problems, f"the network read back is the network planned in {len(data)} of {len(data)} trials")


def _conserved(run: RunDirectory, data: Sequence[TrialTables]) -> Check:
    """What the simulator says to have sent it has delivered, dropped for a reason that it counts, or still has under way."""
    problems, sent = [], 0
    for tables in data:
        name = tables.trial.name
        try:
            counted = counters.read(run.raw(name))
            handed, rest = counters.total(counted["sent"]), sum(counters.total(counted[fate]) for fate in counters.FATES)
        except (OSError, msgspec.DecodeError, KeyError) as error:
            problems.append(f"{name}: {counters.NAME} cannot be read: {error}")
            continue
        sent += handed
        if handed != rest:
            problems.append(f"{name}: {handed} packets were sent, and {rest} are accounted for")
    return _check("packets", problems, f"all {sent} packets were delivered, dropped for a counted reason, or under way at the end")


def _idle(manifest: Manifest, data: Sequence[TrialTables]) -> Check:
    """An idle ping takes what the wire takes, and one constant more."""
    medians: dict[str, float] = {}
    varies: list[float] = []
    for tables in data:
        arm = tables.trial.arm
        if arm.qjump is not None or any(not isinstance(workload, PingPlan) for workload in arm.workloads) or len(arm.workloads) != 1:
            continue
        network = arm.network
        if network.model != "wire":
            continue  # no other model promises a constant
        (workload,) = arm.workloads
        assert isinstance(workload, PingPlan)
        for source, destination in workload.flows:
            analytic_us = theory.ping_rtt_ns(workload.payload_bytes, network.speeds(source, destination)) / 1e3
            table = tables.tables[workload.name]
            excess = np.sort(table.filter(pc.field("flow") == f"{source}>{destination}")["latency_us"].drop_null().to_numpy()) - analytic_us
            if len(excess):
                medians[f"{tables.trial.name} {source}>{destination}"] = percentile(excess, 50)
                varies.append(percentile(excess, 90) - percentile(excess, 0))
    if not medians:
        return Check(name="idle RTT", status="unknown", text="no lone ping over links of model wire, so the CPU's share of a round trip is not known")
    numbers = f"{_range(list(medians.values()))} us above the analytic round trip, the same within {max(varies):.0f} us for nine pings of ten"
    if manifest.clock != "virtual":
        return Check(name="idle RTT", status="unknown", text=f"{numbers}; the real clock promises no constant")
    problems = [
        f"{name}: the CPU adds {term:.0f} us, outside {CPU_TERM_US[0]:.0f} to {CPU_TERM_US[1]:.0f} us"
        for name, term in medians.items()
        if not CPU_TERM_US[0] <= term <= CPU_TERM_US[1]
    ]
    if max(varies) > CPU_TERM_VARIES_US:
        problems.append(f"idle round trips vary by {max(varies):.0f} us: the network was not idle")
    return _check("idle RTT", problems, f"{numbers}; {MODEL_VALUE}")


def _cpu(manifest: Manifest, data: Sequence[TrialTables]) -> Check:
    """The mean load of the processor, and how long a program waits for it: half busy on average may be all busy for a while."""
    busy = {tables.trial.name: tables.facts.cpu_busy for tables in data}
    if not busy:
        return Check(name="CPU", status="unknown", text="no trial says how busy the CPU was")
    problems = [f"{name}: {share:.0%} busy, {MOST_CPU:.0%} is the most" for name, share in busy.items() if share >= MOST_CPU]
    late_us = {tables.trial.name: tables.facts.cpu_late_us["p99"] for tables in data if tables.facts.cpu_late_us is not None}
    for name, late in late_us.items():
        if late >= LATEST_US:
            problems.append(f"{name}: one wake-up of a hundred is {late / 1e3:.1f} ms late or more, {LATEST_US / 1e3:g} ms is the most")
    if problems:
        problems[0] += ": lower link.rate or the load"
    worst = max(busy, key=lambda name: busy[name])
    whose = "the virtual CPU" if manifest.clock == "virtual" else "the CPU"
    latest = f"; 99 wake-ups of a hundred were at most {max(late_us.values()) / 1e3:.2g} ms late" if late_us else ""
    return _check("CPU", problems, f"{whose} was at most {busy[worst]:.0%} busy ({worst}){latest}")


def _pings(data: Sequence[TrialTables]) -> Check:
    problems, sent, received, paces = [], 0, 0, []
    for tables, workload in _workloads(data):
        if not isinstance(workload, PingPlan):
            continue
        table = tables.tables[workload.name]
        for source, destination in workload.flows:
            flow = table.filter(pc.field("flow") == f"{source}>{destination}")
            if flow["sequence"].to_pylist() != list(range(1, workload.count + 1)):
                problems.append(f"{tables.trial.name}: {flow.num_rows} of {workload.count} requests {source}>{destination} are accounted for")
            sent, received = sent + flow.num_rows, received + flow.num_rows - flow["latency_us"].null_count
            # Below that, ping waits longer after a request that was not answered. Where the network keeps packets charged to their
            # sender, those that wait in it hold ping back: that is what such links do, not an error.
            exact = workload.interval_ns >= theory.PING_UNANSWERED_NS and tables.trial.network.orphan and tables.trial.network.model == "wire"
            if exact and (pace := _pace_percent(flow, workload.interval_ns)) is not None:
                paces.append(pace)
                if abs(pace) > PACE_PERCENT:
                    problems.append(f"{tables.trial.name}: {source}>{destination} sends at an interval that is {pace:+.1f} % off")
    paced = f", sent at an interval within {max(map(abs, paces)):.1g} % of the one asked for" if paces else ""
    return _check("pings", problems, f"{sent} requests = {received} replies + {sent - received} lost{paced}")


def _pace_percent(flow: pa.Table, interval_ns: int) -> float | None:
    """How much longer than ``interval_ns`` it takes from one request to the next, by those that were answered; None if too few were."""
    answered = flow.filter(pc.is_valid(flow["latency_us"]))
    if answered.num_rows < 2:
        return None
    at_s = answered["received_s"].to_numpy() - answered["latency_us"].to_numpy() / 1e6
    requests = int(answered["sequence"][-1].as_py()) - int(answered["sequence"][0].as_py())
    return float((at_s[-1] - at_s[0]) / requests / interval_ns * 1e9 - 1) * 100


def _bulk(data: Sequence[TrialTables]) -> Check:
    problems, flows = [], 0
    for tables, workload in _workloads(data):
        if not isinstance(workload, IperfPlan):
            continue
        rows = tables.tables[workload.name].to_pylist()
        # A ping waits for replies that were lost, so the window may end a little later than the flows, which the goodput allows for.
        until = min(tables.facts.window_s[1], tables.facts.window_s[0] + tables.trial.duration_ns / 1e9)
        for source, destination in workload.flows:
            name = f"{source}>{destination}"
            flows += 1
            for side in ("sender", "receiver"):
                mine = [row for row in rows if row["flow"] == name and row["side"] == side]
                streams = {row["stream"] for row in mine}
                if len(streams) != workload.streams:
                    problems.append(f"{tables.trial.name}: {name} has {len(streams)} of {workload.streams} streams at the {side}")
                # A last interval that is only a little shorter than the others is how iperf3 ends on the receiver's clock.
                elif (ended := min(max(row["end_s"] for row in mine if row["stream"] == stream) for stream in streams)) < until - 0.25:
                    problems.append(f"{tables.trial.name}: {name} ended at {ended:.2f} s at the {side}, the window at {until:.2f} s")
    if not flows:
        return Check(name="bulk flows", status="unknown", text="no bulk flow ran")
    return _check("bulk flows", problems, f"all {flows} flows ran to the end of their windows")


def _workloads(data: Sequence[TrialTables]) -> list[tuple[TrialTables, AnyPlan]]:
    return [(tables, workload) for tables in data for workload in tables.trial.arm.workloads]


def _range(values: list[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"
