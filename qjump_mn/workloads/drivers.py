"""Which module drives which program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from qjump_mn.model.plan import Trial
from qjump_mn.model.programs import (
    AnyPlan,
    BarrierPlan,
    FaninPlan,
    FlowsPlan,
    IperfPlan,
    MapReducePlan,
    MemcachedPlan,
    MemcaslapPlan,
    NoisePlan,
    PingPlan,
    PtpPlan,
    Q2PCPlan,
    ShufflePlan,
)
from qjump_mn.workloads import barrier, fanin, flows, iperf, mapreduce, memcached, memcaslap, noise, ping, ptp, q2pc, shuffle
from qjump_mn.workloads.launch import Launch


class Driver(Protocol):
    """What a module of this package has."""

    @property
    def COLUMNS(self) -> Mapping[str, str]:
        """The table's columns, each with its type by Arrow's name."""

    def launches(self, plan: Any, trial: Trial, /) -> Iterator[Launch]:
        """The processes of a workload."""

    def columns(self, plan: Any, trial: Trial, read: Callable[[str], str], /) -> Mapping[str, Sequence[Any]]:
        """The table; ``read`` gives the text of a raw file. Raises :class:`LostError` if what a program left is not whole."""


_DRIVERS: dict[type[AnyPlan], Driver] = {
    BarrierPlan: barrier,
    FaninPlan: fanin,
    FlowsPlan: flows,
    IperfPlan: iperf,
    MapReducePlan: mapreduce,
    MemcachedPlan: memcached,
    MemcaslapPlan: memcaslap,
    NoisePlan: noise,
    PingPlan: ping,
    PtpPlan: ptp,
    Q2PCPlan: q2pc,
    ShufflePlan: shuffle,
}


def driver(plan: AnyPlan) -> Driver:
    """The module that drives a workload."""
    return _DRIVERS[type(plan)]


def launches(plan: AnyPlan, trial: Trial) -> Iterator[Launch]:
    """The processes of a workload."""
    return driver(plan).launches(plan, trial)
