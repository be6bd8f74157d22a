"""Measures of flows: completion times relative to an empty network, by flow size, as in QJump's
Figure 9."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.flows.program import LEVELS_PACKETS, LISTED, FlowsPlan
from qjump_mn.programs.measures_api import Measures, Moved, OnTheWire, Said
from qjump_mn.programs.tracks import Track, floats, split

DATA_BYTES, ACK_BYTES = 1500, 40
"""Bytes of the published scripts' packets on the wire, by which flows are short or long. Completion
times in an empty network are computed from them, unless flows are listed: those have the frames of
Linux's TCP."""

BYTES = {
    "short": (0, 10_000),
    "medium": (10_000, 10_000_000),
    "long": (10_000_000, math.inf),
    "all": (0, math.inf),
}
"""Flows of a region have more than the first and at most the second number of bytes on the wire, as
in the published script."""


def values(table: pa.Table, plan: FlowsPlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """Mean and 99th percentile of each region that has flows. The latter is the value at position
    ceil(0.99 (n - 1)) of the sorted ones, as in the published script.

    If hosts limit their levels, ``utilisation`` is that of the busiest level. A level whose
    utilisation is 1 or more has no steady state: the longer the run, the longer its flows wait. A
    region with such flows therefore has no values.
    """
    done = table.filter(pc.is_valid(table["finish_ps"]))
    took_ps = (done["finish_ps"].to_numpy() - done["start_ps"].to_numpy()).astype(np.float64)
    ratio = took_ps / ideal_ps(trial.network, done, frames=plan.arrivals == LISTED)
    size = done["packets"].to_numpy() * DATA_BYTES
    numbers = {"flows": float(table.num_rows), "unfinished": float(table.num_rows - done.num_rows)}
    shares = utilisation(table, trial)
    if shares:
        numbers["utilisation"] = max(shares.values())
    overloaded = [level for level, share in shares.items() if share >= 1]
    unsteady = np.isin(levels(done["packets"].to_numpy()), overloaded)
    for region, (above, most) in BYTES.items():
        in_region = (size > above) & (size <= most)
        ascending = np.sort(ratio[in_region])
        if len(ascending) and not unsteady[in_region].any():
            numbers[f"{region}_mean"] = float(np.mean(ascending))
            numbers[f"{region}_p99"] = float(ascending[math.ceil((len(ascending) - 1) * 0.99)])
    return numbers


def levels(packets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The 802.1Q level of flows by their number of packets; shape (rows,)."""
    result: npt.NDArray[np.int64] = max(theory.LEVELS) - np.searchsorted(LEVELS_PACKETS, packets)
    return result


def utilisation(table: pa.Table, trial: Trial) -> dict[int, float]:
    """Utilisation of each level that hosts limit and flows use: the bytes that arrive while flows
    arrive, divided by those that all hosts' budgets admit in that time."""
    limiter = trial.arm.qjump
    if limiter is None or table.num_rows < 2:
        return {}
    packets, start_ps = table["packets"].to_numpy(), table["start_ps"].to_numpy()
    epochs = int(start_ps.max() - start_ps.min()) / (limiter.epoch_ns * 1e3)
    flow_levels = levels(packets)
    offered = {
        level: int(packets[flow_levels == level].sum()) * DATA_BYTES
        for level in set(flow_levels.tolist())
    }
    budgets = len(trial.network.hosts) * epochs
    return {
        level: offered_bytes / (budget * budgets)
        for level, offered_bytes in sorted(offered.items())
        if (budget := limiter.budget_bytes[level]) and budgets
    }


def ideal_ps(network: Network, table: pa.Table, *, frames: bool = False) -> npt.NDArray[np.float64]:
    """Each flow's completion time in an empty network, in ps, with an acknowledgement for the last
    packet; shape (rows,). Packets are those of the scripts, or ``frames`` of Linux's TCP, which
    arrive before the gap that follows them."""
    data, ack, gap = DATA_BYTES, ACK_BYTES, 0
    if frames:
        data = theory.wire_bytes(network.mtu_bytes)
        ack, gap = theory.wire_bytes(theory.TCP_HEADERS_BYTES), theory.INTERFRAME_GAP_BYTES
    pairs = list(zip(table["source"].to_pylist(), table["destination"].to_pylist(), strict=True))
    times = {}
    for pair in set(pairs):
        links = network.speeds(*pair)
        first_one, _ = theory.transfer_ps(links, data - gap, ack - gap)
        times[pair] = first_one, theory.transfer_ps(links, data, ack)[1]
    first, next_ones = np.array([times[pair] for pair in pairs], dtype=np.float64).reshape(-1, 2).T
    result: npt.NDArray[np.float64] = first + (table["packets"].to_numpy() - 1) * next_ones
    return result


def wire(table: pa.Table, plan: FlowsPlan, trial: Trial) -> OnTheWire:
    """A flow ends no earlier than the acknowledgement of its last packet in an empty network."""
    took_us = (
        pc.cast(pc.subtract(table["finish_ps"], table["start_ps"]), "double").to_numpy()
    ) / 1e6
    least_ps = ideal_ps(trial.network, table, frames=plan.arrivals == LISTED)
    return OnTheWire(took_us, least_ps / 1e6)


def moved(said: Said) -> Iterator[Moved]:
    """The bytes of each pair of hosts at each level; every flow has a connection of its own."""
    network = said.trial.network
    sent = levels(said.table["packets"].to_numpy()).tolist()
    if not said.trial.arm.uses_levels:
        sent = [said.plan.level] * len(sent)
    packets: dict[tuple[str, str, int], int] = {}
    for source, destination, level, count in zip(
        *(said.table[name].to_pylist() for name in ("source", "destination")),
        sent,
        said.table["packets"].to_pylist(),
        strict=True,
    ):
        key = source, destination, level
        packets[key] = packets.get(key, 0) + count
    payload = network.mtu_bytes - theory.TCP_HEADERS_BYTES
    for (source, destination, level), count in packets.items():
        pair = source, destination
        yield Moved.stream(pair, level, count * payload, network.mtu_bytes)


def tracks(table: pa.Table, plan: FlowsPlan, trial: Trial, facts: TrialFacts) -> Iterator[Track]:
    """Every flow from its start, by size."""
    start_ns = floats(table, "start_ps") / 1e3
    took_ms = floats(table, "finish_ps") / 1e9 - start_ns / 1e6
    track = Track("completion time of flows", "ms", "took", "", start_ns - facts.began_ns, took_ms)
    sizes = table["packets"].to_numpy() * DATA_BYTES
    regions = {name: ends for name, ends in BYTES.items() if name != "all"}
    labels = [
        next(name for name, (above, most) in regions.items() if above < size <= most)
        for size in sizes
    ]
    yield from split(track, labels)


MEASURES = Measures(values=values, wire=wire, moved=moved, tracks=tracks)
