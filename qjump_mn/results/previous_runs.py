"""The runs of an experiment that a folder has already."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from qjump_mn.errors import UsageError
from qjump_mn.results import outcome
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import Outcome


class EarlierRun(NamedTuple):
    """A run directory with its manifest, as it was when it was found."""

    directory: RunDirectory
    manifest: Manifest

    @property
    def left(self) -> int:
        """How many of its trials are not done."""
        return sum(not self.directory.is_done(name) for name in self.manifest.order)

    @property
    def outcome(self) -> Outcome | None:
        """What was made of the whole run; None if trials are left, or were when it was judged last."""
        if self.left:
            return None
        try:
            found = outcome.read(self.directory.path)
        except UsageError:
            return None
        return None if found.missing else found


def newest_first(folder: Path, experiment: str) -> list[EarlierRun]:
    """The runs of ``experiment`` below ``folder``; those that another version of ours has made are left
    out."""
    found = []
    for path in folder.glob(f"{experiment}-*"):
        run = RunDirectory(path.resolve())
        try:
            manifest = run.manifest
        except UsageError:
            continue
        if manifest.plan.shown.experiment == experiment:  # not hadoop-codel where it is hadoop
            found.append(EarlierRun(run, manifest))
    # Of two that started in one second the later one has a number at its end.
    return sorted(
        found,
        key=lambda run: (run.manifest.started_utc, len(run.directory.path.name), run.directory.path.name),
        reverse=True,
    )
