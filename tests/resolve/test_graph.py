"""Networks that are no trees: what they resolve to, and what cannot be."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from qjump_mn.errors import UsageError
from qjump_mn.model.topology import Failure, FailureSpec, FatTreeSpec, Network
from qjump_mn.model.units import Duration
from qjump_mn.report.network import outline
from qjump_mn.report.network.use import Use
from qjump_mn.resolve import loading
from qjump_mn.resolve.wiring import check_emulated, resolve_network


def network(**changes: Any) -> Network:
    spec = msgspec.structs.replace(loading.topology("fabric144"), fabric=None, **changes)
    return resolve_network("mine", spec, "mine", spec.link)


def fat_tree(ports: int) -> Network:
    return network(fat_tree=FatTreeSpec(ports=ports))


DIAMOND = [("s1", "m"), ("s1", "n"), ("m", "s2"), ("n", "s2")]
HOSTS = {"s1": ["h1"], "s2": ["h2"]}


@pytest.mark.parametrize("ports", [2, 4, 6, 8])
def test_a_fat_tree_is_the_published_one(ports: int) -> None:
    # Al-Fares, Loukissas and Vahdat, section 2.2: k^3/4 hosts, 5k^2/4 switches, all with k ports.
    found = fat_tree(ports)
    assert (len(found.hosts), len(found.switches)) == (ports**3 // 4, 5 * ports**2 // 4)
    ends = [node for pair in (*found.edges, *found.cables) for node in pair]
    assert {ends.count(switch) for switch in found.switches} == {ports}
    assert len(set(found.cables)) == len(found.cables) == ports**3 // 2
    half = ports // 2
    lengths = {len(found.path("h1", f"h{n}")) for n in range(2, half + 1)}
    assert lengths <= {2}
    assert {len(found.path("h1", f"h{n}")) for n in range(half + 1, half**2 + 1)} <= {4}
    assert {len(found.path("h1", f"h{n}")) for n in range(half**2 + 1, len(found.hosts) + 1)} == {6}
    # A core switch has one cable to each pod, so that the pods of its neighbours are all of them.
    core = [one for one, other in found.cables if other == "c1"]
    assert sorted((int(name[1:]) - 1) // half for name in core) == list(range(ports))


def test_a_graph_has_the_first_of_the_shortest_ways() -> None:
    found = network(switches=HOSTS, cables=DIAMOND)
    assert found.path("h1", "h2") == (("h1", "s1"), ("s1", "m"), ("m", "s2"), ("s2", "h2"))
    assert found.switches == ("s1", "s2", "m", "n")
    assert len(found.speeds("h1", "h2")) == 4
    drawn = outline.outline(
        outline.tree(found, {}, Use({}, True, 1.0), frozenset()), Use({}, True, 1.0)
    )
    assert [branch.name for branch in drawn.below] == ["s1", "s2"]


def test_a_tree_whose_cable_fails_is_still_one() -> None:
    failure = FailureSpec(between=("s1", "h1"), down=Duration(5), up=Duration(9))
    found = network(switches={"s1": ["h1", "h2"]}, failures=[failure])
    assert found.failures == (Failure(between=("s1", "h1"), down_ns=5, up_ns=9),)
    assert found.path("h1", "h2") == (("h1", "s1"), ("s1", "h2"))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"fat_tree": FatTreeSpec(ports=5)},
            "fat_tree.ports must be an even number from 2 to 32 (got 5)",
        ),
        (
            {"fat_tree": FatTreeSpec(ports=4), "switches": HOSTS},
            "fat_tree excludes switches, fabric and cables",
        ),
        ({"switches": HOSTS, "cables": [("s1", "m")]}, "nothing joins h2 to s1"),
        ({"switches": HOSTS, "cables": [("s1", "h2")]}, "cables: s1 and h2 are not two switches"),
        ({"switches": HOSTS, "cables": [("s1", "s1")]}, "cables: s1 and s1 are not two switches"),
        (
            {
                "switches": HOSTS,
                "cables": DIAMOND,
                "failures": [FailureSpec(between=("s1", "s2"), down=Duration(0))],
            },
            "failures: there is no cable between s1 and s2",
        ),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        network(**changes)
    assert sentence in str(raised.value) and "\n" not in str(raised.value)


def test_the_emulation_has_trees_that_work() -> None:
    failing = network(
        switches={"s1": ["h1", "h2"]},
        failures=[FailureSpec(between=("s1", "h1"), down=Duration(0))],
    )
    for found in (fat_tree(4), network(switches=HOSTS, cables=DIAMOND), failing):
        with pytest.raises(UsageError, match="without loops and failing cables"):
            check_emulated(found)
