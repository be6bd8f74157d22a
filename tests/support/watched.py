"""What is asked of every watched run, in the guest or in the simulator."""

from __future__ import annotations

from qjump_mn.results import contents
from qjump_mn.results.directory import RunDirectory


def check_only_frames_are_added(watched: RunDirectory, plain: RunDirectory, trials: int) -> None:
    """Fail unless the results are those of the run without ``--watch``, which has no player."""
    digests = [contents.results(run.path, run.manifest) for run in (plain, watched)]
    assert digests[0] == digests[1] and len(digests[0].trials) == trials
    assert (watched.path / contents.PLAYER).is_file()
    assert not (plain.path / contents.PLAYER).exists()
