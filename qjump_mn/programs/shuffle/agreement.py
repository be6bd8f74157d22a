"""Whether the copies of a job fill its rounds, and its rounds the time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qjump_mn.programs import pace
from qjump_mn.programs.measures_api import Moved, Said
from qjump_mn.programs.shuffle.program import ShufflePlan


def agrees(said: Said) -> Iterator[str]:
    """Each round begins when the one before has ended, and ends with the last of its copies; no copy is
    quicker than its link, and each has the size that was asked for."""
    plan: ShufflePlan = said.plan
    late_ns = pace.latest_ns(said.trial) if said.virtual else np.inf
    rounds = said.table.filter(pc.field("step") == "round")
    copies = said.table.filter(pc.field("step") != "round")
    start, end = (rounds[name].to_numpy() for name in ("start_ns", "end_ns"))
    pause_ns = start[1:] - end[:-1]
    if np.any(wrong := pace.pauses(pause_ns, late_ns)):
        yield (
            f"{np.count_nonzero(wrong)} of {len(pause_ns)} rounds did not begin when the one before had "
            f"ended, such as one that began {pause_ns[int(np.argmax(wrong))] / 1e6:.4g} ms later"
        )
    yield from _in_rounds(rounds, copies, late_ns + _computes_ns(plan))
    took_ns = copies["end_ns"].to_numpy() - copies["start_ns"].to_numpy()
    # Whatever the way, its payload has crossed the host's own link.
    least_ns = copies["bytes"].to_numpy() * 8e9 / said.trial.network.link.rate_bps
    if said.virtual and np.any(short := took_ns < least_ns):
        first = int(np.argmax(short))
        yield (
            f"{np.count_nonzero(short)} of {len(took_ns)} copies were quicker than their link, such as one "
            f"that took {took_ns[first] / 1e6:.4g} ms where its {copies['bytes'][first].as_py()} B take "
            f"{least_ns[first] / 1e6:.4g} ms"
        )
    sizes = {
        "distribute": plan.distribute_bytes,
        "shuffle": plan.shuffle_bytes,
        "aggregate": plan.aggregate_bytes,
    }
    steps = zip(copies["step"].to_pylist(), copies["bytes"].to_pylist(), strict=True)
    if other := sum(sizes[step] != size for step, size in steps):
        yield f"{other} of {copies.num_rows} copies have not the size that was asked for"


def _computes_ns(plan: ShufflePlan) -> float:
    """What may follow the last copy of a round: where nothing is aggregated, the reducers compute last."""
    return 0.0 if plan.aggregate_bytes else plan.map_ns * (1 + plan.jitter)


def _in_rounds(rounds: pa.Table, copies: pa.Table, late_ns: float) -> Iterator[str]:
    of = copies["round"].to_numpy()
    start, end = (copies[name].to_numpy() for name in ("start_ns", "end_ns"))
    rows = [row for row in rounds.to_pylist() if np.any(of == row["round"])]
    before_ns = np.array([start[of == row["round"]].min() - row["start_ns"] for row in rows])
    after_ns = np.array([row["end_ns"] - end[of == row["round"]].max() for row in rows])
    if outside := int(np.count_nonzero((before_ns < 0) | (after_ns < 0))):
        yield f"{outside} rounds have a copy that began before them, or ended after them"
    elif np.any(wrong := pace.pauses(after_ns, late_ns)):
        yield (
            f"{np.count_nonzero(wrong)} of {len(rows)} rounds did not end with the last of their copies, "
            f"such as one that ended {after_ns[int(np.argmax(wrong))] / 1e6:.4g} ms later"
        )


def moved(said: Said) -> Iterator[Moved]:
    """What was copied, each copy over a connection of its own or one after the other."""
    plan: ShufflePlan = said.plan
    copied: dict[tuple[str, str], int] = {}
    for row in said.table.filter(pc.field("step") != "round").to_pylist():
        pair = row["source"], row["destination"]
        copied[pair] = copied.get(pair, 0) + row["bytes"]
    for pair, size in copied.items():
        yield Moved.stream(pair, plan.level, size, said.trial.network.mtu_bytes)
