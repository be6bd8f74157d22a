"""Measures of shuffle: how long a job's rounds took, and the load that they put on the links."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn import theory
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.measures_api import Measures, Moved, Said
from qjump_mn.programs.shuffle.program import ShufflePlan
from qjump_mn.programs.tracks import Track, floats, split


def values(table: pa.Table, plan: ShufflePlan, trial: Trial, facts: TrialFacts) -> dict[str, float]:
    """The measures of the rounds that ended during the measurement, and of its copies."""
    start, end = facts.window_ns
    rounds = table.filter(
        (pc.field("step") == "round") & (pc.field("end_ns") >= start) & (pc.field("end_ns") <= end)
    )
    rounds_ms = pc.subtract(rounds["end_ns"], rounds["start_ns"]).to_numpy() / 1e6
    copies = table.filter(pc.field("step") != "round")
    inside = _bytes_inside(copies, start, end)
    numbers = {
        "rounds": float(len(rounds_ms)),
        "goodput_mbps": float(np.sum(inside)) * 8e3 / (end - start),
    }
    if len(rounds_ms):
        numbers |= {
            "round_mean_ms": float(np.mean(rounds_ms)),
            "round_rms_ms": float(np.sqrt(np.mean(rounds_ms**2))),
            "round_max_ms": float(np.max(rounds_ms)),
        }
    shares = link_shares(copies, inside, trial.network, end - start)
    return numbers | {"busiest_share": max(shares.values(), default=0.0)}


def link_shares(
    copies: pa.Table,
    inside: np.ndarray[tuple[int], np.dtype[np.float64]],
    network: Network,
    window_ns: int,
) -> dict[tuple[str, str], float]:
    """Share of its rate that each link needs for the payload ``inside`` of the copies, in full-size
    TCP segments."""
    carried: dict[tuple[str, str], float] = {}
    for source, destination, size in zip(
        copies["source"].to_pylist(),
        copies["destination"].to_pylist(),
        inside.tolist(),
        strict=True,
    ):
        for link in network.path(source, destination):
            carried[link] = carried.get(link, 0.0) + size
    goodput = theory.tcp_goodput_bps(network.mtu_bytes, network.link.rate_bps)
    return {link: size * 8e9 / window_ns / goodput for link, size in carried.items()}


def _bytes_inside(
    copies: pa.Table, start: int, end: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Bytes of each copy between two instants, assuming a constant rate."""
    first, last = copies["start_ns"].to_numpy(), copies["end_ns"].to_numpy()
    overlap = np.clip(np.minimum(last, end) - np.maximum(first, start), 0, None)
    inside: np.ndarray[tuple[int], np.dtype[np.float64]] = (
        copies["bytes"].to_numpy() * overlap / np.maximum(last - first, 1)
    )
    return inside


def tracks(table: pa.Table, plan: ShufflePlan, trial: Trial, facts: TrialFacts) -> Iterator[Track]:
    """Every copy and every round, from its start."""
    took_ms = (floats(table, "end_ns") - floats(table, "start_ns")) / 1e6
    at_ns = table["start_ns"].to_numpy() - facts.began_ns
    track = Track("time of copies and rounds", "ms", "took", "", at_ns, took_ms)
    yield from split(track, table["step"].to_pylist())


def moved(said: Said) -> Iterator[Moved]:
    """The copied bytes of each pair; each copy has its own connection, or follows another on the
    same one."""
    plan: ShufflePlan = said.plan
    copied: dict[tuple[str, str], int] = {}
    for row in said.table.filter(pc.field("step") != "round").to_pylist():
        pair = row["source"], row["destination"]
        copied[pair] = copied.get(pair, 0) + row["bytes"]
    for pair, size in copied.items():
        yield Moved.stream(pair, plan.level, size, said.trial.network.mtu_bytes)


MEASURES = Measures(values=values, moved=moved, tracks=tracks)
