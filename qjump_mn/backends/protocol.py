"""The interface of backends, and the outcome of a trial."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from qjump_mn.model.plan import Plan, Trial

Progress = Callable[[str], None]
"""Called with a short line about the current stage, such as "measures, 3 of 10 s".

The text after the first comma is how far the stage has got, and may change often.
"""

SIMULATED = "simulates, "
"""The prefix of the progress lines that the simulator's process prints on standard error."""


class Ended(NamedTuple):
    """The outcome of a trial: its exit code, a sentence if that is not 0, and its resources.

    ``virtual_s`` is its duration on the guest's clock, ``wall_s`` on the host's. ``waited_s`` is
    the wait for a core before that. ``cpu_s`` is its processor time, ``memory_mb`` its peak
    memory. None means unknown.
    """

    exit_code: int
    message: str
    virtual_s: float | None
    wall_s: float
    waited_s: float = 0.0
    cpu_s: float | None = None
    memory_mb: int | None = None


class Backend(Protocol):
    """A backend, which is a context manager.

    Up to `parallel` trials may run at a time, each from its own thread. With `repeats_anywhere`,
    another machine with the same image gives the same results, so a cluster may run the trials.
    """

    name: str
    clock: str
    repeats_anywhere: bool
    parallel: int

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def check(self, plan: Plan, progress: Progress) -> None:
        """Raise :class:`UsageError` if this backend cannot run the plan; called first."""

    def cost(self, trial: Trial) -> float:
        """Return how long the trial takes, relative to the plan's other trials.

        The longest are run first. Return 0 for all trials to keep their order.
        """

    def prepare(self, plan: Plan, progress: Progress) -> dict[str, str]:
        """Prepare the plan's trials, and return what identifies the machine, for the manifest."""

    def run(self, trial: Trial, out: Path, progress: Progress) -> Ended:
        """Run one trial with its files in ``out``; do not raise for errors inside the trial."""

    def stop(self) -> None:
        """End the trials that run now, because the user has interrupted the run."""
