"""mapreduce: a job whose reducers fetch from every map, in the simulator only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration, Size
from qjump_mn.programs import simulated_text
from qjump_mn.programs.base import (
    Flow,
    Program,
    Read,
    WorkloadPlan,
    WorkloadSpec,
    all_pairs,
    bounded,
)
from qjump_mn.programs.launch import Launch

DROPPED = {"data": "data", "acks": "ACKs", "syns": "SYNs"}
"""Kinds of dropped packets; answers to SYNs are counted with SYNs."""


class MapReducePlan(
    WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="mapreduce"
):
    """``maps``, each with ``map_bytes`` of output, run in the ``map_slots`` of ``hosts``, or of all
    hosts if there are none. Each of ``reducers`` fetches its share of every finished map,
    ``parallel_copies`` at a time. Computing times are exponential with the given means; 0 means
    none. ``flows`` are all ordered pairs of ``hosts``."""

    # Throughput is per host, latency the mean of all packets; "dropped" is a share of all packets
    # sent, its kinds are shares of those dropped, and "marked" is a share of the data delivered.
    MEASURES: ClassVar = {
        "runtime_s": "runtime, s",
        "shuffled_s": "shuffled after, s",
        "throughput_mbps": "throughput, Mb/s",
        "latency_ms": "packet latency, ms",
        "dropped": "dropped",
        **{f"dropped_{kind}": f"of these, {word}" for kind, word in DROPPED.items()},
        "marked": "marked",
        "timeouts": "timeouts",
    }
    BACKGROUND: ClassVar = True
    ONLY_SIMULATED: ClassVar = True

    hosts: tuple[str, ...]
    maps: int
    map_bytes: int
    reducers: int
    map_slots: int
    parallel_copies: int
    map_mean_ns: int
    reduce_mean_ns: int

    @property
    def answer_bytes(self) -> int:
        return theory.ACK_BYTES

    def packets(self, trial: Trial) -> float:
        return self.maps * self.map_bytes / trial.network.mtu_bytes

    def describe(self) -> str:
        computing = (
            f"; mean computing times are {self.map_mean_ns / 1e9:g} s of a map and "
            f"{self.reduce_mean_ns / 1e9:g} s of a reducer"
        )
        hosts = f" on {', '.join(self.hosts)}" if self.hosts else ""
        job = (
            f"{self.maps} maps of {self.map_bytes / 1e6:g} MB, {self.reducers} reducers, "
            f"{self.parallel_copies} copies at a time"
        )
        return job + hosts + (computing if self.map_mean_ns or self.reduce_mean_ns else "")


class MapReduce(
    WorkloadSpec, frozen=True, forbid_unknown_fields=True, tag="mapreduce", kw_only=True
):
    """One job on ``hosts``, or on all hosts; the trial lasts until it has ended."""

    LASTING: ClassVar = False

    hosts: tuple[str, ...] = ()
    maps: int
    map_size: Size
    reducers: int
    map_slots: int = 1
    parallel_copies: int = 5
    map_mean: Duration = Duration(0)
    reduce_mean: Duration = Duration(0)

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        return all_pairs(f"{where}.hosts", self.hosts)

    def check(self, where: str, network: Network) -> None:
        bounded(f"{where}.maps", self.maps, 1, 100_000, "1 to 100000")
        bounded(f"{where}.reducers", self.reducers, 1, 100_000, "1 to 100000")
        bounded(
            f"{where}.map_size",
            self.map_size,
            self.reducers,
            10**12,
            f"{self.reducers}B (a byte for each reducer) to 1000000MB",
        )
        bounded(f"{where}.map_slots", self.map_slots, 1, 1000, "1 to 1000")
        bounded(f"{where}.parallel_copies", self.parallel_copies, 1, 1000, "1 to 1000")
        for name in ("map_mean", "reduce_mean"):
            bounded(f"{where}.{name}", getattr(self, name), 0, 1000 * 10**9, "0s to 1000s")

    def planned(
        self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int
    ) -> MapReducePlan:
        return MapReducePlan(
            **common,
            hosts=self.hosts,
            maps=self.maps,
            map_bytes=int(self.map_size),
            reducers=self.reducers,
            map_slots=self.map_slots,
            parallel_copies=self.parallel_copies,
            map_mean_ns=int(self.map_mean),
            reduce_mean_ns=int(self.reduce_mean),
        )


COLUMNS = {
    "runtime_ps": "int64",
    "shuffled_ps": "int64",
    "throughput_bps": "double",
    "packets": "int64",
    "latency_ps": "double",
    "dropped_data": "int64",
    "dropped_acks": "int64",
    "dropped_syns": "int64",
    "data": "int64",
    "marked": "int64",
    "timeouts": "int64",
}
"""One row. Times count from the start of the first map to when the last reducer had all its input,
and had ended; ``throughput_bps`` is what a host got in that time. Of all ``packets`` sent, the
dropped ones are counted by kind. ``latency_ps`` is the mean of delivered data packets, from their
host's limiter to their destination. ``marked`` counts those of the ``data`` packets delivered."""


def launches(plan: MapReducePlan, trial: Trial) -> Iterator[Launch]:
    """None: this program runs only in the simulator."""
    return iter(())


def columns(plan: MapReducePlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """The job; raise :class:`LostError` if it is incomplete."""
    return simulated_text.columns(read(simulated_text.output_name(plan.name)), COLUMNS, rows=1)


PROGRAM = Program(
    spec=MapReduce,
    plan=MapReducePlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.mapreduce.measures:MEASURES",
    simulated="qjump_mn.programs.mapreduce.simulated:SIMULATED",
)
