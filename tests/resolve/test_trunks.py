"""Links between switches that differ from host links, in plan, steps and report."""

from __future__ import annotations

import pytest

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Plan
from qjump_mn.report import parameters
from qjump_mn.resolve import plan
from qjump_mn.steps import script
from qjump_mn.steps.apply_arm import port_queues

FAST = ("link.trunk_rate=40Mbit", "link.trunk_buffer=60880B", "link.trunk_delay=1us")


def fig3a(*settings: str, schemes: tuple[str, ...] = ()) -> Plan:
    return plan("fig3a", "smoke", list(settings), schemes=schemes)


def test_trunks_are_like_host_links_by_default() -> None:
    network = fig3a("link.rate=20Mbit").shown.network
    assert network.trunk == network.link
    assert set(network.by_device().values()) == {network.link}


def test_every_link_has_its_own_rate_and_delay() -> None:
    network = fig3a(*FAST).shown.network
    assert network.speeds("h8", "h10") == (
        (10**7, 0),
        (4 * 10**7, 1000),
        (4 * 10**7, 1000),
        (10**7, 0),
    )
    assert network.speeds("h7", "h9") == ((10**7, 0), (10**7, 0))
    assert network.slowest_bps == 10**7
    found = {device: link.rate_bps for device, link in network.by_device().items()}
    assert {device for device, rate in found.items() if rate == 4 * 10**7} == {
        "s0-eth1",
        "s0-eth2",
        "s0-eth3",
        "s1-eth1",
        "s2-eth1",
        "s3-eth1",
    }
    assert network.skeleton() == fig3a().shown.network.skeleton()


def test_epoch_follows_the_slowest_link() -> None:
    assert fig3a("link.trunk_rate=5Mbit").judged.constants["frame_ms"] == pytest.approx(
        2 * fig3a().judged.constants["frame_ms"]
    )
    epochs = {
        arm.qjump.epoch_ns
        for arm in plan("fig5", "smoke", ["link.trunk_rate=5Mbit"]).arms
        if arm.qjump
    }
    assert epochs == {2 * arm.qjump.epoch_ns for arm in plan("fig5", "smoke", []).arms if arm.qjump}


def test_an_idle_round_trip_is_the_sum_of_its_links() -> None:
    found = fig3a(*FAST).judged.constants["ping_analytic_ms"]
    assert found == pytest.approx(2 * (2 * 0.0912 + 2 * (0.0228 + 0.001)))
    rows = {name: value for name, _, value in parameters.equations(fig3a(*FAST), simulated=False)}
    assert rows["round trip of the idle network"] == f"{found:g} ms"


def test_fan_in_bound_queues_at_the_slowest_link() -> None:
    alike = theory.fan_in_bound_ns(10, 6, 280, 1522, [(10**7, 0)] * 3)
    fast = theory.fan_in_bound_ns(10, 6, 280, 1522, [(10**7, 0), (10**8, 0), (10**7, 0)])
    assert alike - fast == theory.occupancy_ns(1522, 10**7) - theory.occupancy_ns(
        1522, 10**8
    ) + theory.delivery_ns(280, 10**7) - theory.delivery_ns(280, 10**8)
    slow = theory.fan_in_bound_ns(10, 6, 280, 1522, [(10**7, 0), (10**6, 0), (10**7, 0)])
    assert slow > 60 * theory.occupancy_ns(280, 10**6)


@pytest.mark.parametrize("model", ["wire", "tbf", "htb"])
def test_each_end_of_a_link_has_its_rate(model: str) -> None:
    printed = "\n".join(script.lines(fig3a(*FAST, f"link.model={model}")))
    lines = printed.partition("\n# arm idle ")[2].partition("\n# undo\n")[0].splitlines()
    slow, fast = (
        ("max-rate=10000000", "max-rate=40000000")
        if model == "htb"
        else ("rate 10000000bit", "rate 40000000bit")
    )
    text = [word for line in lines for word in line.split(" -- ")]
    if model == "htb":
        # A port's own line and those of its eight queues; 12 ports are to hosts, 6 to other
        # switches.
        assert [sum(rate in word for word in text) for rate in (slow, fast)] == [12 * 9, 6 * 9]
        return
    roots = [word for word in text if f" {model} rate" in word and "root" in word]
    assert [sum(rate in word for word in roots) for rate in (slow, fast)] == [24, 6]


def test_schemes_queues_follow_their_ports_link() -> None:
    resolved = fig3a(*FAST, schemes=("dctcp",))
    arm = next(arm for arm in resolved.arms if arm.scheme.name == "dctcp")
    lines = port_queues(arm.scheme, arm.network)
    assert "limit 60880" in lines["s0-eth1"][0] and "limit 152200" in lines["s1-eth2"][0]
    told = [done for _, _, done in parameters.schemes(resolved, simulated=False)]
    assert any("`port to another switch: tc " in done for done in told)


def test_pause_thresholds_need_room_for_every_link() -> None:
    settings = ("link.xoff=20kB", "link.xon=10kB")
    assert (
        fig3a(*settings, "link.rate=10Mbit", "link.buffer=300kB").shown.network.link.xoff_bytes
        == 20_000
    )
    with pytest.raises(
        UsageError,
        match=r"2 ports of s0 may send 52176B to one whose buffer has 30000B: use at most 8912B",
    ):
        fig3a(*settings, "link.buffer=300kB", "link.trunk_buffer=30kB")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("link.trunk_rate=1bit", "link.trunk_rate = 1bit is out of range: use 100kbit to 400Gbit"),
        (
            "link.trunk_buffer=1000B",
            "link.trunk_buffer = 1000B is less than a full-size frame: use at least 1522B",
        ),
        ("link.trunk_delay=2s", "link.trunk_delay = 2s is out of range: use at most 1s"),
        (
            "schemes.none.link.rate=1bit",
            "experiment 'fig3a': arms.[a-z_]+: link.rate = 1bit is out of range",
        ),
    ],
)
def test_impossible_links_are_refused(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as refused:
        fig3a(setting)
    assert str(refused.value).startswith("experiment 'fig3a': ")
