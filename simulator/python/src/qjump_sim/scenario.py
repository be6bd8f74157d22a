"""Scenarios, and how to run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from qjump_sim import _native
from qjump_sim.apps import App, result
from qjump_sim.network import Topology
from qjump_sim.outcome import Outcome, SourceResult
from qjump_sim.scheme import Scheme
from qjump_sim.trace import trace
from qjump_sim.traffic import Flows, Poisson, Published, Source
from qjump_sim.watch import Progress, Watch, flow_counts, listener, series


@dataclass(frozen=True)
class Scenario:
    """Everything that a run depends on.

    `scheme`: a `Scheme`, or the name of one (`Scheme.named`). `stop`: in ps, at most 2**62; None:
    when no event is left, or after 107 days.

    `parts`: number of parts, which run on as many cores as there are, or on one where that is
    faster. Each has some of the switches and their hosts. docs/simulator-validation.md says what
    they gain. Neither the number of parts nor that of cores changes an outcome. A run in several
    parts can have no sources, applications, pauses, receivers that grant or pull, Aequitas or
    telemetry, and cannot be watched.

    >>> scenario = Scenario(FIG9, "dctcp", Flows(start=[0], src=[0], dst=[1], packets=[6]), seed=1)
    """

    topology: Topology
    scheme: Scheme | str
    flows: Poisson | Published | Flows = field(default_factory=lambda: Flows([], [], [], []))
    sources: Sequence[Source] = ()
    seed: int = 1
    stop: int | None = None
    apps: Sequence[App] = ()
    parts: int = 1

    def __post_init__(self) -> None:
        for name in ("sources", "apps"):
            # Which would be of one use.
            if isinstance(given := getattr(self, name), Iterator):
                object.__setattr__(self, name, tuple(given))


def run(
    scenario: Scenario, ports: bool = False, *, watch: Watch | None = None, progress: Callable[[Progress], None] | None = None
) -> Outcome:
    """Run a scenario. `ports`: report statistics of every port, as `Watch(ports=True)`; the outcome
    is the same, but it takes longer. `watch`: what else to record. `progress` is called twice a
    second, such as `show_progress()`; an exception from it ends the run.

    Other threads go on meanwhile: runs in several threads use several cores. Ctrl-C ends a run of
    the main thread, as does any signal whose handler raises. Raises ValueError if the scenario
    cannot be simulated, in one sentence that begins with the place, and TypeError if `progress`
    cannot be called.

    >>> watch = Watch(ports=True, flows=True, every_ps=us(100), trace=[3])
    >>> outcome = run(Scenario(FIG9, "dctcp", Poisson("search", load=0.6, count=100)), watch=watch)
    """
    if not isinstance(scenario, Scenario):
        raise ValueError(f"scenario: {scenario!r} is not a Scenario")
    watch = replace(watch or Watch(), ports=True) if ports else watch
    columns, (data_bytes, ack_bytes), counters, sources, end, apps, watched, seen = _native.run(scenario, watch, listener(progress))
    start, finish, src, dst, packets, level, transport, deadline, size = (np.frombuffer(column, np.int64) for column in columns)
    delivered = tuple(SourceResult(*source) for source in sources)
    results = tuple(result(app, *parts) for app, parts in zip(scenario.apps, apps, strict=True))
    sampled, counted, traced = seen
    return Outcome(
        start, finish, src, dst, packets, counters, delivered, end, results, tuple(watched), level, transport, deadline,
        bytes=size, data_bytes=data_bytes, ack_bytes=tuple(ack_bytes),
        series=None if sampled is None else series(*sampled),
        flows=None if counted is None else flow_counts(counted),
        trace=None if traced is None else trace(traced),
    )  # fmt: skip
