"""mininet-qos in the guest, with Debian's Mininet and Open vSwitch: its networks are what they are
said to be, urgent packets pass the queues, mn takes its file, and nothing is left."""

from __future__ import annotations

import re
import statistics
from typing import Any

import pytest

from bench import marks
from bench import mininet_qos as bench
from qjump_mn import theory
from qjump_mn.guest import Image

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

LINKS = ("WireLink", "TbfLink", "TCLink", "TCLink, delay='1ms'", "TCLink, qos='ovs'")
WIRES, DELAYED, OVS = LINKS[:2], LINKS[3], LINKS[4]
HTB = ("TCLink", OVS)
DELAY_MS = 8.0
"""Of a round trip over four links of 1 ms each way."""

BITS_MS = theory.ping_rtt_ns(56, [(10**7, 0)] * 4) / 1e6
"""How long an idle ping's own bits take."""

FRAME_MS = (theory.frame_bytes(1500) + theory.AROUND_FRAME_BYTES) * 8 / 1e4
PROCESSOR_MS = 0.15
"""What the guest's processor adds to a round trip, at most: 0.05 ms with a wire, 0.09 with tbf and
ifb."""

BUSY_PORTS = 3
DEVICES = ("h10-eth0", "s0-eth3", "s3-eth2")
NOTHING: dict[str, Any] = {}


@pytest.fixture(scope="module")
def networks(image: Image, tmp_path_factory: pytest.TempPathFactory) -> bench.Results:
    return bench.measured("figure3a", image, tmp_path_factory.mktemp("networks"))


@pytest.fixture(scope="module")
def by_hand(image: Image, tmp_path_factory: pytest.TempPathFactory) -> bench.Results:
    return bench.measured("by_hand", image, tmp_path_factory.mktemp("by-hand"))


def root(built: Any, device: str) -> dict[str, Any]:
    """The root qdisc that a device was read back with."""
    (found,) = (qdisc for qdisc in built[device]["qdiscs"] if qdisc.get("root"))
    qdisc: dict[str, Any] = found
    return qdisc


def inet(device: Any) -> list[tuple[str, int]]:
    """The IPv4 addresses of a device, with the lengths of their prefixes."""
    info = device["addr_info"]
    return [(one["local"], one["prefixlen"]) for one in info if one["family"] == "inet"]


@pytest.mark.parametrize("name", LINKS)
def test_a_network_leaves_nothing(networks: bench.Results, name: str) -> None:
    assert networks[name]["left"] == NOTHING


@pytest.mark.parametrize("name", LINKS)
def test_every_host_is_on_its_vlan_with_its_maps(networks: bench.Results, name: str) -> None:
    addresses = networks[name]["built"]["addresses"]
    vlan = addresses["h10-eth0.2"]
    info = vlan["linkinfo"]["info_data"]
    assert (vlan["link"], info["id"]) == ("h10-eth0", 2)
    same = [{"from": level, "to": level} for level in range(1, 8)]
    assert info["egress_qos"] == info["ingress_qos"] == same
    assert [address for address, _ in inet(vlan)] == ["10.0.0.10"]
    assert inet(addresses["h10-eth0"]) == []


@pytest.mark.parametrize("name", LINKS)
def test_what_is_queued_is_frames_in_eight_queues(networks: bench.Results, name: str) -> None:
    for device in DEVICES:
        built = networks[name]["built"][device]
        for what in ("tcp-segmentation", "generic-segmentation", "generic-receive"):
            assert re.search(rf"^{what}-offload: off", built["offloads"], re.M), (device, built)
        # A kernel for one processor does not tell how many receive.
        assert name not in WIRES or built["link"]["num_tx_queues"] == 8


def test_a_wire_is_read_back_as_asked(networks: bench.Results) -> None:
    asked = {"rate_bps": 10**7, "limit": 152_200, "classify": "pcp", "delay_ns": 0, "orphan": True}
    for device in DEVICES:
        wire = root(networks["WireLink"]["built"], device)
        assert wire["kind"] == "wire" and asked.items() <= wire["options"].items()
    shared = root(networks["WireLink"]["built"], "s0-eth3")
    levels = {level["level"]: level for level in shared["levels"]}
    # 100 urgent pings of each of two measurements, two first ones; iperf3's frames are of level 0.
    assert levels[6]["packets"] == 202
    assert levels[0]["packets"] > 1000
    assert levels[0]["drops"] > 0


