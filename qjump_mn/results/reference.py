"""Compare a run's results, bit for bit, with the reference run of its experiment and preset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from qjump_mn.errors import InvalidRunError, UsageError
from qjump_mn.process.files import write_atomically
from qjump_mn.resolve import loading
from qjump_mn.results.contents import Results
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import Outcome, medians

LOCKED_IMAGE = "locked_image"
"""The key in a manifest's ``machine`` of the ``image`` that machine.lock expects."""

NAMED = 3
"""The most differing trials that a sentence names."""


class TrialReference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A trial of a reference run: the SHA-256 of what was run, and the digest of its raw output."""

    run_sha256: str
    results_sha256: str


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``experiments/reference/<experiment>-<preset>.json``: the results of a reference run.

    ``plan_sha256`` covers what was run. ``trials`` are by name. ``values[arm][workload][measure]``
    are medians over the seeds, for comparison with runs of another backend.
    """

    plan_sha256: str
    results_sha256: str
    trials: dict[str, TrialReference]
    values: dict[str, dict[str, dict[str, float]]]


def find(experiment: str, preset: str) -> Path | None:
    """Return the path of the reference, the user's own before ours; None if there is none."""
    for folder in loading.folders("experiments"):
        path = folder / "reference" / f"{experiment}-{preset}.json"
        if path.is_file():
            return path
    return None


def read(path: Path) -> Reference:
    """Return the reference in a file. Raises :class:`UsageError` if it is not one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Reference)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{path} is no reference run: {error}") from None


def write(folder: Path, manifest: Manifest, outcome: Outcome, results: Results) -> Path:
    """Write a run into ``folder`` as the reference of its experiment and preset; return the file.

    Raises :class:`UsageError` unless the run is valid and all its trials are done.
    """
    plan = manifest.plan.unperturbed
    if outcome.exit_code == InvalidRunError.exit_code:
        raise UsageError("the run is not valid: run the experiment anew before it is a reference")
    if missing := _missing(manifest, results):
        raise UsageError(f"{missing}: resume the run before it is a reference")
    trials = {
        trial.name: TrialReference(trial.hash, results.trials[trial.name])
        for trial in plan.trials()
    }
    reference = Reference(plan.hash, results.sha256, trials, medians(outcome.arms))
    path = folder / f"{plan.shown.experiment}-{plan.shown.preset}.json"
    save(path, reference)
    return path


def save(path: Path, reference: Reference) -> None:
    """Write a reference to its file."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(reference), indent=1) + b"\n")


class Compared(NamedTuple):
    """How a run's results compare with the reference run.

    ``sentence`` has every detail. ``clause`` is short, without hashes, or "" if it adds nothing.
    """

    sentence: str
    clause: str = ""


def compare(manifest: Manifest, results: Results, path: Path | None, *, valid: bool) -> Compared:
    """Compare a run with the reference in ``path``; ``valid`` is whether its fidelity passed.

    Raises :class:`UsageError` if ``path`` is not a reference.
    """
    digest, plan = f"results sha256 {results.sha256}", manifest.plan
    if not valid:
        return Compared(f"not compared: the run is not valid; {digest}")
    if missing := _missing(manifest, results):
        return Compared(f"not compared: {missing}")
    if manifest.clock == "real":
        why = "no two runs on the real clock are alike"
        clause = (
            f"not compared with a reference run: {why}" if _has_any(plan.shown.experiment) else ""
        )
        return Compared(f"not compared: {why}; {digest}", clause)
    if path is None:
        preset = plan.shown.preset
        clause = f"there is no reference run of preset {preset}"
        return Compared(
            f"not compared: there is no reference run of preset '{preset}'; {digest}",
            clause if _has_any(plan.shown.experiment) else "",
        )
    return _compared(manifest, results, path)


def _has_any(experiment: str) -> bool:
    """Whether any preset of an experiment has a reference run."""
    return any(
        path.stem.rpartition("-")[0] == experiment
        for folder in loading.folders("experiments")
        for path in (folder / "reference").glob("*.json")
    )


def _compared(manifest: Manifest, results: Results, path: Path) -> Compared:
    """Compare the trials that both runs have with the same settings."""
    reference, compared = read(path), manifest.plan.unperturbed
    trials = compared.trials()
    expected = {name: trial.results_sha256 for name, trial in reference.trials.items()}
    hashes = {trial.name: trial.hash for trial in trials}
    alike = [name for name in expected if hashes.get(name) == reference.trials[name].run_sha256]
    digest = f"results sha256 {results.sha256}"
    if not alike:
        return Compared(
            f"not compared: the plan is not that of the reference run; {digest}",
            "not compared with the reference run, which had other settings",
        )
    differing = [name for name in alike if expected[name] != results.trials[name]]
    whole = compared.hash == reference.plan_sha256 and len(alike) == len(trials) == len(expected)
    if whole and not differing and results.sha256 != reference.results_sha256:
        raise UsageError(
            f"{path} contradicts itself: its digest is not that of its trials; make it anew"
        )
    count = f"{len(alike)} {'trials' if len(alike) > 1 else 'trial'}"
    both = count if whole else f"the {count} that both have"
    counts = "" if whole else f" (this run has {len(trials)}, the reference run {len(expected)})"
    if differing:
        plan = "same plan" if whole else "another plan"
        images = _other_images(manifest)
        image = f"another machine {images}" if images else "same machine"
        location = f"in {len(differing)} of {both}{counts}, {first_names(differing)}"
        return Compared(
            f"the results differ from the reference run's {location}: {plan}, {image}; {digest}",
            f"differs from the reference run in {len(differing)} of {both} "
            f"({first_names(differing)}), with {'another' if images else 'the same'} machine",
        )
    if whole:
        same = "identical to the reference run"
        return Compared(f"{same}, sha256 {results.sha256}", same)
    same = f"the results are those of the reference run in {both}"
    return Compared(f"{same}{counts}; {digest}", same)


def _other_images(manifest: Manifest) -> str:
    """Return in brackets the run's image, the locked one, and the first differing package.

    "" if the images are the same.
    """
    machine = manifest.machine
    ours, expected = machine.get("image", ""), machine.get(LOCKED_IMAGE, "")
    if ours == expected:
        return ""
    first, *others = machine.get("differences", "").split("; ")
    more = f", and {len(others)} more" if others else ""
    packages = f"; {first}{more}" if first else ""
    return (
        f"(ours {ours[:12] or 'none'}, the reference machine {expected[:12] or 'none'}{packages})"
    )


def first_names(names: Sequence[str]) -> str:
    """Join the first names, and count the others: "a, b, c and 2 more"."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def _missing(manifest: Manifest, results: Results) -> str:
    """Say how many trials are missing; "" if none is."""
    planned = len(manifest.plan.unperturbed.trials())
    missing = planned - len(results.trials)
    return f"{missing} of {planned} trials are missing" if missing else ""
