"""Check what the guest and host backends can run, and that the network is built as planned.

Both have the same limits, because they run the same programs on the same kind of network.
"""

from __future__ import annotations

from pathlib import Path

from qjump_mn.errors import InvalidRunError, UsageError
from qjump_mn.model import hooks
from qjump_mn.model.plan import ArmPlan, Plan, Trial
from qjump_mn.model.units import Rate
from qjump_mn.programs import registry
from qjump_mn.resolve.wiring import check_emulated
from qjump_mn.results import asbuilt

FASTEST_ON_HOST = Rate(10**10)

LEAST_DURATION_NS = 100_000_000
"""The shortest duration at 10 Mb/s: the time of 81 full-size frames."""


def check(plan: Plan) -> None:
    """Raise :class:`UsageError` if the plan needs the simulator, or cannot be run.

    Two programs of an arm must not write the same file.
    """
    experiment = f"experiment {plan.shown.experiment!r}"
    check_emulated(plan.shown.network)
    least_ns = max(LEAST_DURATION_NS // arm.time_scale for arm in plan.run.arms)
    if plan.run.duration_ns < least_ns:
        raise UsageError(
            f"{experiment}: a duration of {plan.run.duration_ns / 1e6:g} ms is out of range "
            f"for the emulation: use {least_ns / 1e6:g}ms or more"
        )
    for trial in plan.trials()[: len(plan.run.arms)]:  # further seeds write the same files
        _check_trial(f"{experiment}: arms.{trial.arm.name}", trial)


def _check_trial(location: str, trial: Trial) -> None:
    check_emulated(trial.network)
    if trial.arm.scheme.only_simulated:
        problem = f"scheme {trial.arm.scheme.name!r} is for the simulator"
        raise UsageError(f"{location}: {problem}: use --backend simulator")
    if trial.arm.real_time:
        _check_real_time(location, trial.arm)
    qjump = trial.arm.qjump
    if qjump is not None and qjump.keeps_budgets and qjump.epochs != "rolling":
        raise UsageError(
            f"{location}: epochs {qjump.epochs!r} are for the simulator, because the kernel's "
            "limiters have rolling epochs: leave `epochs` out, or use --backend simulator"
        )
    outputs: set[str] = set()
    for workload in trial.arm.workloads:
        hooks.check_emulated(workload, f"{location}: workloads.{workload.name}")
        for launch in registry.of(workload).launches(workload, trial):
            if launch.output in outputs:
                raise UsageError(
                    f"{location}: {launch.shown}, of workloads.{workload.name}, would "
                    f"write the file of another program, {launch.output}: "
                    f"give each of its flows from {launch.host} a workload of its own"
                )
            outputs.add(launch.output)


def _check_real_time(location: str, arm: ArmPlan) -> None:
    """Raise :class:`UsageError` for what is not possible on the host's own clock."""
    fastest = Rate(max(arm.network.link.rate_bps, arm.network.trunk.rate_bps))
    if fastest > FASTEST_ON_HOST:
        raise UsageError(
            f"{location}: a link rate of {fastest} is out of range for a host's own kernel: use at "
            f"most {FASTEST_ON_HOST}, or --backend guest"
        )
    if arm.scheme.module:
        raise UsageError(
            f"{location}: module {arm.scheme.module.file}: modules are compiled for the guest's "
            "kernel only: use --backend guest"
        )
    if arm.clock:
        raise UsageError(
            f"{location}: clock: a host's own kernel cannot keep declared times: leave the table "
            "out, or use --backend guest"
        )
    for workload in arm.workloads:
        hooks.check_real_time(workload, f"{location}: workloads.{workload.name}")


def check_built(out: Path, trial: Trial) -> None:
    """Raise :class:`InvalidRunError` if the network read back into ``out`` is not as planned."""
    if differences := asbuilt.differences(out, trial.arm):
        more = f" (and {len(differences) - 3} more)" if len(differences) > 3 else ""
        listed = "; ".join(differences[:3])
        raise InvalidRunError(f"the network built is not the network planned: {listed}{more}")
