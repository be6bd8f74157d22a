"""Whether what a ping printed agrees with itself, with the trial's own times, and with what links carried."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.programs import pace
from qjump_mn.programs.measures_api import Crossed, Moved, Said
from qjump_mn.programs.ping.program import PingPlan

START_PROCESSES, END_PROCESSES = 3.0, 6.0
"""How long after the measurement began a lone ping sends, and how long before its end it has the last reply,
in times of a short process (:func:`~qjump_mn.programs.pace.process_ns`). In the guest that takes 0.45 us, and
nsping 0.16 and 0.07 of it; iputils' times have too few digits to tell."""

ROUNDED_US = 501.0
"""iputils prints whole ms from 100 ms on, and its times in whole us."""


def agrees(said: Said) -> Iterator[str]:
    """Requests lie inside of the measurement, and leave at times that know nothing of the latencies to come;
    the measurement ends with the last reply."""
    plan: PingPlan = said.plan
    facts, window_s = said.facts, said.facts.window_s[1] - said.facts.window_s[0]
    rounded_s = ROUNDED_US / 1e6 if plan.is_iputils else 0.0
    began_s = (facts.began_utc_ns if plan.is_iputils else facts.began_ns) / 1e9
    for flow in map(">".join, plan.flows):
        rows = said.table.filter(pc.field("flow") == flow)
        latency_us = rows["latency_us"].to_numpy(zero_copy_only=False)
        received_s = rows["received_s"].to_numpy(zero_copy_only=False) - began_s
        sent_s = received_s - latency_us / 1e6
        answered = np.flatnonzero(~np.isnan(sent_s))
        if not len(answered):
            continue
        first_s, last_s = float(sent_s[answered[0]]), float(np.nanmax(received_s))
        if first_s < -rounded_s or last_s > window_s + rounded_s:
            yield (
                f"{flow} was asked from {first_s:.6g} s to {last_s:.6g} s, and measured from 0 s to "
                f"{window_s:.6g} s"
            )
            continue
        # Only then does nobody hold it back: packets of links without orphan stay charged to their sender.
        if not said.virtual or not said.trial.network.link.orphan:
            continue
        # Below that, iputils waits for what is not answered.
        on_time = plan.is_iputils and plan.interval_ns >= theory.PING_UNANSWERED_NS
        time_scale = said.trial.arm.time_scale
        if on_time and (moves := pace.follows(sent_s * 1e6, latency_us, time_scale=time_scale)):
            yield f"{flow}: {moves}"
        yield from _ends(said, flow, answered, first_s, window_s - last_s)


def _ends(said: Said, flow: str, answered: np.ndarray, first_s: float, left_s: float) -> Iterator[str]:
    """A lone ping sends when it has started, and the measurement ends with its last reply."""
    plan: PingPlan = said.plan
    process_ns = pace.process_ns(said.facts)
    measuring = [one for one in said.trial.arm.workloads if one.SENDS and not one.BACKGROUND]
    if process_ns is None or len(measuring) > 1 or len(plan.flows) > 1:
        return
    rounded_s = ROUNDED_US / 1e6 if plan.is_iputils else 0.0
    most_s = START_PROCESSES * process_ns / 1e9 + rounded_s
    if answered[0] == 0 and first_s > most_s:
        yield (
            f"{flow} was first asked {first_s * 1e3:.4g} ms after the measurement began, where it takes "
            f"{most_s * 1e3:.3g} ms at most to start a ping: its first latency is too short by the rest"
        )
    most_s = END_PROCESSES * process_ns / 1e9 + rounded_s
    if len(answered) == plan.count and left_s > most_s:
        yield (
            f"the last reply to {flow} came {left_s * 1e3:.4g} ms before the measurement ended, where it "
            f"takes {most_s * 1e3:.3g} ms at most to end a ping that has all replies"
        )


def moved(said: Said) -> Iterator[Moved]:
    """Requests, and the replies of hosts' kernels."""
    plan: PingPlan = said.plan
    for flow in plan.flows:
        rows = said.table.filter(pc.field("flow") == ">".join(flow))
        answered = rows.num_rows - rows["latency_us"].null_count
        asked = Moved.datagrams(flow, plan.level, plan.packet_bytes, answered, rows.num_rows)
        # A host's limiter may drop the reply to one that came.
        yield asked._replace(last_frames=None)
        yield Moved.datagrams(flow[::-1], plan.reply_level, plan.packet_bytes, answered, rows.num_rows)


def crossed(plan: PingPlan, trial: Trial) -> dict[str, Crossed]:
    """There and back."""
    path = trial.network.path
    return {
        ">".join(flow): (
            *((port, plan.level) for port in path(*flow)),
            *((port, plan.reply_level) for port in path(*flow[::-1])),
        )
        for flow in plan.flows
    }
