"""What trials left on disk: SHA-256 of every file, and whether the manifest and each trial's DONE agree.

The manifest lists every file of a trial with its SHA-256. DONE, which is written last, has the digest of
that list. Results are compared by what is on disk, never by the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from qjump_mn.model.plan import Trial
from qjump_mn.results.manifest import Manifest, digest, sha256_of

TRIALS, RAW, DATA, MARK = "trials", "raw", "data", "DONE"
TIMELINES = "timeline"

Files = Mapping[str, Mapping[str, str]]
"""SHA-256 of each file of each trial."""


class Results(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Digests of the raw output on disk: of all done trials together, and of each by its name; without those
    of perturbed runs, which are no results of the experiment."""

    sha256: str
    trials: dict[str, str]


def timeline(trial: Trial) -> str:
    """Where the time line of a trial lies, below the run directory."""
    return f"{TIMELINES}/{trial.arm.name}-{trial.seed}.html"


def hashes(root: Path, folder: str = "") -> dict[str, str]:
    """SHA-256 of every file that trials left in trials/``folder``, by its path below ``root``.

    The tables in data/ are made of these files, and DONE of their digest: neither is among them.
    """
    paths = (path.relative_to(root) for path in (root / TRIALS / folder).rglob("*") if path.is_file())
    # trials/<arm>/<seed>/<what the trial left>
    left = (path for path in paths if path.parts[3:4] not in ((DATA,), (MARK,)))
    return {path.as_posix(): sha256_of(root / path) for path in sorted(left)}


def results(root: Path, manifest: Manifest) -> Results:
    """The digests of the run in ``root``, in the form that sha256sum prints."""
    trials = {}
    everything: dict[str, str] = {}
    for trial in manifest.plan.unperturbed.trials():
        record = manifest.trials.get(trial.name)
        if record is not None and record.status == "done" and _mark(root, trial.name) is not None:
            raw = hashes(root, f"{trial.name}/{RAW}")
            trials[trial.name] = digest(raw)
            everything |= raw
    return Results(digest(everything), trials)


def by_trial(files: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """SHA-256 of files by their paths, for each trial by its name."""
    trials: dict[str, dict[str, str]] = {}
    for path, sha in files.items():
        # trials/<arm>/<seed>/<what the trial left>
        trials.setdefault("/".join(path.split("/")[1:3]), {})[path] = sha
    return trials


def output(files: Files, name: str) -> set[tuple[str, str]]:
    """The raw output of a trial: names with SHA-256."""
    folder = f"{TRIALS}/{name}/{RAW}/"
    return {
        (path.removeprefix(folder), sha)
        for path, sha in files.get(name, {}).items()
        if path.startswith(folder)
    }


def discrepancies(root: Path, manifest: Manifest) -> list[str]:
    """What files, manifest and marks do not agree in, a sentence each; none for a run that nobody touched.

    Trials without DONE are run again and read by nobody: what an interrupted one has left is no discrepancy.
    """
    present, listed = by_trial(hashes(root)), by_trial(manifest.files)
    planned = {trial.name: None for trial in manifest.plan.trials()}
    sentences = []
    for name, wrong in _of_marked(root, manifest, listed, present):
        record = manifest.trials.get(name)
        if record is None or record.status != "done":
            sentences.append(f"{TRIALS}/{name} has {MARK}, and the manifest does not say that it is done")
        sentences += wrong
    strays = sorted(
        {path for trials in (present, listed) for name in trials.keys() - planned for path in trials[name]}
    )
    return sentences + [f"{path} is of no trial of the plan" for path in strays]


def unmarked(root: Path, manifest: Manifest) -> list[str]:
    """The trials that the manifest says are done and that have no DONE, a sentence each: one that was being
    run again, or that somebody took away."""
    return [
        f"{TRIALS}/{trial.name} has no {MARK}, and the manifest says that it is done"
        for trial in manifest.plan.trials()
        if (record := manifest.trials.get(trial.name)) is not None
        and record.status == "done"
        and _mark(root, trial.name) is None
    ]


def damaged(root: Path, manifest: Manifest) -> dict[str, str]:
    """The trials that are marked as done and whose files are not those that they left, each with what is
    wrong."""
    present, listed = by_trial(hashes(root)), by_trial(manifest.files)
    return {name: wrong[0] for name, wrong in _of_marked(root, manifest, listed, present) if wrong}


def _of_marked(
    root: Path,
    manifest: Manifest,
    listed: Mapping[str, Mapping[str, str]],
    present: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[str, list[str]]]:
    """Each trial of the plan that is marked as done, and what is wrong with its files."""
    for name in dict.fromkeys(trial.name for trial in manifest.plan.trials()):
        mark = _mark(root, name)
        if mark is not None:
            yield name, list(_of_trial(name, mark, listed.get(name, {}), present.get(name, {})))


def _of_trial(name: str, mark: str, listed: Mapping[str, str], present: Mapping[str, str]) -> Iterator[str]:
    as_marked = mark == digest(present)
    for path in sorted({**listed, **present}):
        if path not in listed:
            yield f"{path} is not listed in the manifest"
        elif path not in present:
            yield f"{path} is gone"
        elif listed[path] != present[path]:
            yield f"{path} {'is listed with another SHA-256' if as_marked else 'is not what the trial left'}"
    if mark not in (digest(listed), digest(present)):
        yield f"{TRIALS}/{name}/{MARK} has the digest of other files"


def _mark(root: Path, name: str) -> str | None:
    """The digest in DONE; None for a trial that is not done."""
    try:
        return (root / TRIALS / name / MARK).read_text(errors="replace").strip()
    except OSError:
        return None
