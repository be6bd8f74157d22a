"""Hash the files that trials left, and compare them with the manifest and each trial's DONE.

The manifest lists every file of a trial with its SHA-256. DONE, which is written last, has the
digest of that list. Results are compared by the files on disk, never by the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from qjump_mn.model.plan import Trial
from qjump_mn.results.manifest import AnyManifest, digest, sha256_of

TRIALS, RAW, DATA, MARK = "trials", "raw", "data", "DONE"
TIMELINES = "timeline"
PLAYER = "player.html"

OWN = "own"
"""The folder of the user's own files that a run uses."""

SUMS = "SHA256SUMS"
"""The file of a bundle with the hashes of all other files, in the format of ``sha256sum -c``."""

Files = Mapping[str, Mapping[str, str]]
"""The SHA-256 of each file of each trial."""


class Results(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Digests of the raw output on disk: of all done trials together, and of each by name.

    Perturbed runs are left out: they are not results of the experiment.
    """

    sha256: str
    trials: dict[str, str]


def timeline(trial: Trial) -> str:
    """Return the path of a trial's time line, relative to the run directory."""
    return f"{TIMELINES}/{trial.arm.name}-{trial.seed}.html"


def hashes(root: Path, folder: str = "") -> dict[str, str]:
    """Return the SHA-256 of every file in trials/``folder``, by its path relative to ``root``.

    The tables in data/ and DONE are derived from these files, and are left out.
    """
    paths = (
        path.relative_to(root) for path in (root / TRIALS / folder).rglob("*") if path.is_file()
    )
    # trials/<arm>/<seed>/<what the trial left>
    left = (path for path in paths if path.parts[3:4] not in ((DATA,), (MARK,)))
    return {path.as_posix(): sha256_of(root / path) for path in sorted(left)}


def results(root: Path, manifest: AnyManifest) -> Results:
    """Return the digests of the run in ``root``."""
    trials = {}
    everything: dict[str, str] = {}
    for name in manifest.result_names:
        record = manifest.trials.get(name)
        if record is not None and record.status == "done" and _mark(root, name) is not None:
            raw = hashes(root, f"{name}/{RAW}")
            trials[name] = digest(raw)
            everything |= raw
    return Results(digest(everything), trials)


def by_trial(files: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Group the SHA-256 of files, given by path, by the name of their trial."""
    trials: dict[str, dict[str, str]] = {}
    for path, sha in files.items():
        # trials/<arm>/<seed>/<what the trial left>
        trials.setdefault("/".join(path.split("/")[1:3]), {})[path] = sha
    return trials


def output(files: Files, name: str) -> set[tuple[str, str]]:
    """Return the names and SHA-256 of a trial's raw output."""
    folder = f"{TRIALS}/{name}/{RAW}/"
    return {
        (path.removeprefix(folder), sha)
        for path, sha in files.get(name, {}).items()
        if path.startswith(folder)
    }


def discrepancies(root: Path, manifest: AnyManifest) -> list[str]:
    """Return where files, manifest and DONE disagree, one sentence each; none for an untouched run.

    A trial without DONE is run again and not read, so its leftovers are not a discrepancy.
    """
    present, listed = by_trial(hashes(root)), by_trial(manifest.files)
    planned = dict.fromkeys(manifest.trial_names)
    sentences = []
    for name, problems in _marked_trials(root, manifest, listed, present):
        record = manifest.trials.get(name)
        if record is None or record.status != "done":
            sentences.append(
                f"{TRIALS}/{name} has {MARK}, but the manifest does not say that it is done"
            )
        sentences += problems
    strays = sorted(
        {
            path
            for trials in (present, listed)
            for name in trials.keys() - planned
            for path in trials[name]
        }
    )
    return sentences + [f"{path} does not belong to a trial of the run" for path in strays]


def unmarked(root: Path, manifest: AnyManifest) -> list[str]:
    """Return a sentence for each trial that the manifest calls done but that has no DONE.

    Such a trial was being run again, or its files were removed.
    """
    return [
        f"{TRIALS}/{name} has no {MARK}, but the manifest says that it is done"
        for name in manifest.trial_names
        if (record := manifest.trials.get(name)) is not None
        and record.status == "done"
        and _mark(root, name) is None
    ]


def damaged(root: Path, manifest: AnyManifest) -> dict[str, str]:
    """Return the first problem of each trial that is marked done but whose files have changed."""
    present, listed = by_trial(hashes(root)), by_trial(manifest.files)
    marked = _marked_trials(root, manifest, listed, present)
    return {name: problems[0] for name, problems in marked if problems}


def _marked_trials(
    root: Path,
    manifest: AnyManifest,
    listed: Mapping[str, Mapping[str, str]],
    present: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[str, list[str]]]:
    """Yield each trial of the run that is marked done, with the problems of its files."""
    for name in dict.fromkeys(manifest.trial_names):
        mark = _mark(root, name)
        if mark is not None:
            yield name, list(_problems(name, mark, listed.get(name, {}), present.get(name, {})))


def _problems(
    name: str, mark: str, listed: Mapping[str, str], present: Mapping[str, str]
) -> Iterator[str]:
    """Yield a sentence for each file of a trial that differs from the manifest or from DONE."""
    as_marked = mark == digest(present)
    for path in sorted({**listed, **present}):
        if path not in listed:
            yield f"{path} is not listed in the manifest"
        elif path not in present:
            yield f"{path} is gone"
        elif listed[path] != present[path]:
            yield (
                f"{path} "
                f"{'is listed with another SHA-256' if as_marked else 'is not what the trial left'}"
            )
    if mark not in (digest(listed), digest(present)):
        yield f"{TRIALS}/{name}/{MARK} has the digest of other files"


def _mark(root: Path, name: str) -> str | None:
    """Return the digest in DONE; None if the trial is not done."""
    try:
        return (root / TRIALS / name / MARK).read_text(errors="replace").strip()
    except OSError:
        return None
