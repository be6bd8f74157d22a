"""Whether the processes of a barrier agree on when each came and passed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qjump_mn import theory
from qjump_mn.programs import pace
from qjump_mn.programs.barrier.program import BarrierPlan, output_name, shortest_frame
from qjump_mn.programs.measures_api import Said
from qjump_mn.programs.text import log


def agrees(said: Said) -> Iterator[str]:
    """A process comes when the barrier is due, or when it has passed the one before; it passes when each of
    the others has come and its message was under way."""
    plan: BarrierPlan = said.plan
    came, passed, due = {}, {}, {}
    for host in plan.hosts:
        logged = log(said.read(output_name(plan, host)), "barrier")
        came[host], passed[host] = (
            np.array(logged.columns[name], dtype=np.int64) for name in ("start_ns", "end_ns")
        )
        first_ns = int(logged.end["first_due_ns"])
        due[host] = first_ns + np.arange(plan.count, dtype=np.int64) * plan.interval_ns
    most_ns = pace.latest_ns(said.trial) if said.virtual else np.inf
    for host in plan.hosts:
        yield from pace.outside(
            f"barriers of {host}", int(came[host][0]), int(passed[host].max()), said.facts
        )
        before = passed[host][:-1]
        pause_ns = came[host][1:] - (np.maximum(before, due[host][1:]) if plan.interval_ns else before)
        wrong = pace.pauses(pause_ns, most_ns)
        if np.any(wrong):
            worst = int(np.argmax(np.where(wrong, np.abs(pause_ns), -1)))
            yield (
                f"{host} did not come to {np.count_nonzero(wrong)} of {plan.count} barriers when it was due "
                "and had passed the one before, such as one to which it came "
                f"{pause_ns[worst] / 1e6:.4g} ms later"
            )
    if said.virtual:
        yield from _heard(said, came, passed)


def _heard(said: Said, came: dict[str, np.ndarray], passed: dict[str, np.ndarray]) -> Iterator[str]:
    plan: BarrierPlan = said.plan
    frame, network = shortest_frame(plan), said.trial.network
    for source, host in plan.flows:
        least_ns = theory.one_way_ns(frame, network.speeds(source, host))
        took_ns = passed[host] - came[source]
        if np.any(took_ns < least_ns):
            yield (
                f"{host} passed {np.count_nonzero(took_ns < least_ns)} of {plan.count} barriers before it "
                f"can have heard of {source}, such as one {took_ns.min() / 1e6:.4g} ms after that came, "
                f"where its message takes {least_ns / 1e6:.4g} ms"
            )
