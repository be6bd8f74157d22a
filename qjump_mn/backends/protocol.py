"""What every backend offers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from qjump_mn.model.plan import Plan, Trial

Progress = Callable[[str], None]
"""Called with what is done now, in a short line. What follows its first comma is how far that has come, so
that it may be called often: "measures, 3 of 10 s"."""

SIMULATED = "simulates, "
"""What the simulator's process says on standard error of how far it has come begins so."""


class Ended(NamedTuple):
    """How a trial ended: its exit code, a sentence if that is not 0, and how long it took.

    ``virtual_s`` is on the guest's clock, ``wall_s`` on ours, without ``waited_s``, which is how long it
    waited for a core before. ``cpu_s`` is what it kept processors busy for, and ``memory_mb`` the most memory
    that it had; None where nobody knows.
    """

    exit_code: int
    message: str
    virtual_s: float | None
    wall_s: float
    waited_s: float = 0.0
    cpu_s: float | None = None
    memory_mb: int | None = None


class Backend(Protocol):
    """A context manager; `parallel` trials may run at a time, each from a thread of its own.

    With `repeats_anywhere`, another machine with the same image gives the same results, so that a cluster
    may run the trials.
    """

    name: str
    clock: str
    repeats_anywhere: bool
    parallel: int

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def check(self, plan: Plan, progress: Progress) -> None:
        """Raise :class:`UsageError` for what this backend cannot do of the plan, before anything is made."""

    def cost(self, trial: Trial) -> float:
        """How long the trial takes, compared with others of its plan; the longest are run first. 0 where
        their order is to stay."""

    def prepare(self, plan: Plan, progress: Progress) -> dict[str, str]:
        """Make everything ready for the plan's trials; return what identifies the machine, for the
        manifest."""

    def run(self, trial: Trial, out: Path, progress: Progress) -> Ended:
        """Run one trial and leave its files in ``out``; never raises for what went wrong inside the trial."""

    def stop(self) -> None:
        """End the trials that run now: the user does not want them any more."""
