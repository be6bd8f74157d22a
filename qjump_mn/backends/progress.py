"""Show progress while trials run: a changing line per trial in a terminal, else a line at times."""

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
"""Without a terminal, the silence before a line, and between two lines about waiting for a core."""
PLAIN_COLUMNS = 80
"""The width of lines without a terminal."""


class Row(NamedTuple):
    """A running trial: its latest line, and when it stopped waiting for a core."""

    line: str
    since: float

    @property
    def waits(self) -> bool:
        """Whether it waits for a core."""
        return self.line.startswith(WAITS)


class Board:
    """Shows the progress of trials within its block.

    Trials report their stages from several threads; the main thread calls :meth:`tick`.
    ``alone_s`` is the expected time of each trial when it runs alone.
    """

    def __init__(
        self, out: Console, backend: Backend, trials: Sequence[Trial], alone_s: Mapping[str, float]
    ) -> None:
        self._out, self._backend, self._all, self._alone_s = (
            out,
            backend,
            len(trials),
            dict(alone_s),
        )
        self._start_s = time.monotonic()
        self._rows: dict[str, Row] = {}
        self._done, self._actual_s, self._expected_s = 0, 0.0, 0.0
        self._last_line_s = self._start_s
        self._waiting_line, self._waiting_shown_s = "", -math.inf
        # With FORCE_COLOR rich takes a pipe for a terminal, but lines cannot be changed there.
        can_change = out.is_terminal and not (out.is_dumb_terminal or out.no_color)
        self._live: Live | None = None
        if can_change and out.file.isatty():
            self._live = Live(
                console=out,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.update("")
            self._live.stop()

    def tell(self, line: str) -> None:
        """Print a line that stays."""
        self._last_line_s = time.monotonic()
        if self._live:
            self._live.update(self._lines())
        if line.startswith(WAITS):
            line = _cut(line, self._room)
        self._out.print(f"{_clock(self._last_line_s - self._start_s)}{line}", markup=False)

    def stage(self, trial: Trial, line: str) -> str:
        """Set a trial's progress line; return its stage if that changed, else an empty string."""
        now, before = time.monotonic(), self._rows.get(trial.name)
        self._rows[trial.name] = Row(line, now if before is None or before.waits else before.since)
        stage = _stage(line)
        return stage if before is None or _stage(before.line) != stage else ""

    def ended(self, trial: Trial, outcome: Ended, result: str = "") -> None:
        """Print a trial's outcome; ``result`` is a first figure of what it measured.

        There are no figures while a trial measures: to report them, the guest would need the
        processor that is busy with the measurement.
        """
        self._rows.pop(trial.name, None)
        self._done += 1
        self._actual_s += outcome.wall_s
        self._expected_s += self._alone_s.pop(trial.name)
        left = f", {self._left()}" if self._done < self._all and not self._live else ""
        figure = f"; {result}" if result else ""
        self.tell(f"[{self._done}/{self._all}] {trial.name}: {_outcome(outcome)}{figure}{left}")

    def tick(self) -> None:
        """Update the lines in a terminal, or print a line if there was none for a while."""
        if self._live:
            self._live.update(self._lines(), refresh=True)
            return
        rows, now = dict(self._rows), time.monotonic()
        # As many trials may wait as there are cores; the line of the next one to start is enough.
        waiting = next((row.line for row in rows.values() if row.waits), "")
        if waiting and waiting != self._waiting_line and now - self._waiting_shown_s > PLAIN_S:
            self._waiting_line, self._waiting_shown_s = waiting, now
            self.tell(waiting)
        running = {name: row.line for name, row in rows.items() if not row.waits}
        if running and now - self._last_line_s > PLAIN_S:
            self.tell(self._running(running))

    def _running(self, lines: Mapping[str, str]) -> str:
        """Return the running trials' lines, or their names, or their number, whichever fits."""
        number = "1 trial runs" if len(lines) == 1 else f"{len(lines)} trials run"
        full = "; ".join(f"{name}: {line}" for name, line in lines.items())
        texts = (full, f"{number}: {', '.join(lines)}", number)
        candidates = [f"{text}; {self._left()}" for text in texts]
        return next((line for line in candidates if len(line) <= self._room), candidates[-1])

    @property
    def _width(self) -> int:
        return self._out.width if self._out.is_terminal else min(self._out.width, PLAIN_COLUMNS)

    @property
    def _room(self) -> int:
        """The width of a line that stays, without the clock in front of it."""
        return self._width - len(_clock(time.monotonic() - self._start_s))

    def _lines(self) -> Group:
        """Return the changing lines in a terminal, each cut to one row so that it can be erased."""
        lines = [f"{name}: {self._row(name, row)}" for name, row in list(self._rows.items())]
        if lines:
            lines.append(f"{self._done} of {self._all} trials done, {self._left()}")
        width = max(self._width - 1, 1)
        return Group(*(Text(_cut(line, width)) for line in lines))

    def _row(self, name: str, row: Row) -> str:
        if row.waits:
            return row.line
        elapsed_s, expected_s = time.monotonic() - row.since, self._pace() * self._alone_s[name]
        if expected_s < 1:
            return row.line
        return f"{row.line}; {elapsed_s:.0f} of about {expected_s:.0f} s"

    def _left(self) -> str:
        """Return the remaining time in words; it is unknown while other users hold all cores."""
        if self._rows and all(row.waits for row in list(self._rows.values())):
            return "the others wait"
        now, pace = time.monotonic(), self._pace()
        left = []
        for name, alone_s in self._alone_s.items():
            row = self._rows.get(name)
            elapsed_s = 0.0 if row is None or row.waits else now - row.since
            left.append(max(0.0, pace * alone_s - elapsed_s))
        left_s = max(max(left, default=0.0), sum(left) / self._backend.parallel)
        return f"about {estimate.time_in_words(left_s)} left"

    def _pace(self) -> float:
        """Return actual over expected time of the ended trials; 1 before any has ended."""
        return self._actual_s / self._expected_s if self._expected_s and self._actual_s else 1.0


def _stage(line: str) -> str:
    return WAITS if line.startswith(WAITS) else line.partition(",")[0]


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _outcome(ended: Ended) -> str:
    """Return a trial's outcome in words."""
    if ended.exit_code:
        is_invalid = ended.exit_code == InvalidRunError.exit_code
        return f"{'INVALID' if is_invalid else 'LOST'}: {ended.message}"
    waited = f" (waited {ended.waited_s:.0f} s for a core)" if ended.waited_s >= 1 else ""
    return f"done in {ended.wall_s:.0f} s{waited}"


def _clock(elapsed_s: float) -> str:
    seconds = int(elapsed_s)
    return f"{seconds // 60:3d}:{seconds % 60:02d}  "
