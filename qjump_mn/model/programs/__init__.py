"""What runs on the hosts: one module a program, with what an experiment may ask of it and its plan.

How a program is started and its output read is in ``qjump_mn.workloads``, what is computed from that in ``qjump_mn.analysis.measured``; the
modules there have the same names.
"""

from __future__ import annotations

from qjump_mn.model.programs.barrier import Barrier, BarrierPlan
from qjump_mn.model.programs.base import Flow, WorkloadPlan, WorkloadSpec
from qjump_mn.model.programs.fanin import Fanin, FaninPlan
from qjump_mn.model.programs.flows import Flows, FlowsPlan
from qjump_mn.model.programs.iperf import Iperf, IperfPlan
from qjump_mn.model.programs.mapreduce import MapReduce, MapReducePlan
from qjump_mn.model.programs.memcached import Memcached, MemcachedPlan
from qjump_mn.model.programs.memcaslap import Memcaslap, MemcaslapPlan
from qjump_mn.model.programs.noise import Noise, NoisePlan
from qjump_mn.model.programs.ping import Ping, PingPlan
from qjump_mn.model.programs.ptp import Ptp, PtpPlan
from qjump_mn.model.programs.q2pc import Q2PC, Q2PCPlan
from qjump_mn.model.programs.shuffle import Shuffle, ShufflePlan

__all__ = [
    "Q2PC",
    "AnyPlan",
    "AnySpec",
    "Barrier",
    "BarrierPlan",
    "Fanin",
    "FaninPlan",
    "Flow",
    "Flows",
    "FlowsPlan",
    "Iperf",
    "IperfPlan",
    "MapReduce",
    "MapReducePlan",
    "Memcached",
    "MemcachedPlan",
    "Memcaslap",
    "MemcaslapPlan",
    "Noise",
    "NoisePlan",
    "Ping",
    "PingPlan",
    "Ptp",
    "PtpPlan",
    "Q2PCPlan",
    "Shuffle",
    "ShufflePlan",
    "WorkloadPlan",
    "WorkloadSpec",
]

AnySpec = Barrier | Fanin | Flows | Iperf | MapReduce | Memcached | Memcaslap | Noise | Ping | Ptp | Q2PC | Shuffle
"""A workload as an experiment file has it."""

AnyPlan = (
    BarrierPlan
    | FaninPlan
    | FlowsPlan
    | IperfPlan
    | MapReducePlan
    | MemcachedPlan
    | MemcaslapPlan
    | NoisePlan
    | PingPlan
    | PtpPlan
    | Q2PCPlan
    | ShufflePlan
)
"""A workload as a plan has it."""
