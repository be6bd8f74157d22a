"""Sample a simulated trial, and keep the series of the ports with the longest queues."""

from __future__ import annotations

import numpy as np

import qjump_sim
from qjump_mn.model.topology import Network
from qjump_mn.results.series import Port, Series
from qjump_mn.simulation.scenario import node_names

_SAMPLES = 500
"""The maximum number of samples: more than the pixels of a screen that a reader compares."""
_VALUES = 4_000_000
"""The maximum number of values in a series, 32 MB: networks with many ports get fewer samples."""
_PORTS = 8
"""The number of ports kept: readers cannot distinguish more lines. `qjump_mn.programs.tracks` has
the same number, but would import pyarrow.
"""
_CLASSES = ("ACKs", *map(str, range(7, -1, -1)))
"""In the simulator's order, in which level 0 is the most urgent. Here it is 7, as in 802.1Q."""
_LEAST = 50
"""The minimum number of samples for a line."""
_EVERY = 10 * qjump_sim.US
"""The first interval if the end of a run is unknown. At too many samples, every second one is
dropped.
"""


def watch(network: Network, end: int | None) -> qjump_sim.Watch | None:
    """Return what the simulator samples until ``end``, the end of the measurement in ps, or until
    the end of the run; None if the network has too many ports.
    """
    fabric = network.fabric
    cables = len(network.edges) + len(network.cables)
    if fabric is not None:
        cables = fabric.racks * (fabric.hosts_per_rack + fabric.spines)
    # All of a port's bytes, and those of ACKs and each level.
    most = min(_SAMPLES, _VALUES // ((1 + 9) * 2 * cables))
    if most < _LEAST:
        return None
    if end is None:
        return qjump_sim.Watch(every_ps=_EVERY, most=most)
    return qjump_sim.Watch(every_ps=max(1, end // (most - 1)), until=end)


def series(network: Network, sampled: qjump_sim.Series) -> Series:
    """Return the series of the ports with the longest queues."""
    longest = sampled.queued.max(axis=0)
    order = np.argsort(-longest, kind="stable")
    waiting = [int(port) for port in order if longest[port]]
    names = node_names(network)
    dropped, again, marked, timeouts = sampled.totals.T.tolist()
    kept = waiting[:_PORTS]

    def port_series(port: int) -> Port:
        near, far = (names[end] for end in sampled.ports[port])
        return Port((near, far), sampled.queued[:, port].tolist(), _levels(sampled, port))

    ports = [port_series(port) for port in kept]
    return Series(
        sampled.at.tolist(), ports, len(waiting) - len(kept), dropped, again, marked, timeouts
    )


def _levels(sampled: qjump_sim.Series, port: int) -> dict[str, list[int]]:
    """Return the queued bytes at a port by class, without classes that are always empty."""
    if sampled.levels is None:
        return {}
    waiting = sampled.levels[:, port, :]
    return {
        name: waiting[:, column].tolist()
        for column, name in enumerate(_CLASSES)
        if waiting[:, column].any()
    }
