"""Trials whose raw output is that of another trial, where no two trials can leave the same."""

from __future__ import annotations

from collections.abc import Sequence

from qjump_mn.programs import registry
from qjump_mn.programs.base import WorkloadPlan
from qjump_mn.programs.measures_api import Measures
from qjump_mn.results import contents
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.tables import TrialTables

_DRAWN = "flows"
"""In the simulator: the seed draws the instants and the sizes of these, in ps and in packets."""


def sentences(manifest: Manifest, data: Sequence[TrialTables]) -> list[str]:
    """Each trial that has the raw output of an earlier one, byte for byte, and cannot have made it.

    Some trials do leave the same. Arms whose difference has no effect do with one seed on the virtual clock,
    and other seeds do in the simulator where nothing is drawn. In the emulation the seed draws the instants
    at which programs start, so that output with times in it differs; on the real clock it always does.
    """
    files = contents.by_trial(manifest.files)
    found, seen = [], dict[frozenset[tuple[str, str]], list[tuple[str, int]]]()
    for tables in data:
        trial = tables.trial
        raw = frozenset(contents.output(files, trial.name))
        if not raw or not any(_is_unique(manifest, workload) for workload in trial.arm.workloads):
            continue
        for name, seed in seen.get(raw, []):
            if seed != trial.seed or manifest.clock == "real":
                found.append(f"{trial.name} has the output of {name}, byte for byte: it is a copy")
                break
        seen.setdefault(raw, []).append((trial.name, trial.seed))
    return found


def _is_unique(manifest: Manifest, workload: WorkloadPlan) -> bool:
    """Whether its output tells instants that the seed has drawn."""
    if manifest.backend == "simulator":
        return registry.of(workload).name == _DRAWN
    measures = registry.measures(workload)
    return measures.agrees is not None and measures.tracks is not Measures.tracks
