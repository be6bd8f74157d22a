"""Listed flows on real TCP: all of them, at the levels of their sizes, none faster than the wire."""

from __future__ import annotations

import numpy as np
import pytest

from qjump_mn import resolve
from qjump_mn.programs.flows import measures
from qjump_mn.results import links, tables
from tests.guest.laboratory import Laboratory

pytestmark = pytest.mark.guest

SETTINGS = [
    *("topology=trunk", "link.rate=10Gbit", "link.buffer=225kB", "duration=10ms"),
    *("workloads.search.count=60", "workloads.search.sizes=[[6, 0], [6, 0.5], [13, 1]]"),
    "workloads.search.load=0.02",
]


def test_flows_between_all_hosts_end_no_earlier_than_the_wire_allows(
    laboratory: Laboratory,
) -> None:
    trial, out = laboratory.run(resolve.plan("fig9", "linux", SETTINGS), "search_qjump")
    (workload,) = trial.arm.workloads
    table = tables.table(workload, trial, out / "raw")
    on_the_wire = measures.wire(table, workload, trial)  # type: ignore[arg-type]
    slowdown = on_the_wire.measured_us / on_the_wire.least_us
    assert len(slowdown) == 60 and slowdown.min() >= 1
    # Six packets are one window: alone, they wait for nothing but the acknowledgement before a FIN.
    assert np.median(slowdown[table["packets"].to_numpy() == 6]) < 1.02
    carried = links.carried(trial.network, out, "before", "after")
    used = {level for link in carried.values() for level, count in link.items() if count.frames}
    assert used == {6, 7}, (
        "flows of 6 packets have level 7, of up to 13 level 6; so have their ACKs"
    )
