"""Find trials whose raw output is a copy of another trial's."""

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


def _is_unique(manifest: Manifest, workload: WorkloadPlan) -> bool:
    """Return whether a workload's output contains instants that the seed has drawn."""
    if manifest.backend == "simulator":
        return registry.of(workload).name == _DRAWN
    return registry.measures(workload).tracks is not Measures.tracks
