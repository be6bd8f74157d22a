"""Listed flows: what is drawn, what the hosts are told, what is made of their output, and what is
refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

from qjump_mn import resolve
from qjump_mn.backends import emulated
from qjump_mn.errors import LostError, UsageError
from qjump_mn.executor.steps import MACHINE
from qjump_mn.model import hooks
from qjump_mn.model.plan import Trial
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.flows import hosts, measures, program
from qjump_mn.programs.flows.program import Flows, FlowsPlan
from qjump_mn.programs.measures_api import Said

WEB_SEARCH = 20_000
FACTS = TrialFacts(cpu_busy=0.0, window_s=(0.0, 1.0), began_ns=0, began_utc_ns=0)


def trial(*settings: str, arm: str = "search_tcp") -> Trial:
    (only,) = resolve.plan("fig9", "linux", [*settings], only=[arm], replicates=1).trials()
    return only


def listed(of: Trial) -> FlowsPlan:
    (workload,) = of.arm.workloads
    assert isinstance(workload, FlowsPlan)
    return workload


def output(of: Trial, began_ns: int = 0) -> str:
    """What the hosts would print, if each flow took 1 ms."""
    names, lines = of.network.hosts, [",".join(program.COLUMNS)]
    for start_ns, source, destination, packets in hosts.draw(**listed(of).drawing(of)):
        start_ps = 1000 * (began_ns + start_ns)
        ends = f"{names[source]},{names[destination]}"
        lines.append(f"{ends},{packets},{start_ps},{start_ps + 10**9}")
    return "\n".join(lines) + "\n"


def test_drawn_flows_have_the_load_the_sizes_and_all_pairs_of_hosts() -> None:
    of = trial(f"workloads.search.count={WEB_SEARCH}")
    drawing = listed(of).drawing(of)
    flows = hosts.draw(**drawing)
    assert flows == sorted(flows)
    packets = np.array([flow.packets for flow in flows])
    assert {flow.source for flow in flows} == {flow.destination for flow in flows} == {*range(144)}
    assert all(flow.source != flow.destination for flow in flows)
    assert packets.min() == 6 and packets.max() <= 20_000
    for size, share in listed(of).points[1:]:
        assert np.mean(packets <= size) == pytest.approx(share, abs=0.01)
    # A full-size frame has 1542 B on the wire.
    load = packets.sum() * 1542 * 8 / (flows[-1].start_ns / 1e9) / (144 * 10e9)
    assert load == pytest.approx(0.6, rel=1e-3)


def test_another_seed_draws_other_flows() -> None:
    of = trial()
    drawn = [listed(of).drawing(one) for one in (of, of, replace(of, seed=2))]
    first, again, other = (hosts.draw(**drawing) for drawing in drawn)
    assert first == again != other


def test_a_size_is_rounded_up() -> None:
    points = ((1, 0.0), (1, 0.5), (3, 1.0))
    drawn = {flow.packets for flow in hosts.draw("1", 1000, 10.0, 2, points)}
    assert drawn == {1, 2, 3}


@pytest.mark.parametrize(
    ("arm", "largest"), [("search_tcp", []), ("search_qjump", [6, 13, 19, 33, 53, 133, 667])]
)
def test_one_process_sends_the_flows_of_all_hosts(arm: str, largest: list[int]) -> None:
    of = trial(arm=arm)
    (launch,) = program.launches(listed(of), of)
    *run, source, task_text = launch.argv
    task = json.loads(task_text)
    assert (launch.host, launch.output, run) == (MACHINE, "search.csv", ["python3", "-c"])
    assert source == Path(hosts.__file__).read_text(encoding="utf-8")
    assert hosts.draw(**task["draw"]) == hosts.draw(**listed(of).drawing(of))
    assert (task["payload_bytes"], task["largest"]) == (1448, largest)
    assert task["addresses"][143] == "10.0.0.144"


def test_flows_of_the_output_are_those_of_the_list() -> None:
    of = trial("workloads.search.count=5")
    rows = program.columns(listed(of), of, lambda name: output(of, 10**9))
    assert len(rows["source"]) == 5 and {*rows["packets"]} <= {*range(6, 20_001)}


def test_flows_that_are_not_the_listed_ones_are_lost() -> None:
    of = trial("workloads.search.count=5")
    with pytest.raises(LostError, match="not those of the trial's list"):
        program.columns(listed(of), of, lambda name: output(replace(of, seed=2)))


def test_completion_times_are_over_those_of_linuxs_frames() -> None:
    """Across racks: two links of 10 and two of 160 Gb/s, 5.8 us of delay each way; a frame of 1530
    B without its gap, and an acknowledgement of 82 B."""
    of = trial()
    table = pa.table({"source": ["h1"], "destination": ["h144"], "packets": [3]})
    each_ps = 1612 * 8 * 100
    first_ps = 2 * each_ps + 2 * each_ps // 16 + 2 * 5_800_000
    (least,) = measures.ideal_ps(of.network, table, frames=True)
    assert least == pytest.approx(first_ps + 2 * 1542 * 8 * 100, abs=2)


def test_links_must_have_carried_the_flows_at_their_levels() -> None:
    rows = {"source": ["h1"] * 3, "destination": ["h2"] * 3, "packets": [6, 6, 7]}
    for arm, expected in (
        ("search_tcp", [(0, 19)]),
        ("search_qjump", [(7, 12), (6, 7)]),
    ):
        of = trial(arm=arm)
        said = Said(plan=listed(of), table=pa.table(rows), trial=of, facts=FACTS, read=str)
        found = list(measures.moved(said))
        assert [(one.level, one.arrived_frames) for one in found] == expected
        assert found[0].arrived_bytes == expected[0][1] * 1542


def test_only_listed_flows_run_in_the_guest() -> None:
    emulated.check(resolve.plan("fig9", "linux", []))
    assert not hooks.is_only_simulated(listed(trial()))
    drawn = resolve.plan("fig9", "linux", ["workloads.search.arrivals=poisson"])
    with pytest.raises(UsageError, match="runs only in the simulator"):
        emulated.check(drawn)


def test_listed_flows_need_a_virtual_clock() -> None:
    of: Any = listed(trial())
    with pytest.raises(UsageError, match="needs a clock that stands still"):
        hooks.check_real_time(of, "arms.search_tcp")


def test_listed_flows_need_their_sizes() -> None:
    spec = Flows(label="search", sizes="search", load=0.6, count=1, arrivals="listed")
    with pytest.raises(UsageError, match=r"listed arrivals need a list of \[packets, share\]"):
        spec.check("workloads.search", trial().network)
