"""Queues, pauses and networks of files that only the simulator has: what it gets of them, and what
comes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qjump_mn.errors import UsageError
from tests.simulator.test_simulated_programs import (
    PING,
    Laboratory,
    laboratory,
    one_way_us,
    workload,
)
from tests.support.user_files import Write

pytestmark = pytest.mark.guest

__all__ = ["laboratory"]
US = 1_000_000

GRAPH = """
description = "two ways from s1 to s2"
mtu = "1500B"
cables = [["s1", "m"], ["s1", "n"], ["m", "s2"], ["n", "s2"]]
{failures}
[switches]
s1 = ["h1", "h2"]
s2 = ["h3", "h4"]
[link]
model = "wire"
rate = "10Gbit"
buffer = "1522kB"
delay = "1us"
"""
FAT_TREE = """
description = "a fat-tree"
mtu = "1500B"
fat_tree = {ports = 4}
[link]
model = "wire"
rate = "10Gbit"
buffer = "1522kB"
delay = "0ns"
"""


def scheme(own: Write, settings: str) -> None:
    own(
        "schemes/mine.toml",
        'label = "mine"\nabout = "mine"\nlook = { colour = "#123456", marker = "o" }\nlevels = true\n'
        f'[simulator]\nlike = "linux"\n{settings}\n',
    )


def told(folder: Path) -> Any:
    return json.loads((folder / "out" / "asbuilt" / "scenario.json").read_text())["scheme"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('queue = { kind = "wfq", limit = 150000, weights = [1, 1, 1, 1, 1, 2, 4, 8] }',
         {"kind": "Wfq", "limit": 150_000, "weights": [8, 4, 2, 1, 1, 1, 1, 1]}),
        (
            'queue = { kind = "level-red", limit = 150000, min = 5000, max = 50000, max_p = 0.01 }',
            {
                "kind": "LevelRed",
                "limit": 150_000,
                "min": 5_000,
                "max": 50_000,
                "max_p": 0.01,
                "weights": None,
            },
        ),
        (
            'queue = { kind = "time-aware", limit = 150000, entries = ["20us 7", "80us 0-6"], base = "5us" }',
            {
                "kind": "TimeAware",
                "limit": 150_000,
                "entries": [[20 * US, [0]], [80 * US, [7, 6, 5, 4, 3, 2, 1]]],
                "base": 5 * US,
            },
        ),
        (
            'queue = { kind = "pie", limit = "buffer", target = "50us", update = "50us", alpha = 40, beta = 400.5 }',
            {
                "kind": "Pie",
                "limit": {"count": 1014},
                "target": 50 * US,
                "update": 50 * US,
                "alpha": 40,
                "beta": 400.5,
                "burst": 150_000 * US,
                "mark_p": 0.1,
                "protection": "default",
            },
        ),
        (
            'queue = { kind = "dualpi2", limit = 150000, least = "10us", range = "5us" }',
            {
                "kind": "DualPi2",
                "limit": 150_000,
                "target": 15_000 * US,
                "update": 16_000 * US,
                "alpha": 0.16,
                "beta": 3.2,
                "coupling": 2,
                "least": 10 * US,
                "range": 5 * US,
                "classic_share": 10,
            },
        ),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_a_scheme_file_has_the_queues_of_today(
    settings: str, expected: dict[str, Any], laboratory: Laboratory, own: Write
) -> None:
    scheme(own, settings)
    found = laboratory.run(PING, scheme="mine")
    assert found.tables["ping"].num_rows > 0
    assert told(laboratory.folder)["queue"] == expected


def test_a_scheme_file_has_priority_flow_control(laboratory: Laboratory, own: Write) -> None:
    pause = '{ kind = "pfc", xoff = 9000, xon = 3000, buffer = 40000 }'
    scheme(own, f'queue = {{ kind = "priority", limit = 1000000000 }}\npause = {pause}')
    bulk = workload("bulk", "iperf", flows=["h2>h11", "h3>h11"], level=0)
    found = laboratory.run(PING + bulk, scheme="mine")
    assert told(laboratory.folder)["pause"] == {
        "kind": "Pfc",
        "xoff": 9000,
        "xon": 3000,
        "buffer": 40_000,
    }
    counted = json.loads((laboratory.folder / "out" / "raw" / "counters.json").read_text())
    assert counted["pauses"] > 0 and sum(counted["full"].values()) == 0
    # The bulk is stopped, not the pings: a full frame at each of four ports, and the pauses' own.
    assert max(found.tables["ping"]["latency_us"].to_pylist()) < 4 * (one_way_us(1500, 1) + 0.2)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ('queue = { kind = "wfq", limit = 150000, weights = [1, 2] }',
         "simulator.queue.weights: needs 8 numbers, one for each level from 0 to 7 (got [1, 2])"),
        ('queue = { kind = "time-aware", limit = 150000, entries = ["20us 8"] }',
         "simulator.queue.entries[0]: needs a time and levels, such as '80us 0-6' (got '20us 8')"),
        ('queue = { kind = "time-aware", limit = 150000, entries = ["20us 0-6"] }',
         "scheme.queue: the gate of level 0 never opens"),
        ('pause = { kind = "pfq", xoff = 1 }',
         "simulator.pause.kind: there is no kind of pause 'pfq': known are pause, pfc"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(
    settings: str, sentence: str, laboratory: Laboratory, own: Write
) -> None:
    scheme(own, settings)
    assert sentence in laboratory.refusal(PING, scheme="mine")


@pytest.mark.parametrize(("other", "links"), [("h2", 2), ("h4", 4), ("h16", 6)])
def test_fat_tree_ping_is_the_closed_form(
    other: str, links: int, laboratory: Laboratory, own: Write
) -> None:
    own("topologies/mine.toml", FAT_TREE)
    ping = workload("ping", "ping", flows=[f"h1>{other}"], interval="10us")
    found = laboratory.run(ping, settings=("topology=mine",))
    (time,) = found.tables["ping"]["latency_us"].unique().to_pylist()
    assert time == pytest.approx(2 * one_way_us(84, links), abs=1e-9)


def test_a_cable_that_fails_loses_what_it_carries(laboratory: Laboratory, own: Write) -> None:
    # Pings every 10 us, per-flow paths: those that are on a cable are lost, and no others, which go
    # by the other way that is as long.
    failures = 'failures = [{ between = ["m", "s1"], down = "5ms", up = "9ms" }, { between = ["n", "s2"], down = "12ms" }]'
    flows = ["h1>h3", "h2>h4", "h1>h4", "h2>h3", "h3>h1", "h4>h2"]
    ping = workload("ping", "ping", flows=flows, interval="10us")
    times, lost = [], []
    for text in ("", failures):
        own("topologies/mine.toml", GRAPH.format(failures=text))
        table = laboratory.run(ping, settings=("topology=mine",)).tables["ping"]
        times.append(sorted(set(table["latency_us"].drop_null().to_pylist())))
        lost.append(table["latency_us"].null_count)
    counted = json.loads((laboratory.folder / "out" / "raw" / "counters.json").read_text())
    assert lost[0] == 0 and lost[1] == sum(counted["failed"].values()) > 0
    # Who is on the way to m when its cable to s1 fails goes back by s2: two cables of 1 us more.
    assert 2 < max(times[1]) - min(times[0]) < 2 + (2 + 2 * len(flows)) * one_way_us(84, 1)


def test_an_urgent_level_has_less_than_a_full_packet(laboratory: Laboratory) -> None:
    # The paper's P of 256 bytes, of frames with preamble and gap; the others send full ones.
    limiter = '[qjump.q]\npacket = "256B"\nbudget_packet = "256B"\nfactors = { "7" = 1 }\n'
    ping = workload("ping", "ping", flows=["h1>h11"], interval="10us")
    bulk = workload("bulk", "iperf", flows=["h2>h11"], level=0)
    found = laboratory.run(ping + bulk + limiter, scheme="qjump-drop")
    assert found.tables["ping"]["latency_us"].null_count == 0
    large = workload("ping", "ping", flows=["h1>h11"], interval="10us", payload="300B")
    with pytest.raises(
        UsageError, match="a packet of ping costs 342 B of level 7, whose budget is 256 B"
    ):
        laboratory.run(large + bulk + limiter, scheme="qjump-drop")
