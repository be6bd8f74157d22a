"""Is this run, bit for bit, the one that the experiment's file of reference describes?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model import loading
from qjump_mn.results.manifest import Manifest, write_atomically
from qjump_mn.results.outcome import ArmSummary, medians


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``experiments/reference/<experiment>-<preset>.json``; ``image`` is the manifest's ``machine["image"]``.

    ``values[arm][workload][measure]`` are medians over the seeds, with which runs of another backend are compared; older files have none.
    """

    plan_sha256: str
    image: str
    results_sha256: str
    values: dict[str, dict[str, dict[str, float]]] = {}


def find(experiment: str, preset: str) -> Path | None:
    """The reference of an experiment with a preset, the user's own before ours, or None."""
    for folder in loading.folders("experiments"):
        path = folder / "reference" / f"{experiment}-{preset}.json"
        if path.is_file():
            return path
    return None


def read(path: Path) -> Reference:
    """The reference in a file; raise :class:`UsageError` if it is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Reference)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{path} is no reference run: {error}") from None


def write(folder: Path, manifest: Manifest, arms: Iterable[ArmSummary]) -> Path:
    """Make a run the reference of its experiment and preset, in ``folder``; raise :class:`UsageError` unless all of its trials are done."""
    if missing := _missing(manifest):
        raise UsageError(f"{missing} of {len(manifest.plan.trials())} trials are missing: resume the run before it is a reference")
    made = Reference(manifest.plan_sha256, manifest.machine.get("image", ""), manifest.results_sha256, medians(arms))
    path = folder / f"{manifest.plan.experiment}-{manifest.plan.preset}.json"
    write_atomically(path, msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")
    return path


def sentence(manifest: Manifest, path: Path | None) -> str:
    """What the report says about the run's bits; raise :class:`UsageError` if ``path`` is no reference."""
    missing = _missing(manifest)
    ours = manifest.results_sha256
    if missing:
        return f"not compared: {missing} of {len(manifest.plan.trials())} trials are missing"
    if manifest.clock == "real":
        return f"not compared: no two runs on the real clock are alike; results sha256 {ours}"
    if path is None:
        return f"not compared: there is no reference run of preset '{manifest.plan.preset}'; results sha256 {ours}"
    reference = read(path)
    if reference.plan_sha256 != manifest.plan_sha256:
        return f"not compared: the plan is not that of the reference run; results sha256 {ours}"
    same_image = reference.image == manifest.machine.get("image", "")
    if reference.results_sha256 == ours:
        return f"identical to the reference run, sha256 {ours}"
    why = "same plan, same image" if same_image else "same plan, another image"
    return f"differs from the reference run: {why}, results sha256 {ours} instead of {reference.results_sha256}"


def _missing(manifest: Manifest) -> int:
    return sum(trial.name not in manifest.trials or manifest.trials[trial.name].status != "done" for trial in manifest.plan.trials())
