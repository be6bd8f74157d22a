"""What a workload's plan may have beyond its base class, asked for a trial or an arm.

:mod:`qjump_mn.model.hooks` has all others, and says how they are asked.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from qjump_mn.model.hooks import Hook
from qjump_mn.model.plan import ArmPlan, Trial


@runtime_checkable
class HasPackets(Hook, Protocol):
    """The estimated number of a trial's packets, as far as the plan determines it. A run's time is
    estimated by it, and the simulator's costliest trials start first; without it, the workload
    costs nothing."""

    def packets(self, trial: Trial) -> float: ...


def packets(trial: Trial) -> float:
    """Of all its workloads."""
    return sum(
        workload.packets(trial)
        for workload in trial.arm.workloads
        if isinstance(workload, HasPackets)
    )


@runtime_checkable
class HasArmConstants(Hook, Protocol):
    """Values of one arm that are known before anything runs, by their full names, which begin with
    the arm's name. Claims use them; without it, there are none."""

    def arm_constants(self, arm: ArmPlan) -> dict[str, float]: ...
