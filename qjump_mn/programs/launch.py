"""Launches: the processes of a workload, which a trial starts and ``--dry-run`` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal["serve", "load", "probe"]
"""When a process starts: before everything else, with the background load, or with the measurement.
Processes of "serve" are ready before the others start."""


@dataclass(frozen=True)
class Launch:
    """A process on ``host``. It runs in the folder of the trial's raw files, where ``output`` keeps
    its standard output.

    A process is ready when it listens on the port ``listens``, such as ("tcp", 5201), or its output
    contains the text ``says``, or the file ``exists`` is in its folder; at most ``ready_s`` later.
    One of phase "serve" with none of these is ready when it has ended. One that does not end
    ``itself`` is sent SIGTERM, ``linger_s`` after all that do have ended. ``longest_s`` is the most
    time that it may take, plus a margin. ``good`` are exit statuses that count as success.
    ``preload`` is one of our libraries. ``unknown`` says that it may start programs that ignore
    preloaded libraries, such as static ones and Go's; the kernel then gives its packets their
    level.
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
        """The program's name, without a leading ``env`` and its variables."""
        first, *others = self.argv
        if first != "env":
            return first
        return next((word for word in others if word != "env" and "=" not in word), first)

    @property
    def shown(self) -> str:
        """What messages call the process."""
        return f"{self.program} on {self.host or 'the switches'}"