@pytest.mark.parametrize(
    ("name", "kind", "parent"),
    [("TbfLink", "tbf", "20:{}"), ("TCLink", "htb", "20:{}"), (DELAYED, "htb", "20:{}"), (OVS, "htb", "1:{}")],
)  # fmt: skip
def test_a_port_of_a_switch_has_a_finite_queue_for_each_level(
    networks: bench.Results, name: str, kind: str, parent: str
) -> None:
    built = networks[name]["built"]
    assert root(built, "s0-eth3")["kind"] == kind
    below = [qdisc for qdisc in built["s0-eth3"]["qdiscs"] if qdisc["kind"] == "bfifo"]
    queues = {qdisc.get("parent"): qdisc for qdisc in below}
    assert {queue["options"]["limit"] for queue in queues.values()} == {152_200}
    # prio's first band is the most urgent; Open vSwitch's class 1:1 is of queue 0.
    band = {level: level + 1 if name == OVS else 8 - level for level in range(8)}
    packets = {level: queues[parent.format(band[level])]["packets"] for level in range(8)}
    assert len(queues) == 8
    assert (packets[6], [packets[level] for level in (1, 2, 3, 4, 5)]) == (202, [0] * 5)
    assert packets[0] > 1000
    assert queues[parent.format(band[0])]["drops"] > 0


def test_open_vswitch_has_queues_and_flows_only_where_it_serves(networks: bench.Results) -> None:
    for name in LINKS:
        built = networks[name]["built"]
        # s0 has three ports; s1, s2 and s3 have seven, four and four.
        assert built["qos"].split() == (["linux-htb"] * 18 if name == OVS else [])
        assert built["flows"].count("set_queue:") == (8 if name == OVS else 0)


@pytest.mark.parametrize("name", WIRES)
def test_an_idle_round_trip_takes_its_bits(networks: bench.Results, name: str) -> None:
    idle = networks[name]["idle"]
    assert len(idle) == 100
    assert min(idle) >= BITS_MS - 0.001  # ping prints three digits
    assert statistics.median(idle) <= BITS_MS + PROCESSOR_MS


@pytest.mark.parametrize("name", HTB)
def test_mininets_own_links_have_no_wire(networks: bench.Results, name: str) -> None:
    """What the README says of them."""
    assert statistics.median(networks[name]["idle"]) < BITS_MS / 10
    assert f"takes {BITS_MS:.2f} ms at least" in bench.README.read_text()


@pytest.mark.parametrize("name", LINKS)
def test_urgent_packets_pass_the_queue(networks: bench.Results, name: str) -> None:
    shows = networks[name]
    assert len(shows["urgent"]) == 100, "an urgent ping was lost"
    idle = BITS_MS + PROCESSOR_MS + (DELAY_MS if name == DELAYED else 0)
    assert max(shows["urgent"]) <= idle + BUSY_PORTS * FRAME_MS
    # Were the link not full, this test would say nothing.
    assert statistics.median(shows["other"]) > 30
    for kind in ("urgent", "other"):
        assert 8 < sum(shows[f"beside {kind}"]) < 13, "of one link of 10 Mb/s; sent, not received"


@pytest.mark.parametrize("name", WIRES)
def test_an_urgent_packet_waits_for_the_frame_in_transmission(
    networks: bench.Results, name: str
) -> None:
    shows = networks[name]
    assert statistics.median(shows["urgent"]) > statistics.median(shows["idle"]) + FRAME_MS / 3


def test_wires_release_senders_and_htb_holds_them_back(networks: bench.Results) -> None:
    for name in (*WIRES, DELAYED):
        assert networks[name]["offered"] == pytest.approx([9.6] * 3, rel=0.01)
    for name in HTB:
        # From two racks: h7 and h9 share the queue of the first switch, h1 has its own.
        assert sum(networks[name]["offered"]) < 0.85 * 3 * 9.6


def numbers(row: str) -> list[float]:
    """The numbers of a row, without its name."""
    return [float(number) for number in re.findall(r"\d+\.\d+", row.split("|", 2)[2])]


def test_the_readmes_table_is_what_is_measured(networks: bench.Results) -> None:
    """To a millisecond or a third, for TCP goes another way with every byte of the image and of the
    package; `python bench/mininet_qos.py --write` renews it."""
    told = marks.read(bench.README, bench.MARKS).splitlines()
    measured = bench.table(networks).splitlines()
    assert told[:2] == measured[:2]
    for old, new in zip(told[2:], measured[2:], strict=True):
        assert old.split("|")[1] == new.split("|")[1]
        assert numbers(old) == pytest.approx(numbers(new), rel=0.33, abs=1)


@pytest.mark.parametrize("link", ["qjwire", "qjtbf", "qjtc", "ovs"])
def test_mn_takes_our_hosts_links_and_switches(by_hand: bench.Results, link: str) -> None:
    done = by_hand["mn"][link]
    assert done["code"] == 0, done["said"]
    assert "*** Results: 0% dropped" in done["said"]
    assert "Error" not in done["said"], done["said"]
    assert done["left"] == NOTHING


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        ("no rate", "QosError: s1-eth1 has no rate, so that nothing would queue there: give its link bw="),
        ("too fast", "QosError: s1-eth1: bw=2000: Mininet's TC links have no rate above 1000 Mbit/s"),
        ("no bytes", "QosError: WireLink: buffer=10: give the bytes of each level, at least one frame's 1522"),
        ("no controller", "Exception: Could not find a default controller for switch qjprio"),
    ],
)  # fmt: skip
def test_mn_ends_with_a_sentence_and_leaves_nothing(
    by_hand: bench.Results, mistake: str, sentence: str
) -> None:
    done = by_hand["mn"][mistake]
    assert sentence in done["said"]
    assert done["left"] == NOTHING


