"""What the guest and the host can do of a plan: the same, for they run the same programs on the same kind of network."""

from __future__ import annotations

from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Plan
from qjump_mn.model.topology import check_emulated
from qjump_mn.workloads.drivers import launches


def check(plan: Plan) -> None:
    """Raise :class:`UsageError` for what only the simulator has, and where two programs of an arm would write one file."""
    check_emulated(plan.network)
    for trial in plan.trials()[: len(plan.arms_run)]:  # another seed writes the same files
        where = f"experiment {plan.experiment!r}: arms.{trial.arm.name}"
        check_emulated(trial.network)
        if trial.arm.scheme.only_simulated:
            raise UsageError(f"{where}: scheme {trial.arm.scheme.name!r} is for the simulator: use --backend simulator")
        written: set[str] = set()
        for workload in trial.arm.workloads:
            if workload.ONLY_SIMULATED:
                raise UsageError(f"{where}: workloads.{workload.name} is for the simulator: use --backend simulator")
            for launch in launches(workload, trial):
                if launch.output in written:
                    raise UsageError(
                        f"{where}: {launch.program} on {launch.host}, of workloads.{workload.name}, would write the file of another, {launch.output}: "
                        f"give each of its flows from {launch.host} a workload of its own"
                    )
                written.add(launch.output)
