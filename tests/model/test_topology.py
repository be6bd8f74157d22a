"""A network's own numbers: names, paths, rates and what its links are called."""

from __future__ import annotations

from typing import Any

import pytest

from qjump_mn.model.topology import Network
from tests.resolve.test_wiring import fabric, network


def test_ports_are_mininets_upper_one_first() -> None:
    made = network()
    assert made.ports()[1:3] == (
        (("s0", "s0-eth2"), ("s2", "s2-eth1")),
        (("s1", "s1-eth2"), ("h1", "h1-eth0")),
    )
    assert made.interfaces()["h1", "s1"] == "h1-eth0"
    assert made.interfaces()["s1", "h1"] == "s1-eth2"
    assert len(made.interfaces()) == 10
    assert made.switch_ports() == [
        *("s0-eth1", "s1-eth1", "s0-eth2", "s2-eth1", "s1-eth2", "s1-eth3", "s2-eth2"),
    ]
    assert made.vlan_device("h1") == "h1-eth0.2"
    assert made.addresses == {"h1": "10.0.0.1", "h2": "10.0.0.2", "h3": "10.0.0.3"}


def test_ports_are_those_of_fabrics_and_cables_too() -> None:
    made = network({"trunk_rate": "1Gbit"}, **fabric(2, 1, 2))
    names = {device: f"{node} {neighbour}" for device, (node, neighbour) in made.ways().items()}
    assert names == {
        "h1-eth0": "h1 rack1",
        "h2-eth0": "h2 rack2",
        "rack1-eth1": "rack1 h1",
        "rack1-eth2": "rack1 spine1",
        "rack1-eth3": "rack1 spine2",
        "rack2-eth1": "rack2 h2",
        "rack2-eth2": "rack2 spine1",
        "rack2-eth3": "rack2 spine2",
        "spine1-eth1": "spine1 rack1",
        "spine1-eth2": "spine1 rack2",
        "spine2-eth1": "spine2 rack1",
        "spine2-eth2": "spine2 rack2",
    }
    rates = {device: link.rate_bps for device, link in made.by_device().items()}
    assert [device for device, rate in rates.items() if rate == 10**7] == [
        *("rack1-eth1", "h1-eth0", "rack2-eth1", "h2-eth0"),
    ]
    cabled = network({"trunk_rate": "1Gbit"}, cables=[["s1", "s2"]])
    assert cabled.interfaces()["s2", "s1"] == "s2-eth3"
    assert cabled.by_device()["s2-eth3"].rate_bps == 10**9


def test_path_turns_at_the_first_common_switch() -> None:
    made = network()
    assert made.path("h1", "h2") == (("h1", "s1"), ("s1", "h2"))
    assert made.path("h1", "h3") == (("h1", "s1"), ("s1", "s0"), ("s0", "s2"), ("s2", "h3"))
    cabled = network(cables=[["s1", "s2"]])
    assert cabled.path("h1", "h3") == (("h1", "s1"), ("s1", "s2"), ("s2", "h3"))


def test_speeds_are_of_each_link_with_the_hosts_times() -> None:
    link = {"delay": "3ns", "trunk_delay": "5ns", "trunk_rate": "1Gbit", "host_time": "7ns"}
    jitter = {"host_jitter_of": {"h3": "0:11ns,100:90ns"}}
    made = network({**link, **jitter})
    ends, between = (10**7, 10), (10**9, 5)
    assert made.speeds("h1", "h3") == (ends, between, between, (10**7, 21))
    assert made.speeds("h3", "h1") == (ends, between, between, ends)
    assert made.drawn(1) == made, "an exact link has nothing to draw"


def test_drawn_rates_are_above_nominal_ones_and_in_speeds() -> None:
    made = network({"tolerance": "1000ppm", "trunk_rate": "1Gbit"}).drawn(1)
    assert len(made.faster_ppb) == 5 and all(0 <= ppb <= 10**6 for ppb in made.faster_ppb)
    nominal = (10**9, 10**9, 10**7, 10**7, 10**7)
    rates = tuple(
        rate + rate * ppb // 10**9 for rate, ppb in zip(nominal, made.faster_ppb, strict=True)
    )
    assert tuple(link.rate_bps for link in made.links()) == rates
    assert [rate for rate, _ in made.speeds("h1", "h3")] == [rates[2], rates[0], rates[1], rates[4]]
    assert made.drawn(1) == made != made.drawn(2)
    assert network({"tolerance": "1000ppm"}, **fabric(2)).drawn(1).faster_ppb == ()


@pytest.mark.parametrize(
    ("rates", "slowest", "scale"),
    [
        (("10Mbit", "10Mbit"), 10**7, 1),
        (("10Mbit", "10000001bit"), 10**7, 10),
        (("100Mbit", "1Mbit"), 10**6, 10),
        (("1Gbit", "1Gbit"), 10**9, 100),
        (("10Gbit", "1Gbit"), 10**9, 1000),
        (("400Gbit", "400Gbit"), 4 * 10**11, 1000),
    ],
)
def test_time_scale_is_of_the_fastest_link(
    rates: tuple[str, str], slowest: int, scale: int
) -> None:
    made = network({"rate": rates[0], "trunk_rate": rates[1]})
    assert (made.slowest_bps, made.time_scale) == (slowest, scale)


def test_skeleton_is_the_same_whatever_shapes_the_links() -> None:
    shaped: dict[str, Any] = {
        "rate": "1Gbit",
        "buffer": "200kB",
        "delay": "1us",
        "orphan": False,
        "xoff": "20kB",
        "xon": "10kB",
        "pfc": True,
        "tolerance": "100ppm",
        "host_time": "1us",
        "host_jitter": "0:0us,100:1us",
        "trunk_rate": "10Gbit",
    }
    assert network(shaped).drawn(1).skeleton() == network().skeleton()
    assert network(vlan=3).skeleton() != network().skeleton()


@pytest.mark.parametrize(
    ("made", "links", "hosts"),
    [
        (network(), "10 Mb/s links", ""),
        (network({"trunk_rate": "1Gbit"}), "10 Mb/s (1 Gb/s between switches) links", ""),
        (network({"tolerance": "2ppm"}), "10 Mb/s links (up to 2 ppm more)", ""),
        (network({"tolerance": "2ppm"}, **fabric(2)), "10 Mb/s links", ""),
        (network({"host_time": "1us"}), "10 Mb/s links", "hosts take 1 us in and out"),
        (
            network({"host_jitter_of": {"h2": "0:0ns,100:1us"}}),
            "10 Mb/s links",
            "hosts take 0 ns to 1 us (median 500 ns) in at h2",
        ),
        (
            network({"host_jitter": "0:0ns,100:1us"}),
            "10 Mb/s links",
            "hosts take 0 ns to 1 us (median 500 ns) in",
        ),
    ],
)
def test_links_and_hosts_in_words(made: Network, links: str, hosts: str) -> None:
    assert (made.told_links, made.told_hosts) == (links, hosts)