@pytest.mark.parametrize(("link", "stays"), [("qjtbf", "interfaces"), ("ovs", "shapers")])
def test_what_a_killed_mn_leaves_is_cleaned_up(
    by_hand: bench.Results, link: str, stays: str
) -> None:
    done = by_hand["killed"][link]
    assert stays in done["stayed"], "nothing was there to clean up"
    assert (done["code"], done["left"]) == (0, NOTHING)


@pytest.mark.parametrize(
    ("link", "qdiscs"),
    [("WireLink", {"wire": "root"}), *((link, {kind: "root", "prio": "5:1"}) for link, kind in (("TbfLink", "tbf"), ("TCLink", "htb")))],
)  # fmt: skip
def test_hosts_come_and_go_while_the_network_runs(
    by_hand: bench.Results, link: str, qdiscs: dict[str, str]
) -> None:
    shows = by_hand["came and went"][link]
    assert shows["lost"] == [0.0, 0.0]
    assert {kind: shows["qdiscs"]["new port"].get(kind) for kind in qdiscs} == qdiscs
    assert shows["mac"] == "00:00:00:00:00:03"
    assert shows["left"] == NOTHING


def test_a_qdisc_of_ones_own_stands_below_mininets_shaper(by_hand: bench.Results) -> None:
    shows = by_hand["child"]
    qdiscs = shows["qdiscs"]
    assert qdiscs["made"] == {"htb": "root", "netem": "5:1", "prio": "10:1"}
    assert qdiscs["switch"] == {"htb": "root", "netem": "5:1", "prio": "10:1", "bfifo": "20:1"}
    assert qdiscs["changed"] == {"htb": "root", "qjump": "5:1"}
    assert qdiscs["alone"] == {"fq_codel": "root"}
    assert (shows["lost"], shows["left"]) == (0.0, NOTHING)


def test_a_host_has_the_maps_and_the_queues_that_are_asked_for(by_hand: bench.Results) -> None:
    shows = by_hand["maps"]
    devices = shows["devices"]
    info = devices["h1-eth1.7"]["linkinfo"]["info_data"]
    assert info["egress_qos"] == [{"from": 0, "to": 1}, {"from": 6, "to": 7}]
    assert info["ingress_qos"] == [{"from": 7, "to": 6}]
    assert devices["h1-eth1"]["num_tx_queues"] == 4
    addresses = {name: inet(device) for name, device in devices.items() if name != "lo"}
    bare: dict[str, Any] = {"h1-eth0": [], "h1-eth1": []}
    assert addresses == {**bare, "h1-eth0.7": [("10.0.0.1", 8)], "h1-eth1.7": [("10.1.0.1", 24)]}
    assert (shows["lost"], shows["left"]) == (0.0, NOTHING)


def test_mistakes_are_a_sentence_before_anything_is_made(by_hand: bench.Results) -> None:
    shows = by_hand["mistakes"]
    assert shows["said"] == {
        "no rate": "WireLink: bw=None: give the rate in Mbit/s, as in bw=10",
        "no number": "WireLink: bw=nan: give the rate in Mbit/s, as in bw=10",
        "endless": "TbfLink: bw=inf: give the rate in Mbit/s, as in bw=10",
        "below a bit": "WireLink: bw=1e-07: give the rate in Mbit/s, as in bw=10",
        "a truth": "WireLink: bw=True: give the rate in Mbit/s, as in bw=10",
        "delay": "TbfLink: delay=5: give a number and its unit, ns, us, ms or s, as in delay='1ms'",
        "one end": "WireLink: buffer=100: give the bytes of each level, at least one frame's 1522",
        "loss": "TbfLink has no loss: use ChildLink or Mininet's TCLink, without levels",
        "more than all": "WireLink: loss=101: give a percentage of the frames, as in loss=0.5",
        "jitter": "WireLink: jitter=5: give a number and its unit, ns, us, ms or s, as in "
        "jitter='1ms'",
        "queues": "queues=0: a veth has from 1 to 4096",
        "vlan": "vlan=4095: a VLAN's number is from 1 to 4094",
        "true vlan": "vlan=True: a VLAN's number is from 1 to 4094",
        "egress": "egress={6: 8}: priorities and levels are from 0 to 7, as in {0: 0, 6: 7}",
        "name": "calculator-eth0.2 is longer than the 15 characters of an interface's name: give the host a shorter name, or its VLAN a shorter number",
        "qos": "qos='wire': a PrioritySwitch has 'tc' or 'ovs'",
    }  # fmt: skip
    assert shows["left"] == NOTHING


def test_a_machine_without_the_plugin_says_what_else_there_is(by_hand: bench.Results) -> None:
    shows = by_hand["without wire"]
    assert shows["said"].startswith("tc failed on h1: "), shows["said"]
    assert shows["said"].endswith("TbfLink needs neither)"), shows["said"]
    assert shows["left"] == NOTHING
