"""Find trials whose raw output is a copy of another trial's, and arms whose output is the same."""

from __future__ import annotations

from collections.abc import Sequence

from qjump_mn.model.workload import WorkloadPlan
from qjump_mn.programs import registry
from qjump_mn.programs.facts import TrialTables
from qjump_mn.programs.measures_api import Measures
from qjump_mn.results import contents
from qjump_mn.results.manifest import Manifest

_DRAWN = "flows"
"""The program whose instants (ps) and sizes (packets) the seed draws in the simulator."""


def sentences(manifest: Manifest, data: Sequence[TrialTables]) -> list[str]:
    """Return a sentence for each trial whose raw output must be copied from an earlier trial.

    Some trials do leave equal output: arms whose difference has no effect, with the same seed on
    the virtual clock; and different seeds in the simulator, if nothing is drawn. In the emulation
    the seed draws when programs start, so output with times differs. On the real clock it always
    differs.
    """
    files = contents.by_trial(manifest.files)
    copied, seen = [], dict[frozenset[tuple[str, str]], list[tuple[str, int]]]()
    for tables in data:
        trial = tables.trial
        raw = frozenset(contents.output(files, trial.name))
        if not raw or not any(_is_unique(manifest, workload) for workload in trial.arm.workloads):
            continue
        for name, seed in seen.get(raw, []):
            if seed != trial.seed or manifest.clock == "real":
                copied.append(f"{trial.name} has the output of {name}, byte for byte: it is a copy")
                break
        seen.setdefault(raw, []).append((trial.name, trial.seed))
    return copied


def alike(manifest: Manifest) -> list[str]:
    """Return a sentence for each group of arms that left the same raw output with every seed.

    Only where time repeats to the bit does that say something: what differs between the arms had no
    effect. Arms with a missing trial are left out.
    """
    if manifest.clock == "real":
        return []
    files, plan = contents.by_trial(manifest.files), manifest.plan
    labels: dict[tuple[frozenset[tuple[str, str]], ...], list[str]] = {}
    for arm in plan.run.arms:
        names = (f"{arm.name}/{seed}" for seed in plan.run.seeds)
        output = tuple(frozenset(contents.output(files, name)) for name in names)
        if all(output):
            labels.setdefault(output, []).append(f"'{arm.label}'")
    return [
        f"The arms {', '.join(names[:-1])} and {names[-1]} left the same bytes with every seed: "
        "the setting between them did nothing."
        for names in labels.values()
        if len(names) > 1
    ]


def _is_unique(manifest: Manifest, workload: WorkloadPlan) -> bool:
    """Return whether a workload's output contains instants that the seed has drawn."""
    if manifest.backend == "simulator":
        return registry.of(workload).name == _DRAWN
    return registry.measures(workload).tracks is not Measures.tracks
