"""A workload as the processes it is made of: what a trial starts, and ``--dry-run`` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal["serve", "load", "probe"]
"""When a process starts: before everything else, with the background, or with the measurement. What serves is
ready before the others start."""


@dataclass(frozen=True)
class Launch:
    """One process on ``host``; its standard output is kept as ``output``, and it runs in the folder where
    that lies.

    ``listens`` is the port, ("tcp", 5201), that makes it ready, ``says`` a text in its output that does, and
    ``exists`` a file in its folder that does, within ``ready_s``; one that serves and has none of them is
    ready when it has ended. One that does not end ``itself`` is sent SIGTERM ``linger_s`` after all that do
    have ended. ``longest_s`` is how long it may take from its start, beyond a margin; ``good`` are the exit
    statuses that are results; ``preload`` is a library of ours. ``unknown`` says that it may start what
    ignores preloaded libraries, such as static programs and Go: the kernel gives its packets the level then.
    """

    phase: Phase
    host: str
    argv: tuple[str, ...]
    output: str
    listens: tuple[Literal["tcp", "udp"], int] | None = None
    says: str | None = None
    exists: str | None = None
    ready_s: float = 20.0
    itself: bool = True
    linger_s: float = 0.0
    longest_s: float = 0.0
    good: tuple[int, ...] = (0,)
    preload: str | None = None
    unknown: bool = False

    @property
    def program(self) -> str:
        """The program's name, without what gives it an environment."""
        first, *others = self.argv
        if first != "env":
            return first
        return next((word for word in others if word != "env" and "=" not in word), first)

    @property
    def shown(self) -> str:
        """What messages call it."""
        return f"{self.program} on {self.host or 'the switches'}"
