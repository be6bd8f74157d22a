"""What programs cost: seconds in the guest, packets in the simulator."""

from __future__ import annotations

import pytest

from qjump_mn.backends.guest import GuestBackend
from qjump_mn.backends.simulator import SimulatorBackend
from qjump_mn.model import resolve
from qjump_mn.model.plan import Trial
from qjump_mn.programs.flows.program import MEAN_PACKETS, FlowsPlan
from qjump_mn.programs.ping.program import PingPlan
from qjump_mn.session import FORK_S, QUIET, expected_s


def trial(experiment: str, preset: str, arm: str, *settings: str) -> Trial:
    return next(
        one for one in resolve.plan(experiment, preset, list(settings)).trials() if one.arm.name == arm
    )


@pytest.mark.parametrize(
    ("of", "busy"),
    [
        (trial("fig3a", "smoke", "contended"), {"ping": 0.0, "bulk": 0.7}),
        (trial("fig3b", "smoke", "contended"), {"memcached": 0.0, "job": 1.6}),
        (trial("course16", "smoke", "contended"), {"ptp": 0.0, "memcached": 1.5, "job": 1.6}),
        (trial("fig6", "smoke", "qjump_400"), {"broadcast": 1.3, "bursts": 0.5, "steady": 0.7}),
    ],
    ids=lambda value: value.arm.name if isinstance(value, Trial) else "",
)
def test_only_the_closed_loop_of_memcached_is_busy(of: Trial, busy: dict[str, float]) -> None:
    assert {workload.name: workload.busy for workload in of.arm.workloads} == busy


def test_the_seconds_of_a_run_are_those_of_its_programs() -> None:
    plan = resolve.plan("fig3a", "smoke", [], only=["contended"])
    backend = GuestBackend()
    virtual_s = (plan.warmup_ns + plan.duration_ns) / 1e9
    assert expected_s(plan, backend) == (FORK_S + virtual_s * (QUIET + 0.7)) / backend.parallel


def test_the_packets_of_a_simulated_trial_are_those_of_its_programs() -> None:
    backend = SimulatorBackend()
    idle, contended, levels = (trial("fig3a", "10g", arm) for arm in ("idle", "contended", "qjump"))
    ping = idle.arm.workloads[0]
    assert isinstance(ping, PingPlan) and backend.cost(idle) == 2 * ping.count
    bulk_s = (contended.warmup_ns + contended.duration_ns) / 1e9
    assert backend.cost(contended) == pytest.approx(backend.cost(idle) + 3 * 1e10 * bulk_s / 8 / 1500)
    assert backend.cost(levels) == 2 * backend.cost(contended), "packets with levels take twice the events"
    poisson = trial("fig9", "smoke", resolve.plan("fig9", "smoke", []).arms[0].name)
    flows = poisson.arm.workloads[0]
    assert isinstance(flows, FlowsPlan) and flows.packets(poisson) == flows.count * MEAN_PACKETS["search"]
