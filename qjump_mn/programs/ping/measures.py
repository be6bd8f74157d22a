"""Round trips in ms, the fraction of requests that had no reply, and what they say of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.links import registry as links
from qjump_mn.model.plan import Trial
from qjump_mn.programs.measures_api import Measures, OnTheWire, by_flow
from qjump_mn.programs.pace import hundredth_us
from qjump_mn.programs.ping.agreement import agrees, crossed, moved
from qjump_mn.programs.ping.program import PingPlan
from qjump_mn.programs.statistics import of_latencies, percentile
from qjump_mn.programs.tracks import Floats, Track, floats, milliseconds, split
from qjump_mn.results.outcome import Check
from qjump_mn.results.tables import TrialFacts, TrialTables

PACE_PERCENT = 2.0
"""How far the interval between two requests may be from the one asked for (measured: 0.2 % at 10 ms)."""

MODEL_VALUE = "the idle RTT is a model value, not a measurement"

ROUNDED = 0.005
"""ping prints three digits from 1 ms on: a round trip may be longer than its text says by this share of
it."""

PRINTED_US = 1.0
"""The last digit of what ping prints below 1 ms."""


def values(table: pa.Table, plan: PingPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of a ping, of all its flows."""
    return of_latencies(table)


def wire(table: pa.Table, plan: PingPlan, trial: Trial) -> OnTheWire:
    """An echo's way there and its reply's back."""
    network = trial.network
    least_us = {
        ">".join(flow): theory.ping_rtt_ns(plan.payload_bytes, network.speeds(*flow)) / 1e3
        for flow in plan.flows
    }
    measured_us = table["latency_us"].to_numpy(zero_copy_only=False)
    rounds = plan.is_iputils & (measured_us >= 1e3)
    longest_us = np.where(rounds, measured_us * (1 + ROUNDED), measured_us)
    return OnTheWire(longest_us, by_flow(table, least_us))


def checks(clock: str, data: Sequence[TrialTables]) -> Iterator[Check]:
    """That an idle ping takes what the wire takes, and that every request is accounted for."""
    yield _idle(clock, data)
    yield _pings(data)


def _pinged(tables: TrialTables) -> Iterator[tuple[PingPlan, str, pa.Table]]:
    """Each flow of a trial's pings, "h8>h10", with its rows."""
    for workload in tables.trial.arm.workloads:
        if isinstance(workload, PingPlan):
            for flow in map(">".join, workload.flows):
                yield workload, flow, tables.tables[workload.name].filter(pc.field("flow") == flow)


class _IdleFlow(NamedTuple):
    """What an idle flow's round trips have above the wire's, in us: the median, how far nine of ten are
    apart, and the most that either may be."""

    name: str
    median_us: float
    varies_us: float
    most_us: float

    def problems(self) -> Iterator[str]:
        """What is not as the wire alone would make it."""
        if abs(self.median_us) > self.most_us:
            yield (
                f"{self.name}: round trips differ from the wire's by {self.median_us:.3g} us, more than "
                f"{self.most_us:.3g} us"
            )
        if self.varies_us > self.most_us:
            yield f"idle round trips vary by {self.varies_us:.3g} us: the network was not idle"


def _idle_flows(data: Sequence[TrialTables]) -> Iterator[_IdleFlow]:
    for tables in data:
        arm = tables.trial.arm
        senders = [workload for workload in arm.workloads if workload.SENDS]
        if arm.qjump is not None or len(senders) != 1 or not links.of(arm.network.model).exact:
            continue
        if arm.network.jittery:
            continue  # no two take the same
        for ping, flow, table in _pinged(tables):
            analytic_us = theory.ping_rtt_ns(ping.payload_bytes, arm.network.speeds(*flow.split(">"))) / 1e3
            excess = np.sort(table["latency_us"].drop_null().to_numpy()) - analytic_us
            if len(excess):
                varies_us = percentile(excess, 90) - percentile(excess, 0)
                printed_us = PRINTED_US if analytic_us < 1e3 else ROUNDED * analytic_us
                rounded_us = printed_us if ping.is_iputils else 0.0
                most_us = hundredth_us(arm.network) + rounded_us
                yield _IdleFlow(f"{tables.trial.name} {flow}", percentile(excess, 50), varies_us, most_us)


