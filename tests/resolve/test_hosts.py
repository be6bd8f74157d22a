"""The time that hosts take: how it is asked for, what becomes of it, and what is refused."""

from __future__ import annotations

import re

import pytest

from qjump_mn.errors import UsageError
from qjump_mn.links import registry
from qjump_mn.model.units import Quantiles
from qjump_mn.resolve import plan

JITTER = "0:0us,50:10us,99.9:1ms,100:2ms"
DRAWN = "0 ns to 2 ms (median 10 us)"


def test_what_hosts_take_is_part_of_their_wires() -> None:
    settings = ["link.host_time=40us", f"link.host_jitter={JITTER}", "link.trunk_delay=1us"]
    network = plan("fig3a", "smoke", settings).arms[0].network
    wire = registry.of("wire")

    def line(device: str, *, on_switch: bool) -> str:
        (whole,) = wire.shape(network.by_device()[device], device, on_switch=on_switch, seed=7).tc
        return whole.partition(" classify pcp ")[2]

    drawn = "jitter 0:0ns,50:10000ns,99.9:1000000ns,100:2000000ns seed 7"
    for (_, port), (node, device) in network.ports():
        if node in network.hosts:
            assert line(device, on_switch=False) == "delay 40000ns orphan"
            assert line(port, on_switch=True) == f"delay 40000ns orphan {drawn}"
        else:
            assert line(port, on_switch=True) == "delay 1000ns orphan"
    least = [ns for _, ns in network.speeds("h1", "h12")]
    assert least == [40_000, *[1_000] * (len(least) - 2), 40_000]
    assert network.skeleton().link.host_ns == 0 and network.skeleton().link.host_jitter == ()
    assert network.told_hosts == f"hosts take 40 us in and out, and {DRAWN} more in"


def test_only_the_hosts_that_are_named_have_jitter() -> None:
    settings = [f"link.host_jitter_of.h3={JITTER}", "link.trunk_delay=1us"]
    network = plan("fig3a", "smoke", settings).arms[0].network
    wire = registry.of("wire")
    drawn = {
        node
        for (_, port), (node, _) in network.ports()
        if "jitter" in wire.shape(network.by_device()[port], port, on_switch=True, seed=1).tc[0]
    }
    assert drawn == {"h3"}
    assert network.told_hosts == f"hosts take {DRAWN} in at h3"
    with pytest.raises(UsageError, match="there is no host 'h99'"):
        plan("fig3a", "smoke", [f"link.host_jitter_of.h99={JITTER}"])


def test_a_host_may_draw_from_something_else() -> None:
    settings = [
        f"link.host_jitter={JITTER}",
        "link.host_jitter_of.h3=0:3us,100:9us",
        "link.host_jitter_of.h4=",
    ]
    network = plan("fig3a", "smoke", settings).arms[0].network
    assert network.by_device()["h3-eth0"].host_jitter == ((0, 3_000), (100, 9_000))
    assert network.by_device()["h4-eth0"].host_jitter == ()
    assert network.by_device()["h5-eth0"].host_jitter == Quantiles.parse(JITTER).points
    others = "h1, h2, h5, h6, h7, h8, h9, h10, h11, h12"
    assert network.told_hosts == (
        f"hosts take {DRAWN} in at {others}, and 3 us to 9 us (median 6 us) in at h3"
    )


def test_the_least_of_the_jitter_is_part_of_the_least_way() -> None:
    network = plan("fig3a", "smoke", ["link.host_jitter=0:3us,100:9us"]).arms[0].network
    assert [ns for _, ns in network.speeds("h8", "h10")][-1] == network.link.delay_ns + 3_000


def test_a_distribution_survives_its_own_text() -> None:
    assert str(Quantiles.parse(str(Quantiles.parse(JITTER)))) == str(Quantiles.parse(JITTER))
    assert Quantiles.parse("") == Quantiles()


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("host_jitter=50:10us",
         "'50:10us' is not a distribution: write per cent and time, from 0 to 100"),
        ("host_jitter=0:1us,50,100:9us", "is not a distribution"),
        ("host_jitter=0:1,100:9us", "'1' is not a duration"),
        ("host_jitter=0:1us,100:2s", "a host time of 2s is out of range: use at most 1s"),
    ],
)  # fmt: skip
def test_hosts_that_cannot_be_are_refused(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        plan("fig3a", "smoke", [f"link.{setting}"])


def test_other_links_have_no_hosts_that_take_time() -> None:
    with pytest.raises(UsageError, match="htb does not delay frames at hosts"):
        plan("fig3a", "smoke", ["link.model=htb", "link.host_time=1us"])
