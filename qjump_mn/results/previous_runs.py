"""Find earlier runs of an experiment in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from qjump_mn.errors import UsageError
from qjump_mn.results import outcome
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import Outcome


class EarlierRun(NamedTuple):
    """A run directory with its manifest, as read when it was found."""

    directory: RunDirectory
    manifest: Manifest

    @property
    def left(self) -> int:
        """The number of trials that are not done."""
        return sum(not self.directory.is_done(name) for name in self.manifest.order)

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the whole run; None if trials are missing, or were in its last
        analysis."""
        if self.left:
            return None
        try:
            result = outcome.read(self.directory.path)
        except UsageError:
            return None
        return None if result.missing else result


def newest_first(folder: Path, experiment: str) -> list[EarlierRun]:
    """Return the runs of ``experiment`` in ``folder``, without those that this version cannot
    read."""
    runs = []
    for path in folder.glob(f"{experiment}-*"):
        run = RunDirectory(path.resolve())
        try:
            manifest = run.manifest
        except UsageError:
            continue
        if (
            manifest.plan.shown.experiment == experiment
        ):  # the pattern for hadoop also matches hadoop-codel
            runs.append(EarlierRun(run, manifest))
    # Of two runs that started in the same second, the later one has a numeric suffix.
    return sorted(
        runs,
        key=lambda run: (
            run.manifest.started_utc,
            len(run.directory.path.name),
            run.directory.path.name,
        ),
        reverse=True,
    )
