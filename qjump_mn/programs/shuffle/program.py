"""shuffle (native/shuffle): the traffic of a MapReduce job, in rounds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from qjump_mn import theory
from qjump_mn.errors import LostError, UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration, Size
from qjump_mn.programs.base import Flow, Program, Read, WorkloadPlan, WorkloadSpec, bounded
from qjump_mn.programs.launch import Launch
from qjump_mn.programs.text import log, transposed


class ShufflePlan(
    WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="shuffle"
):
    """Rounds of distribute, shuffle and aggregate. ``flows`` are those of the shuffle: all ordered
    pairs of workers."""

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

    @property
    def conversations(self) -> tuple[Flow, ...]:
        """The flows, and those between the master and each worker."""
        master_pairs = (
            pair
            for worker in self.workers
            for pair in ((self.master, worker), (worker, self.master))
        )
        return (*self.flows, *master_pairs)

    @property
    def answer_bytes(self) -> int:
        return theory.ACK_BYTES

    def packets(self, trial: Trial) -> float:
        """Of rounds as short as the busiest link and the computing allow."""
        count = len(self.workers)
        ends_bytes = count * (self.distribute_bytes + self.aggregate_bytes)
        each_bytes = (count - 1) * self.shuffle_bytes
        copying_ns = (ends_bytes + each_bytes) * 8e9 / trial.network.link.rate_bps
        rounds = trial.length_ns / (copying_ns + 2 * self.map_ns)
        return rounds * (ends_bytes + count * each_bytes) / trial.network.mtu_bytes

    def describe(self) -> str:
        sizes = f"{self.distribute_bytes}, {self.shuffle_bytes} and {self.aggregate_bytes} B"
        computing = f", {self.map_ns / 1e6:g} ms of computation" if self.map_ns else ""
        hosts = f"{len(self.workers)} workers, master {self.master}"
        return (
            f"MapReduce of {hosts}: {sizes} a copy to distribute, shuffle, aggregate; "
            f"{self.parallel} at a time{computing}"
        )


class Shuffle(WorkloadSpec, frozen=True, forbid_unknown_fields=True, tag="shuffle", kw_only=True):
    """A job of ``master`` and ``workers``, round after round: each worker gets ``distribute`` from
    the master, then ``shuffle`` from each other worker, and sends ``aggregate`` to the master, with
    ``parallel`` copies at a time; it computes for ``map`` before and after the shuffle."""

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
            raise UsageError(
                f"{where}.workers: list two or more workers, each once, without the master (got "
                f"{', '.join(self.workers) or 'none'})"
            )
        return [(f"{where}.workers", pair) for pair in itertools.permutations(self.workers, 2)]

    def check(self, where: str, network: Network) -> None:
        if self.master not in network.hosts:
            raise UsageError(
                f"{where}.master: topology {network.topology!r} has no host {self.master!r}"
            )
        if not self.distribute + self.shuffle + self.aggregate:
            raise UsageError(
                f"{where}: there is nothing to copy: give distribute, shuffle or aggregate a size"
            )
        for name in ("distribute", "shuffle", "aggregate"):
            bounded(f"{where}.{name}", getattr(self, name), 0, 10**9, "0B to 1000MB")
        bounded(f"{where}.parallel", self.parallel, 1, 64, "1 to 64")
        bounded(f"{where}.map", self.map, 0, 10**11, "0s to 100s")
        bounded(f"{where}.jitter", self.jitter, 0, 1, "0 to 1")

    def planned(
        self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int
    ) -> ShufflePlan:
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


COLUMNS = {
    "round": "int32",
    "step": "string",
    "source": "string",
    "destination": "string",
    "bytes": "int64",
    "start_ns": "int64",
    "end_ns": "int64",
}
"""A row for each copy, and one of step "round" for each whole round, whose source and destination
are the master."""

STEPS = ("distribute", "shuffle", "aggregate", "round")
ROUND_S = 60.0
"""Maximum seconds for the round that is in progress when no new one may start."""


def output_name(plan: ShufflePlan) -> str:
    """The master's log."""
    return f"{plan.name}-{plan.master}.shuffle.txt"


def launches(plan: ShufflePlan, trial: Trial) -> Iterator[Launch]:
    """The workers, and the master, which runs for as long as anything is measured."""
    for host in plan.workers:
        worker = ("shuffle", "worker", "--listen", str(plan.port))
        yield Launch(
            "serve",
            host,
            worker,
            f"{plan.name}-{host}.worker.txt",
            listens=("tcp", plan.port),
            itself=False,
        )
    addresses = ",".join(f"{trial.network.addresses[host]}:{plan.port}" for host in plan.workers)
    master = (
        *("shuffle", "master", "--workers", addresses, "--duration", str(trial.background_ns)),
        *(
            "--distribute",
            str(plan.distribute_bytes),
            "--shuffle",
            str(plan.shuffle_bytes),
            "--aggregate",
            str(plan.aggregate_bytes),
        ),
        *(
            "--parallel",
            str(plan.parallel),
            "--map",
            str(plan.map_ns),
            "--jitter",
            f"{plan.jitter:g}",
            "--seed",
            str(trial.seed),
        ),
    )
    yield Launch(
        "load",
        plan.master,
        master,
        output_name(plan),
        longest_s=trial.background_ns / 1e9 + ROUND_S,
    )


def columns(plan: ShufflePlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every copy of every round."""
    copies = log(read(output_name(plan)), "shuffle").columns
    if not copies["round"]:
        raise LostError("shuffle's log has no rows: nothing was copied")
    nodes = (plan.master, *plan.workers)
    rows = (
        (number, STEPS[step], nodes[source], nodes[destination], size, start, end)
        for number, step, source, destination, size, start, end in zip(
            *(copies[name] for name in COLUMNS), strict=True
        )
    )
    return transposed(rows, COLUMNS)


PROGRAM = Program(
    spec=Shuffle,
    plan=ShufflePlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.shuffle.measures:MEASURES",
)
