"""What a trial left, as a program's measures get it, and the checks that they return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from qjump_mn.model.plan import Trial

if TYPE_CHECKING:
    import pyarrow as pa

CheckStatus = Literal["pass", "fail", "unknown"]


class TrialFacts(msgspec.Struct, frozen=True):
    """``trial.json``: when a trial measured, and how busy the processor was.

    ``window_s`` is the measurement's start and end in s after the background started. ``began_ns``
    is that start on CLOCK_MONOTONIC, which our programs log; ``began_utc_ns`` on CLOCK_REALTIME,
    which others log. ``cpu_late_us`` is how late a waiting program got the processor ("p50", "p99",
    "max"); null in guest and simulator, where nothing is late. ``read_ns`` is when each file of
    asbuilt/ was read, on the clock of ``began_ns``; null in the simulator."""

    cpu_busy: float
    window_s: tuple[float, float]
    began_ns: int
    began_utc_ns: int
    read_ns: dict[str, int] | None = None
    cpu_late_us: dict[str, float] | None = None

    @property
    def window_ns(self) -> tuple[int, int]:
        """The measurement's start and end in ns, on the clock of ``began_ns``."""
        start_s, end_s = self.window_s
        return self.began_ns, self.began_ns + round((end_s - start_s) * 1e9)


class TrialTables(msgspec.Struct, frozen=True):
    """One done trial: its facts, a table per workload, and the load of the links, if it was
    read."""

    trial: Trial
    facts: TrialFacts
    tables: Mapping[str, pa.Table]
    links: pa.Table | None


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A check of the run's fidelity. A failure makes the run INVALID, unless it is only about
    ``completeness``."""

    name: str
    status: CheckStatus
    text: str
    completeness: bool = False

    @classmethod
    def of(cls, name: str, problems: Sequence[str], good: str) -> Check:
        """Return a failed check with up to three ``problems``; without any, a passed one with
        ``good``."""
        if not problems:
            return cls(name=name, status="pass", text=good)
        more = f", and {len(problems) - 3} more" if len(problems) > 3 else ""
        return cls(name=name, status="fail", text="; ".join(problems[:3]) + more)
