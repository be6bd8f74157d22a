"""What a program's ``measures`` module offers: numbers from its table. It is imported where tables are read,
never to plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qjump_mn.model.plan import Trial
from qjump_mn.results.outcome import Check
from qjump_mn.results.tables import TrialFacts, TrialTables

Floats = npt.NDArray[np.float64]


class Whole(NamedTuple):
    """A line that a figure of its own shows for all arms together: its ``name`` in file names, title, axis
    and source."""

    name: str
    title: str
    axis: str
    source: str


class Timeline(NamedTuple):
    """A workload as time goes by: s since the measurement began, and ms; nan is a bin that has no value, a
    ``gap``.

    ``measure`` is the one that is given with it, in ``words``, in which {} stands for the value.
    """

    label: str
    measure: str
    words: str
    colour: str
    x: Floats
    y: Floats
    gap: str = ""
    whole: Whole | None = None


class OnTheWire(NamedTuple):
    """Latencies in us, each with the least that the wire takes for it, shapes (rows,)."""

    measured_us: Floats
    least_us: Floats


Checks = Callable[[str, Sequence[TrialTables]], Iterator[Check]]


@dataclass(frozen=True)
class Measures:
    """What is computed of the tables of a program.

    ``values`` are its measures in one trial; one that has no value (the median of no echo) is absent.
    ``checks`` are those that its tables let say whether a run may be believed; they get the run's clock
    ("virtual" or "real") and all of its trials, whatever ran in them. ``wire`` is for what has a latency a
    request and a least one, which no wire falls short of; a latency is the most that its text may stand for.
    ``flow_goodput`` is what each flow got, in Mb/s, by "h7>h10"; ``timeline`` is what is drawn of a trial.
    """

    values: Callable[[pa.Table, Any, Trial, TrialFacts], dict[str, float]]
    checks: Checks = lambda clock, data: iter(())
    wire: Callable[[pa.Table, Any, Trial], OnTheWire | None] | None = None
    flow_goodput: Callable[[pa.Table, TrialFacts], dict[str, float]] | None = None
    timeline: Callable[[pa.Table, Any, Trial, TrialFacts], Timeline] | None = None
    requests: Callable[[pa.Table], pa.Table] = lambda table: table


def by_flow(table: pa.Table, least_us: dict[str, float]) -> Floats:
    """The value of each row's flow, shape (rows,)."""
    return np.array([least_us[flow] for flow in table["flow"].to_pylist()], dtype=np.float64)
