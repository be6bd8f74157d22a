"""Judge the claims in perturbed runs, to show how robust verdicts are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from qjump_mn.analysis import claims
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.results import contents
from qjump_mn.results.outcome import Perturbed, VerdictRow


class PerturbedRun(NamedTuple):
    """A perturbed run: its number, what was varied, the measures, and its network's constants.

    ``says`` is whether it counts: the change had an effect, and its fidelity checks passed.
    """

    number: int
    what: str
    measured: claims.Measured
    constants: Mapping[str, float]
    says: bool


def reached(plan: Plan, files: contents.Files, number: int) -> bool:
    """Whether the change in a perturbed run changed any raw output.

    It may not: a scheme of the simulator may have its own buffer instead of the link's.
    """
    before = {trial.arm.name: trial.name for trial in _before(plan, number)}
    return not before or any(
        contents.output(files, trial.name) != contents.output(files, before[trial.arm.name])
        for trial in plan.perturbed(number)
    )


def _before(plan: Plan, number: int) -> tuple[Trial, ...]:
    """Return the trials that a perturbed run varies; none if the seed is what is varied."""
    run = plan.run.perturbations[number - 1]
    if run.what not in plan.run.varied:
        return ()
    if run.seed in plan.run.seeds:
        return tuple(trial for trial in plan.unperturbed.trials() if trial.seed == run.seed)
    return plan.perturbed(1 + [each.seed for each in plan.run.perturbations].index(run.seed))


def add_margins(
    plan: Plan, rows: tuple[VerdictRow, ...], runs: Sequence[PerturbedRun]
) -> tuple[VerdictRow, ...]:
    """Return ``rows`` with how each claim fares in the perturbed runs; verdicts do not change.

    A run whose gate fails counts for the gates only.
    """
    if not plan.run.perturbations:
        return rows
    judged = {name: claims.Claim.of(plan, name) for name in plan.judged.claims}
    gates = {name for name, claim in plan.judged.claims.items() if claim.gate}
    holds: dict[str, dict[int, bool]] = {name: {} for name in judged}
    for run in runs:
        if not run.says:
            continue
        results = {
            name: claim.holds(run.measured, run.constants)
            for name, claim in judged.items()
            if set(claim.arms) <= set(run.measured)
        }
        is_valid = all(results.get(gate, True) for gate in gates)
        for name, held in results.items():
            if is_valid or name in gates:
                holds[name][run.number] = held
    whats = {run.number: run.what for run in runs}
    return tuple(
        msgspec.structs.replace(row, perturbed=_perturbed(holds[row.claim], whats)) for row in rows
    )


def _perturbed(holds: Mapping[int, bool], whats: Mapping[int, str]) -> Perturbed:
    return Perturbed(
        planned=len(whats),
        checked=tuple(holds),
        held=tuple(number for number, held in holds.items() if held),
        broken_by=next((whats[number] for number, held in holds.items() if not held), ""),
    )
