"""Compute the constants of an experiment: numbers known before it runs, which claims use by
name."""

from __future__ import annotations

from collections.abc import Iterable

from qjump_mn import theory
from qjump_mn.model import hooks, ports
from qjump_mn.model.hooks import HasConstants
from qjump_mn.model.plan import ArmPlan
from qjump_mn.model.topology import Network
from qjump_mn.programs import registry
from qjump_mn.programs.hooks import HasArmConstants

VIRTUAL = ("guest", "simulator")
"""The backends whose clocks stand still while code runs. On all others code takes time."""

PROCESSOR_NS = 120_000
"""Processor time allowed for an urgent packet's round trip, where code takes time."""


def entries(arms: Iterable[ArmPlan]) -> set[str]:
    """Return the names that tables and panels may use: "workload.measure" of any arm."""
    return {
        f"{workload.name}.{measure}"
        for arm in arms
        for workload in arm.workloads
        for measure in registry.headings(workload)
    }


def constants(
    network: Network, arms: tuple[ArmPlan, ...], shown: str, backend: str
) -> dict[str, float]:
    """Return each constant by the name that claims use, for the experiment's own topology.

    Names such as ``busy_ports``, without a workload before them, are those of the workload
    ``shown`` by the figure. ``processor_ms`` is the processor time allowed for an urgent packet's
    round trip.
    """
    full = theory.frame_bytes(network.mtu_bytes)
    constants: dict[str, float] = {
        "hosts": float(len(network.hosts)),
        "rate_mbps": network.link.rate_bps / 1e6,
        "frame_ms": theory.occupancy_ns(full, network.slowest_bps) / 1e6,
        "buffer_ms": network.link.buffer_bytes * 8e3 / network.link.rate_bps,
        "link_goodput_mbps": theory.tcp_goodput_bps(network.mtu_bytes, network.link.rate_bps) / 1e6,
    }
    arms = tuple(arm for arm in arms if arm.network.topology == network.topology)
    constants["processor_ms"] = 0.0 if backend in VIRTUAL else PROCESSOR_NS / 1e6
    bulk = ports.longest(
        (workload for arm in arms for workload in arm.workloads if hooks.is_background(workload)),
        network,
    )
    for arm in arms:
        for workload in arm.workloads:
            own = workload.constants(network) if isinstance(workload, HasConstants) else {}
            if not hooks.is_background(workload) and workload.flows:
                own = ports.met(workload, bulk, network).constants() | own
            for name, value in own.items():
                constants.setdefault(f"{workload.name}_{name}", value)
                if workload.name == shown and name in ports.NAMES:
                    constants.setdefault(name, value)
            if isinstance(workload, HasArmConstants):
                constants |= workload.arm_constants(arm)
    return constants
