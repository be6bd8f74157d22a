"""What the guest and the host can do of a plan: the same, for they run the same programs on the same kind of
network."""

from __future__ import annotations

from pathlib import Path

from qjump_mn.errors import InvalidRunError, UsageError
from qjump_mn.model.plan import ArmPlan, Plan, Trial
from qjump_mn.model.units import Rate
from qjump_mn.model.wiring import check_emulated
from qjump_mn.programs import registry
from qjump_mn.results import asbuilt

FASTEST_ON_HOST = Rate(10**10)

LEAST_DURATION_NS = 100_000_000
"""At 10 Mb/s: the time of 81 full-size frames."""


def check(plan: Plan) -> None:
    """Raise :class:`UsageError` for what only the simulator has, and where two programs of an arm would write
    one file."""
    experiment = f"experiment {plan.experiment!r}"
    check_emulated(plan.network)
    least_ns = max(LEAST_DURATION_NS // arm.time_scale for arm in plan.arms_run)
    if plan.duration_ns < least_ns:
        raise UsageError(
            f"{experiment}: a duration of {plan.duration_ns / 1e6:g} ms is out of range "
            f"for the emulation: use {least_ns / 1e6:g}ms and more"
        )
    for trial in plan.trials()[: len(plan.arms_run)]:  # another seed writes the same files
        where = f"{experiment}: arms.{trial.arm.name}"
        check_emulated(trial.network)
        if trial.arm.scheme.only_simulated:
            raise UsageError(
                f"{where}: scheme {trial.arm.scheme.name!r} is for the simulator: use --backend simulator"
            )
        if trial.arm.real_time:
            _check_real_time(where, trial.arm)
        qjump = trial.arm.qjump
        if qjump is not None and qjump.keeps_budgets and qjump.epochs != "rolling":
            raise UsageError(
                f"{where}: epochs {qjump.epochs!r} are for the simulator, the kernel's limiters have rolling "
                "ones: leave `epochs` out, or use --backend simulator"
            )
        written: set[str] = set()
        for workload in trial.arm.workloads:
            workload.check_emulated(f"{where}: workloads.{workload.name}")
            for launch in registry.of(workload).launches(workload, trial):
                if launch.output in written:
                    raise UsageError(
                        f"{where}: {launch.shown}, of workloads.{workload.name}, would "
                        f"write the file of another, {launch.output}: "
                        f"give each of its flows from {launch.host} a workload of its own"
                    )
                written.add(launch.output)


def _check_real_time(where: str, arm: ArmPlan) -> None:
    """Raise :class:`UsageError` for what a host's own clock cannot have."""
    fastest = Rate(max(arm.network.link.rate_bps, arm.network.trunk.rate_bps))
    if fastest > FASTEST_ON_HOST:
        raise UsageError(
            f"{where}: a link rate of {fastest} is out of range for a host's own kernel: use at most "
            f"{FASTEST_ON_HOST}, or --backend guest"
        )
    if arm.clock:
        raise UsageError(
            f"{where}: clock: a host's own kernel takes the time that it takes: leave the table out, or use "
            "--backend guest"
        )
    for workload in arm.workloads:
        workload.check_real_time(f"{where}: workloads.{workload.name}")


def check_built(out: Path, trial: Trial) -> None:
    """Raise :class:`InvalidRunError` when the network that was read back into ``out`` is not the one that was
    planned."""
    wrong = asbuilt.differences(out, trial.arm)
    if wrong:
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        raise InvalidRunError(f"the network built is not the network planned: {'; '.join(wrong[:3])}{more}")
