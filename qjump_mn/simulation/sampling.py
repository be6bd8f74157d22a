"""A trial's series: the simulator's samples, of which the ports with the longest queues are kept."""

from __future__ import annotations

import numpy as np

import qjump_sim
from qjump_mn.model.topology import Network
from qjump_mn.results.series import Port, Series
from qjump_mn.simulation.scenario import numbers

_SAMPLES = 500
"""At most: more than a screen is wide in the parts that a reader compares."""
_VALUES = 4_000_000
"""That a series holds at most, 32 MB: networks of many ports have fewer samples."""
_PORTS = 8
"""That are kept: nobody tells more lines apart (`qjump_mn.programs.tracks`, which would bring pyarrow)."""
_CLASSES = ("ACKs", *map(str, range(7, -1, -1)))
"""In the simulator's order, whose level 0 is the most urgent; here 7 is, as in 802.1Q."""
_LEAST = 50
"""Fewer samples than this are no line."""
_EVERY = 10 * qjump_sim.US
"""Where nobody knows when a run ends, to begin with: as often as there are too many samples, every second
is forgotten."""


def watch(network: Network, end: int | None) -> qjump_sim.Watch | None:
    """What the simulator is to sample until the measurement's ``end`` in ps, or the run's; None where a
    network has too many ports."""
    fabric = network.fabric
    cables = len(network.edges) + len(network.cables)
    if fabric is not None:
        cables = fabric.racks * (fabric.hosts_per_rack + fabric.spines)
    # All of a port's bytes, and those of ACKs and each level.
    most = min(_SAMPLES, _VALUES // ((1 + 9) * 2 * cables))
    if most < _LEAST:
        return None
    if end is None:
        return qjump_sim.Watch(every=_EVERY, most=most)
    return qjump_sim.Watch(every=max(1, end // (most - 1)), until=end)


def series(network: Network, sampled: qjump_sim.Series) -> Series:
    """What is kept of it."""
    longest = sampled.queued.max(axis=0)
    order = np.argsort(-longest, kind="stable")
    waiting = [int(port) for port in order if longest[port]]
    hosts = {number: name for name, number in numbers(network).items()}
    switches = network.switches if network.fabric else sorted(network.switches)

    def name(end: tuple[str, int]) -> str:
        kind, number = end
        return hosts[number] if kind == "host" else switches[number]

    dropped, again, marked, timeouts = sampled.totals.T.tolist()
    kept = waiting[:_PORTS]

    def of(port: int) -> Port:
        near, far = (name(end) for end in sampled.ports[port])
        return Port((near, far), sampled.queued[:, port].tolist(), _levels(sampled, port))

    ports = [of(port) for port in kept]
    return Series(sampled.at.tolist(), ports, len(waiting) - len(kept), dropped, again, marked, timeouts)


def _levels(sampled: qjump_sim.Series, port: int) -> dict[str, list[int]]:
    """What waited at a port by its class, of those that there were."""
    if sampled.levels is None:
        return {}
    waiting = sampled.levels[:, port, :]
    return {
        name: waiting[:, column].tolist() for column, name in enumerate(_CLASSES) if waiting[:, column].any()
    }
