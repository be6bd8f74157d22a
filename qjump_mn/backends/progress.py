"""What is told while trials run: in a terminal a line for each of them, which changes; else a line now and
then."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from qjump_mn.backends import estimate
from qjump_mn.backends.protocol import Backend, Ended
from qjump_mn.errors import InvalidRunError
from qjump_mn.guest.cores import WAITS
from qjump_mn.model.plan import Trial

PLAIN_S = 30.0
"""Without a terminal, a line after so long, and one about waiting for a core at most so often."""
PLAIN_COLUMNS = 80
"""The width of such lines."""


class Row(NamedTuple):
    """A trial that runs: its stage, how far that has come, and since when it no longer waits for a core."""

    line: str
    since: float

    @property
    def waits(self) -> bool:
        """Whether it waits for a core."""
        return self.line.startswith(WAITS)


class Board:
    """A context manager. Trials tell it their stages from several threads; the main thread calls
    :meth:`tick`.

    ``alone_s`` is what each trial is expected to take by itself.
    """

    def __init__(
        self, out: Console, backend: Backend, trials: Sequence[Trial], alone_s: Mapping[str, float]
    ) -> None:
        self._out, self._backend, self._all, self._alone_s = out, backend, len(trials), dict(alone_s)
        self._began = time.monotonic()
        self._rows: dict[str, Row] = {}
        self._ready, self._took_s, self._said_s = 0, 0.0, 0.0
        self._told = self._began
        self._waits, self._waits_told = "", -math.inf
        # FORCE_COLOR takes a pipe for a terminal, on which no line can be changed.
        changes = out.is_terminal and not (out.is_dumb_terminal or out.no_color) and out.file.isatty()
        self._live = (
            Live(
                console=out, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            if changes
            else None
        )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.update("")
            self._live.stop()

    def tell(self, line: str) -> None:
        """Say a line that stays."""
        self._told = time.monotonic()
        if self._live:
            self._live.update(self._lines())
        if line.startswith(WAITS):
            line = _cut(line, self._room)
        self._out.print(f"{_clock(self._told - self._began)}{line}", markup=False)

    def stage(self, trial: Trial, line: str) -> str:
        """A trial has come to ``line``; its stage, if that is another than before."""
        now, before = time.monotonic(), self._rows.get(trial.name)
        self._rows[trial.name] = Row(line, now if before is None or before.waits else before.since)
        stage = _stage(line)
        return stage if before is None or _stage(before.line) != stage else ""

    def ended(self, trial: Trial, how: Ended, found: str = "") -> None:
        """A trial has ended; ``found`` is a first word of what it measured. While it measures nobody asks:
        to answer, the guest would need its processor, which is then busy with what is measured."""
        self._rows.pop(trial.name, None)
        self._ready += 1
        self._took_s += how.wall_s
        self._said_s += self._alone_s.pop(trial.name)
        left = f", {self._left()}" if self._ready < self._all and not self._live else ""
        first = f"; {found}" if found else ""
        self.tell(f"[{self._ready}/{self._all}] {trial.name}: {_how(how)}{first}{left}")

    def tick(self) -> None:
        """Show how it goes, if it is time to."""
        if self._live:
            self._live.update(self._lines(), refresh=True)
            return
        rows, now = dict(self._rows), time.monotonic()
        # As many trials wait as there are cores, and one line is enough: that of the next to start.
        waits = next((row.line for row in rows.values() if row.waits), "")
        if waits and waits != self._waits and now - self._waits_told > PLAIN_S:
            self._waits, self._waits_told = waits, now
            self.tell(waits)
        running = {name: row.line for name, row in rows.items() if not row.waits}
        if running and now - self._told > PLAIN_S:
            self.tell(self._running(running))

    def _running(self, lines: Mapping[str, str]) -> str:
        """What the trials do that run, or only their names, or only their number, whichever fits."""
        run = "1 trial runs" if len(lines) == 1 else f"{len(lines)} trials run"
        all_of_them = "; ".join(f"{name}: {line}" for name, line in lines.items())
        choices = [f"{what}; {self._left()}" for what in (all_of_them, f"{run}: {', '.join(lines)}", run)]
        return next((line for line in choices if len(line) <= self._room), choices[-1])

    @property
    def _width(self) -> int:
        return self._out.width if self._out.is_terminal else min(self._out.width, PLAIN_COLUMNS)

    @property
    def _room(self) -> int:
        """The columns of a line that stays, behind the clock."""
        return self._width - len(_clock(time.monotonic() - self._began))

    def _lines(self) -> Group:
        """What a terminal shows below the lines that stay; each is cut, for two would not go away."""
        lines = [f"{name}: {self._row(name, row)}" for name, row in list(self._rows.items())]
        if lines:
            lines.append(f"{self._ready} of {self._all} trials done, {self._left()}")
        width = max(self._width - 1, 1)
        return Group(*(Text(_cut(line, width)) for line in lines))

    def _row(self, name: str, row: Row) -> str:
        if row.waits:
            return row.line
        elapsed_s, expected_s = time.monotonic() - row.since, self._pace() * self._alone_s[name]
        return row.line if expected_s < 1 else f"{row.line}; {elapsed_s:.0f} of about {expected_s:.0f} s"

    def _left(self) -> str:
        """How long all will take that has not ended, in words; while others hold all cores nobody knows."""
        if self._rows and all(row.waits for row in list(self._rows.values())):
            return "the others wait"
        now, pace = time.monotonic(), self._pace()
        left = []
        for name, alone_s in self._alone_s.items():
            row = self._rows.get(name)
            gone_s = 0.0 if row is None or row.waits else now - row.since
            left.append(max(0.0, pace * alone_s - gone_s))
        left_s = max(max(left, default=0.0), sum(left) / self._backend.parallel)
        return f"about {estimate.time_in_words(left_s)} left"

    def _pace(self) -> float:
        """How many times longer trials take than was expected; once until one has ended."""
        return self._took_s / self._said_s if self._said_s and self._took_s else 1.0


def _stage(line: str) -> str:
    return WAITS if line.startswith(WAITS) else line.partition(",")[0]


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _how(ended: Ended) -> str:
    if ended.exit_code:
        return f"{'INVALID' if ended.exit_code == InvalidRunError.exit_code else 'LOST'}: {ended.message}"
    waited = f" (waited {ended.waited_s:.0f} s for a core)" if ended.waited_s >= 1 else ""
    return f"done in {ended.wall_s:.0f} s{waited}"


def _clock(elapsed_s: float) -> str:
    seconds = int(elapsed_s)
    return f"{seconds // 60:3d}:{seconds % 60:02d}  "
