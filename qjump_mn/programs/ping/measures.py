"""Measures of ping: round trips in ms and the loss; and checks of a run that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.links import registry as links
from qjump_mn.model import hooks
from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import Check, TrialFacts, TrialTables
from qjump_mn.programs.measures_api import (
    Crossed,
    Measures,
    Moved,
    OnTheWire,
    Said,
    by_flow,
    hundredth_us,
)
from qjump_mn.programs.ping.program import PingPlan
from qjump_mn.programs.statistics import of_latencies, percentile
from qjump_mn.programs.tracks import Floats, Track, floats, milliseconds, split

PACE_PERCENT = 2.0
"""Allowed deviation of the interval between requests from the planned one (measured: 0.2 % at 10
ms)."""

MODEL_VALUE = "the idle RTT is a model value, not a measurement"

ROUNDED = 0.005
"""From 1 ms on, ping prints three digits: a round trip may exceed the printed value by this
fraction."""

PRINTED_US = 1.0
"""Last digit that ping prints below 1 ms."""


def values(table: pa.Table, plan: PingPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of all flows together."""
    return of_latencies(table)


def wire(table: pa.Table, plan: PingPlan, trial: Trial) -> OnTheWire:
    """Path of a request and of its reply."""
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
    """Check that an idle ping takes as long as the wire, and that no request is unaccounted for."""
    yield _idle(clock, data)
    yield _pings(data)


def _pinged(tables: TrialTables) -> Iterator[tuple[PingPlan, str, pa.Table]]:
    """Each flow of a trial's pings, such as "h8>h10", with its rows."""
    for workload in tables.trial.arm.workloads:
        if isinstance(workload, PingPlan):
            for flow in map(">".join, workload.flows):
                yield workload, flow, tables.tables[workload.name].filter(pc.field("flow") == flow)


class _IdleFlow(NamedTuple):
    """Round trips of an idle flow minus the wire's, in us: the median, the range of nine out of
    ten, and the limit of both."""

    name: str
    median_us: float
    varies_us: float
    most_us: float

    def problems(self) -> Iterator[str]:
        """Differences from what the wire alone would give."""
        if abs(self.median_us) > self.most_us:
            yield (
                f"{self.name}: round trips differ from the wire's by {self.median_us:.3g} us, more "
                f"than {self.most_us:.3g} us"
            )
        if self.varies_us > self.most_us:
            yield f"idle round trips vary by {self.varies_us:.3g} us: the network was not idle"


def _idle_flows(data: Sequence[TrialTables]) -> Iterator[_IdleFlow]:
    for tables in data:
        arm = tables.trial.arm
        senders = [workload for workload in arm.workloads if hooks.sends(workload)]
        if arm.qjump is not None or len(senders) != 1 or not links.of(arm.network.model).exact:
            continue
        if arm.network.draws_times:
            continue  # no two round trips are equal
        for ping, flow, table in _pinged(tables):
            analytic_us = (
                theory.ping_rtt_ns(ping.payload_bytes, arm.network.speeds(*flow.split(">"))) / 1e3
            )
            excess = np.sort(table["latency_us"].drop_null().to_numpy()) - analytic_us
            if len(excess):
                varies_us = percentile(excess, 90) - percentile(excess, 0)
                printed_us = PRINTED_US if analytic_us < 1e3 else ROUNDED * analytic_us
                rounded_us = printed_us if ping.is_iputils else 0.0
                most_us = hundredth_us(arm.network) + rounded_us
                yield _IdleFlow(
                    f"{tables.trial.name} {flow}", percentile(excess, 50), varies_us, most_us
                )


def _idle(clock: str, data: Sequence[TrialTables]) -> Check:
    """Check that idle pings take as long as the wire. Only the exact link model makes that true."""
    flows = list(_idle_flows(data))
    if not flows:
        text = (
            "no ping ran alone over links of model wire between hosts of constant time, so idle "
            "round trips are not known"
        )
        return Check(name="idle RTT", status="unknown", text=text)
    numbers = (
        f"{_range([flow.median_us for flow in flows])} us above the analytic round trip, "
        f"the same within {max(flow.varies_us for flow in flows):.2g} us for nine pings of ten"
    )
    if clock != "virtual":
        text = f"{numbers}; in real time there is no limit"
        return Check(name="idle RTT", status="unknown", text=text)
    problems = [problem for flow in flows for problem in flow.problems()]
    return Check.of("idle RTT", problems, f"{numbers}; {MODEL_VALUE}")


