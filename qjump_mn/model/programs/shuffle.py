"""shuffle (native/shuffle): the traffic of a MapReduce job, in rounds."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

from qjump_mn.errors import UsageError
from qjump_mn.model.programs.base import Flow, WorkloadPlan, WorkloadSpec, bounded
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration, Size


class ShufflePlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="shuffle"):
    """Rounds of distribute, shuffle and aggregate; the ``flows`` are those of the shuffle, every ordered pair of workers."""

    MEASURES: ClassVar = {
        "rounds": "rounds",
        "round_mean_ms": "round mean, ms",
        "round_rms_ms": "round RMS, ms",
        "round_max_ms": "round max, ms",
        "goodput_mbps": "copied, Mb/s",
        "busiest_share": "busiest link",
    }
    BACKGROUND: ClassVar = True

    master: str
    workers: tuple[str, ...]
    distribute_bytes: int
    shuffle_bytes: int
    aggregate_bytes: int
    parallel: int
    map_ns: int
    jitter: float

    def describe(self) -> str:
        sizes = f"{self.distribute_bytes}, {self.shuffle_bytes} and {self.aggregate_bytes} B"
        computes = f", {self.map_ns / 1e6:g} ms of computation" if self.map_ns else ""
        who = f"MapReduce of {len(self.workers)} workers, master {self.master}"
        return f"{who}: {sizes} a copy to distribute, shuffle, aggregate; {self.parallel} at a time{computes}"


class Shuffle(WorkloadSpec, frozen=True, forbid_unknown_fields=True, tag="shuffle", kw_only=True):
    """A job of ``master`` and ``workers``, round after round: each worker gets ``distribute`` from the master, ``shuffle`` from each other
    worker, ``parallel`` copies at a time, and gives ``aggregate`` to the master; it computes for ``map`` before and after the shuffle."""

    master: str
    workers: list[str]
    distribute: Size = Size(0)
    shuffle: Size = Size(0)
    aggregate: Size = Size(0)
    parallel: int = 5
    map: Duration = Duration(0)
    jitter: float = 0.2

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        if len(self.workers) < 2 or len({self.master, *self.workers}) <= len(self.workers):
            raise UsageError(f"{where}.workers: name two workers or more, each once, and none that is the master, not {', '.join(self.workers) or 'nobody'}")
        return [(f"{where}.workers", pair) for pair in itertools.permutations(self.workers, 2)]

    def check(self, where: str, network: Network) -> None:
        if self.master not in network.hosts:
            raise UsageError(f"{where}.master: topology {network.topology!r} has no host {self.master!r}")
        if not self.distribute + self.shuffle + self.aggregate:
            raise UsageError(f"{where}: nothing to copy: give distribute, shuffle or aggregate a size")
        for name in ("distribute", "shuffle", "aggregate"):
            bounded(f"{where}.{name}", getattr(self, name), 0, 10**9, "0B to 1000MB")
        bounded(f"{where}.parallel", self.parallel, 1, 64, "1 to 64")
        bounded(f"{where}.map", self.map, 0, 10**11, "0s to 100s")
        bounded(f"{where}.jitter", self.jitter, 0, 1, "0 to 1")

    def planned(self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int) -> ShufflePlan:
        return ShufflePlan(
            **common,
            master=self.master,
            workers=tuple(self.workers),
            distribute_bytes=int(self.distribute),
            shuffle_bytes=int(self.shuffle),
            aggregate_bytes=int(self.aggregate),
            parallel=self.parallel,
            map_ns=int(self.map),
            jitter=self.jitter,
        )