def _idle(clock: str, data: Sequence[TrialTables]) -> Check:
    """An idle ping takes what the wire takes; no other model promises that."""
    flows = list(_idle_flows(data))
    if not flows:
        text = (
            "no lone ping over links of model wire between hosts of constant time, so nothing is known of an "
            "idle round trip"
        )
        return Check(name="idle RTT", status="unknown", text=text)
    numbers = (
        f"{_range([flow.median_us for flow in flows])} us above the analytic round trip, "
        f"the same within {max(flow.varies_us for flow in flows):.2g} us for nine pings of ten"
    )
    if clock != "virtual":
        return Check(name="idle RTT", status="unknown", text=f"{numbers}; the real clock promises nothing")
    problems = [problem for flow in flows for problem in flow.problems()]
    return Check.of("idle RTT", problems, f"{numbers}; {MODEL_VALUE}")


def _pings(data: Sequence[TrialTables]) -> Check:
    problems, sent, received, paces = [], 0, 0, []
    for tables in data:
        network = tables.trial.network
        for ping, flow, table in _pinged(tables):
            where = f"{tables.trial.name}: "
            if table["sequence"].to_pylist() != list(range(1, ping.count + 1)):
                problems.append(f"{where}{table.num_rows} of {ping.count} requests {flow} are accounted for")
            sent, received = sent + table.num_rows, received + table.num_rows - table["latency_us"].null_count
            # Below that, iputils waits longer after a request that was not answered. Where the network keeps
            # packets charged to their sender, those that wait in it hold ping back: that is what such links
            # do, not an error.
            exact = (
                (not ping.is_iputils or ping.interval_ns >= theory.PING_UNANSWERED_NS)
                and network.link.orphan
                and links.of(network.model).exact
            )
            if exact and (pace := _pace_percent(table, ping.interval_ns)) is not None:
                paces.append(pace)
                if abs(pace) > PACE_PERCENT:
                    problems.append(f"{where}{flow} sends at an interval that is {pace:+.1f} % off")
    pace_text = (
        f", sent at an interval within {max(map(abs, paces)):.1g} % of the one asked for" if paces else ""
    )
    return Check.of(
        "pings", problems, f"{sent} requests = {received} replies + {sent - received} lost{pace_text}"
    )


def _pace_percent(flow: pa.Table, interval_ns: int) -> float | None:
    """How much longer than ``interval_ns`` it takes from one request to the next, by those that were
    answered.

    None if too few were.
    """
    answered = flow.filter(pc.is_valid(flow["latency_us"]))
    if answered.num_rows < 2:
        return None
    at_s = answered["received_s"].to_numpy() - answered["latency_us"].to_numpy() / 1e6
    requests = int(answered["sequence"][-1].as_py()) - int(answered["sequence"][0].as_py())
    return float((at_s[-1] - at_s[0]) / requests / interval_ns * 1e9 - 1) * 100


def _range(numbers: list[float]) -> str:
    low, high = f"{min(numbers):.3g}", f"{max(numbers):.3g}"
    return low if low == high else f"{low} to {high}"


def tracks(table: pa.Table, plan: PingPlan, trial: Trial, facts: TrialFacts) -> Iterator[Track]:
    """Every request from when it was sent, which nobody knows of one without a reply: it stands where its
    number says."""
    began_s = (facts.began_utc_ns if plan.is_iputils else facts.began_ns) / 1e9
    for flow in map(">".join, plan.flows):
        rows = table.filter(pc.field("flow") == flow)
        rtt_ms = milliseconds(rows)
        sent_s = _sent_s(floats(rows, "received_s") - began_s - rtt_ms / 1e3, plan.interval_ns / 1e9)
        note = "A request without a reply stands where its number says." if np.isnan(rtt_ms).any() else ""
        whole = Track("round-trip time", "ms", "took", "", sent_s * 1e9, rtt_ms, note=note)
        yield from split(whole, [flow] * rows.num_rows)


def _sent_s(known_s: Floats, interval_s: float) -> Floats:
    """The times of all requests, in order, of which those with nan are reckoned from the last one before
    that is known, else from the first, else from the beginning."""
    numbers, known = np.arange(len(known_s)), np.flatnonzero(~np.isnan(known_s))
    if not len(known):
        return (numbers * interval_s).astype(np.float64)
    last = known[np.maximum(np.searchsorted(known, numbers, side="right") - 1, 0)]
    sent: Floats = known_s[last] + (numbers - last) * interval_s
    return sent


MEASURES = Measures(
    values=values, checks=checks, wire=wire, agrees=agrees, moved=moved, crossed=crossed, tracks=tracks
)