def _pings(data: Sequence[TrialTables]) -> Check:
    problems, sent, received, paces = [], 0, 0, []
    for tables in data:
        network = tables.trial.network
        for ping, flow, table in _pinged(tables):
            location = f"{tables.trial.name}: "
            if table["sequence"].to_pylist() != list(range(1, ping.count + 1)):
                problems.append(
                    f"{location}{table.num_rows} of {ping.count} requests {flow} are accounted for"
                )
            sent += table.num_rows
            received += table.num_rows - table["latency_us"].null_count
            # Below PING_UNANSWERED_NS, iputils waits longer after an unanswered request. On links
            # that keep packets charged to their sender, waiting packets delay ping: that is not an
            # error.
            exact = (
                (not ping.is_iputils or ping.interval_ns >= theory.PING_UNANSWERED_NS)
                and network.link.orphan
                and links.of(network.model).exact
            )
            if exact and (pace := _pace_percent(table, ping.interval_ns)) is not None:
                paces.append(pace)
                if abs(pace) > PACE_PERCENT:
                    problems.append(
                        f"{location}{flow} sends at an interval that is {pace:+.1f} % off"
                    )
    pace_text = (
        f", sent at an interval within {max(map(abs, paces)):.1g} % of the planned one"
        if paces
        else ""
    )
    return Check.of(
        "pings",
        problems,
        f"{sent} requests = {received} replies + {sent - received} lost{pace_text}",
    )


def _pace_percent(flow: pa.Table, interval_ns: int) -> float | None:
    """By how many percent the mean interval between requests exceeds ``interval_ns``, from the
    answered ones; None if there are too few."""
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
    """Every request from when it was sent. For a request without a reply, that is estimated from
    its number."""
    began_s = (facts.began_utc_ns if plan.is_iputils else facts.began_ns) / 1e9
    for flow in map(">".join, plan.flows):
        rows = table.filter(pc.field("flow") == flow)
        rtt_ms = milliseconds(rows)
        sent_s = _sent_s(
            floats(rows, "received_s") - began_s - rtt_ms / 1e3, plan.interval_ns / 1e9
        )
        note = (
            "A request without a reply is drawn where its number says."
            if np.isnan(rtt_ms).any()
            else ""
        )
        track = Track("round-trip time", "ms", "took", "", sent_s * 1e9, rtt_ms, note=note)
        yield from split(track, [flow] * rows.num_rows)


def _sent_s(known_s: Floats, interval_s: float) -> Floats:
    """Fill in the unknown sending times (nan) of requests in order: from the last known one before,
    else from the first known one, else from the start."""
    numbers, known_numbers = np.arange(len(known_s)), np.flatnonzero(~np.isnan(known_s))
    if not len(known_numbers):
        return (numbers * interval_s).astype(np.float64)
    last = known_numbers[np.maximum(np.searchsorted(known_numbers, numbers, side="right") - 1, 0)]
    sent_s: Floats = known_s[last] + (numbers - last) * interval_s
    return sent_s


def moved(said: Said) -> Iterator[Moved]:
    """Requests, and the replies of the hosts' kernels."""
    plan: PingPlan = said.plan
    for flow in plan.flows:
        rows = said.table.filter(pc.field("flow") == ">".join(flow))
        answered = rows.num_rows - rows["latency_us"].null_count
        requests = Moved.datagrams(flow, plan.level, plan.packet_bytes, answered, rows.num_rows)
        # A host's limiter may drop the reply to a request that arrived.
        yield requests._replace(last_frames=None)
        yield Moved.datagrams(
            flow[::-1], plan.reply_level, plan.packet_bytes, answered, rows.num_rows
        )


def crossed(plan: PingPlan, trial: Trial) -> dict[str, Crossed]:
    """The path there and back."""
    path = trial.network.path
    return {
        ">".join(flow): (
            *((port, plan.level) for port in path(*flow)),
            *((port, plan.reply_level) for port in path(*flow[::-1])),
        )
        for flow in plan.flows
    }


MEASURES = Measures(
    values=values, checks=checks, wire=wire, moved=moved, crossed=crossed, tracks=tracks
)
