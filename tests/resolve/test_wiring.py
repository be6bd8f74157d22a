"""Topologies at both ends of each range, and the sentence for those that cannot be."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from qjump_mn.errors import UsageError
from qjump_mn.model import units
from qjump_mn.model.topology import FabricSpec, Failure, Network, TopologySpec
from qjump_mn.resolve import wiring
from qjump_mn.resolve.wiring import MAX_FABRIC_HOSTS

LINK = {"model": "wire", "rate": "10Mbit", "buffer": "100kB", "delay": "0ns"}
TREE = {"s0": ["s1", "s2"], "s1": ["h1", "h2"], "s2": ["h3"]}


def network(link: dict[str, Any] | None = None, **changes: Any) -> Network:
    """The network of a file with these entries; by default a tree of three switches."""
    raw = {"description": "d", "mtu": "1500B", "switches": TREE, "link": LINK | (link or {})}
    spec = msgspec.convert(raw | changes, TopologySpec, dec_hook=units.decode)
    return wiring.resolve_network("mine", spec, "there", spec.link)


def fabric(racks: int, hosts: int = 2, spines: int = 1) -> dict[str, Any]:
    return {"switches": {}, "fabric": {"racks": racks, "hosts_per_rack": hosts, "spines": spines}}


def failure(*between: str, **times: str) -> dict[str, Any]:
    return {"between": list(between), "down": "1ms", **times}


def test_tree_is_in_plain_numbers() -> None:
    link = {"trunk_rate": "1Gbit", "trunk_buffer": "2kB", "trunk_delay": "0ns", "delay": "5ns"}
    made = network({**link, "host_time": "7ns", "pfc": False}, vlan=9, static_arp=False)
    assert (made.topology, made.vlan, made.mtu_bytes, made.static_arp) == ("mine", 9, 1500, False)
    assert made.edges == (("s0", "s1"), ("s0", "s2"), ("s1", "h1"), ("s1", "h2"), ("s2", "h3"))
    for shape, expected in (
        (made.link, (10**7, 10**5, 5, 7, 1500, True, None, None)),
        (made.trunk, (10**9, 2000, 0, 0, 1500, True, None, None)),
    ):
        fields = ("rate_bps", "buffer_bytes", "delay_ns", "host_ns", "mtu_bytes", "orphan")
        names = (*fields, "pfc", "tolerance_ppb")
        assert tuple(getattr(shape, name) for name in names) == expected
    same = network({"delay": "5ns", "tolerance": "3ppb"})
    assert same.trunk == same.link and same.link.tolerance_ppb == 3


def test_failures_are_in_ns_and_either_direction() -> None:
    made = network(failures=[failure("s1", "s0"), failure("s0", "s2", up="2ms")])
    assert made.failures == (
        Failure(between=("s1", "s0"), down_ns=10**6, up_ns=None),
        Failure(between=("s0", "s2"), down_ns=10**6, up_ns=2 * 10**6),
    )


def test_jitter_is_of_all_hosts_or_of_those_named() -> None:
    drawn = {"host_jitter": "0:1us,100:2us", "host_jitter_of": {"h2": "", "h3": "0:0us,100:9us"}}
    all_of_it = ((0.0, 1000), (100.0, 2000))
    assert network(drawn).jittery == (("h1", all_of_it), ("h3", ((0.0, 0), (100.0, 9000))))
    assert network().jittery == ()


@pytest.mark.parametrize(
    ("link", "changes"),
    [
        ({}, {"vlan": 1}),
        ({}, {"vlan": 4094}),
        ({}, {"mtu": "576B"}),
        ({}, {"mtu": "9000B"}),
        ({"rate": "100kbit"}, {}),
        ({"rate": "400Gbit"}, {}),
        ({"buffer": "1522B"}, {}),
        ({"delay": "1s"}, {}),
        ({"host_time": "1s"}, {}),
        ({"host_jitter": "0:0us,100:1s"}, {}),
        ({"tolerance": "1000ppm"}, {}),
        ({"xoff": "1523B", "xon": "1522B"}, {}),
        ({}, {"switches": {"s1": ["h1", "h2"]}}),
        ({}, fabric(1)),
        ({}, fabric(MAX_FABRIC_HOSTS // 2, 2, 1024)),
        ({}, {"switches": {}, "fat_tree": {"ports": 4}}),
        ({}, {"cables": [["s1", "s2"]]}),
    ],
)
def test_ends_of_ranges_are_allowed(link: dict[str, Any], changes: dict[str, Any]) -> None:
    assert len(network(link, **changes).hosts) >= 2


@pytest.mark.parametrize(
    ("link", "changes", "sentence"),
    [
        ({}, {"vlan": 0}, "vlan 0 is not a VLAN id"),
        ({}, {"vlan": 4095}, "vlan 4095 is not a VLAN id"),
        ({}, {"mtu": "575B"}, "mtu 575B is out of range"),
        ({}, {"mtu": "9001B"}, "mtu 9.001kB is out of range"),
        ({"rate": "99999bit"}, {}, "link.rate = 99.999kbit is out of range"),
        ({"rate": "400000000001bit"}, {}, "link.rate = "),
        ({"trunk_rate": "99999bit"}, {}, "link.trunk_rate = 99.999kbit is out of range"),
        ({"buffer": "1521B"}, {}, "link.buffer = 1521B is less than a full-size frame"),
        ({"trunk_buffer": "1521B"}, {}, "link.trunk_buffer = 1521B is less"),
        ({"trunk_delay": "1000000001ns"}, {}, "link.trunk_delay = "),
        ({"host_time": "1000000001ns"}, {}, "a host time of 1000000.001us is out of range"),
        ({"host_jitter": "0:0us,100:2s"}, {}, "a host time of 2s is out of range"),
        ({"host_jitter_of": {"h2": "0:0us,100:3s"}}, {}, "a host time of 3s is out of range"),
        ({"host_jitter_of": {"h9": ""}}, {}, "link.host_jitter_of: there is no host 'h9'"),
        ({"tolerance": "1000001ppb"}, {}, "link.tolerance = 1000.001ppm is out of range"),
        ({"model": "nosuch"}, {}, "link.model"),
        ({"xoff": "1522B", "xon": "1522B"}, {}, "do not fit each other: use 1522B <= xon < xoff"),
        ({"xoff": "3kB", "xon": "1521B"}, {}, "do not fit each other"),
        ({"xon": "1522B"}, {}, "do not fit each other"),
        ({"pfc": True}, {}, "pfc = true needs thresholds"),
        ({}, {"switches": {"s1": ["h1"]}}, "at least two hosts (got 1)"),
        ({}, {"switches": {}}, "a single tree with one root (got none)"),
        ({}, {"switches": {"s1": ["h1"], "s2": ["h2"]}}, "one root (got s1, s2)"),
        ({}, {"switches": {"s1": ["h1"], "s2": ["h1"]}}, "'h1' is below both 's1' and 's2'"),
        ({}, {"switches": {"s1": ["s2"], "s2": ["s1"]}}, "is a loop"),
        ({}, {"fabric": fabric(1)["fabric"]}, "fabric and switches exclude each other"),
        ({}, {"fat_tree": {"ports": 4}}, "fat_tree excludes switches, fabric and cables"),
        ({}, {**fabric(1), "fat_tree": {"ports": 4}}, "fat_tree excludes"),
        ({}, fabric(0), "fabric.racks = 0 is out of range: use 1 to 131072"),
        ({}, fabric(MAX_FABRIC_HOSTS + 1, 1), "fabric.racks = 131073"),
        ({}, fabric(1, 0), "fabric.hosts_per_rack = 0"),
        ({}, fabric(1, 2, 0), "fabric.spines = 0 is out of range: use 1 to 1024"),
        ({}, fabric(1, 2, 1025), "fabric.spines = 1025"),
        ({}, fabric(MAX_FABRIC_HOSTS // 2, 3), "196608 hosts are too many"),
        ({}, {"failures": [failure("s1", "s2")]}, "there is no cable between s1 and s2"),
    ],
)
def test_what_cannot_be_is_refused(
    link: dict[str, Any], changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError, match=f"(topology 'mine'|there): .*{re.escape(sentence)}"):
        network(link, **changes)


def test_pause_needs_room_for_what_all_other_ports_send_meanwhile() -> None:
    """Each of two others sends 10000 B before, and after four frames and what is on its link."""
    behind = 4 * 1522 + 2 * 8000 * 10**7 // (8 * 10**9)
    exact = 2 * 10_000 + 2 * behind
    link = {"xoff": "10kB", "xon": "5kB", "delay": "8us"}
    network({**link, "buffer": f"{exact}B"})
    with pytest.raises(UsageError, match=f"use at most {10_000 - 1}B") as refused:
        network({**link, "buffer": f"{exact - 1}B"})
    assert f"2 ports of s1 may send {exact}B to one whose buffer has {exact - 1}B" in str(
        refused.value
    )


STAR = {"s1": [f"h{number}" for number in range(250)]}


def test_emulation_has_trees_of_250_hosts() -> None:
    wiring.check_emulated(network(switches=STAR))
    wiring.check_emulated(network(failures=[]))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"switches": {"s1": [*STAR["s1"], "h250"]}}, "251 hosts are too many"),
        (fabric(2), "trees only, not a fabric"),
        ({"cables": [["s1", "s2"]]}, "without loops and failing cables"),
        ({"failures": [failure("s1", "s0")]}, "without loops and failing cables"),
        ({"switches": {"a-switch-of-1": ["h1", "h2"]}}, "a-switch-of-1-eth1"),
        ({"switches": {"s1": ["a-host-of-1", "h2"]}}, "a-host-of-1-eth0.2"),
    ],
)
def test_emulation_refuses_what_only_the_simulator_has(
    changes: dict[str, Any], sentence: str
) -> None:
    made = network(**changes)
    with pytest.raises(UsageError, match=f"topology 'mine': .*{re.escape(sentence)}"):
        wiring.check_emulated(made)


def test_fabric_has_racks_and_spines() -> None:
    made = network(**fabric(2, 2, 3))
    assert made.fabric == FabricSpec(racks=2, hosts_per_rack=2, spines=3)
    assert made.switches == ("rack1", "rack2", "spine1", "spine2", "spine3")
    assert made.hosts == ("h1", "h2", "h3", "h4")
    assert made.path("h1", "h2") == (("h1", "rack1"), ("rack1", "h2"))
    across = (("h2", "rack1"), ("rack1", "spine1"), ("spine1", "rack2"), ("rack2", "h3"))
    assert made.path("h2", "h3") == across
