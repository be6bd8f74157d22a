"""The commands a plan stands for, and the comparison of the network built with the network planned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from qjump_mn.network import asbuilt, commands, script

from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.model.resolve import plan
from qjump_mn.model.topology import SWITCHES


def fig3a(*settings: str) -> Plan:
    return plan("fig3a", "course", list(settings))


def arm_of(resolved: Plan, name: str) -> ArmPlan:
    return next(arm for arm in resolved.arms if arm.name == name)


def test_the_script_names_every_host_switch_and_program() -> None:
    resolved = fig3a()
    text = "\n".join(script.lines(resolved))
    for host in resolved.network.hosts:
        assert f"ip netns add {host}\n" in text
        assert f"ip netns exec {host} tc qdisc add dev {host}-eth0 root handle 5: wire rate 10000000bit limit 152200" in text
    for arm in resolved.arms:
        assert f"# arm {arm.name}:" in text
    assert "qjau -p 6 -- ping -D -n -i 0.01 -c 3000 -s 56 -W 5 10.0.0.10" in text
    assert "parent 5:1 handle 6: qjump epoch 28800000ns level 7 1550 level 6 1550 level 5 unlimited" in text
    assert "egress-qos-map 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7" in text


@pytest.mark.parametrize("model", ["wire", "htb", "tbf"])
def test_the_qdisc_is_below_class_5_1_in_every_link_model(model: str) -> None:
    text = "\n".join(script.lines(fig3a(f"link.model={model}")))
    assert "parent 5:1 handle 6: qjump" in text
    assert f"root handle 5:{'0' if model == 'htb' else ''} {model}" in text


def test_the_rules_of_2015_name_what_they_let_pass_and_no_more() -> None:
    arm = arm_of(plan("fig3a", "htb2015", []), "qjump")
    assert arm.qjump is not None
    assert commands.qjump(arm.qjump, "h8-eth0") == (
        "qdisc add dev h8-eth0 parent 5:1 handle 6: qjump epoch 28800000ns level 7 1550 level 6 1550 level 5 0 level 4 46500 "
        "level 3 232500 level 2 0 level 1 0 level 0 465000 mode 2015"
    )


def test_htb_switches_have_eight_queues_chosen_by_pcp() -> None:
    calls = commands.htb_qos({"s1-eth1": 10**7})
    assert sum(argument.startswith("--id=@q-s1-eth1-") for argument in calls) == 8
    assert "priority=100,vlan_tci=0xd000/0xf000,actions=set_queue:6,NORMAL" in commands.htb_flows()


def test_tbf_serves_pcp_7_first() -> None:
    shaping = commands.tbf(fig3a().network, "s1-eth1", on_switch=True)
    assert any("flower vlan_prio 7 classid 10:1" in line for line in shaping.tc)
    assert shaping.ip[0] == "link add name i-s1-eth1 type ifb"


def built(folder: Path, resolved: Plan, arm: ArmPlan) -> Path:
    """What ip and tc would print of the network just as planned."""
    network = resolved.network
    ports = [device for link in network.ports() for node, device in link if node in network.switches]
    for node in (SWITCHES, *network.hosts):
        devices = ports if node == SWITCHES else [f"{node}-eth0"]
        links: list[dict[str, Any]] = [
            {"ifname": device, "mtu": network.mtu_bytes, "num_tx_queues": 8, "num_rx_queues": 8, "flags": ["UP"], "addr_info": []} for device in devices
        ]
        options = {"rate_bps": network.link.rate_bps, "limit": network.link.buffer_bytes, "delay_ns": 0, "classify": "pcp", "orphan": True}
        qdiscs: list[dict[str, Any]] = [{"kind": "wire", "handle": "5:", "root": True, "dev": device, "options": dict(options)} for device in devices]
        if node != SWITCHES:
            maps = [{"from": level, "to": level} for level in range(1, 8)]
            data = {"protocol": "802.1Q", "id": network.vlan, "egress_qos": maps, "ingress_qos": maps}
            links.append({"ifname": f"{node}-eth0.{network.vlan}", "linkinfo": {"info_kind": "vlan", "info_data": data}})
            if arm.qjump is not None:
                limiter = {
                    "epoch_ns": arm.qjump.epoch_ns,
                    "budgets": list(arm.qjump.budget_bytes),
                    "mode": arm.qjump.mode,
                    "epochs": arm.qjump.epochs,
                    "packets": [arm.qjump.limit_packets] * 8,
                }
                qdiscs.append({"kind": "qjump", "handle": "6:", "parent": "5:1", "dev": f"{node}-eth0", "options": limiter})
        (folder / f"ip-{node}.json").write_text(json.dumps(links))
        (folder / f"tc-{node}.json").write_text(json.dumps(qdiscs))
    return folder


def test_the_network_as_planned_has_no_differences(tmp_path: Path) -> None:
    resolved = fig3a()
    arm = arm_of(resolved, "qjump")
    assert asbuilt.differences(built(tmp_path, resolved, arm), resolved.network, arm) == []


@pytest.mark.parametrize(
    ("file", "change", "sentence"),
    [
        ("ip-h3.json", lambda links: links[0].update(mtu=1496), "h3-eth0: its MTU is 1496, not 1500"),
        ("ip-h3.json", lambda links: links[0].update(num_tx_queues=1), "h3-eth0: it has 1 tx queues, not 8"),
        ("ip-h3.json", lambda links: links[0].update(flags=[]), "h3-eth0: it is down"),
        ("ip-h3.json", lambda links: links[0]["addr_info"].append({"family": "inet6"}), "h3-eth0: IPv6 is on"),
        ("ip-h3.json", lambda links: links.pop(), "h3: there is no device for VLAN 2"),
        ("ip-h3.json", lambda links: links[1]["linkinfo"]["info_data"]["egress_qos"].pop(), "priority to PCP"),
        ("ip-switches.json", lambda links: links.pop(), "there is no interface s3-eth4"),
        ("tc-switches.json", lambda qdiscs: qdiscs[0]["options"].update(rate_bps=1), "its wire's rate_bps is 1, not 10000000"),
        ("tc-switches.json", lambda qdiscs: qdiscs[0].update(kind="noqueue"), "its root qdisc is noqueue, not wire"),
        ("tc-h3.json", lambda qdiscs: qdiscs.pop(), "h3-eth0: it has 0 qjump qdiscs, not one"),
        ("tc-h3.json", lambda qdiscs: qdiscs[1]["options"].update(epoch_ns=5), "its epoch_ns is 5, not 28800000"),
        ("tc-h3.json", lambda qdiscs: qdiscs[1]["options"]["budgets"].__setitem__(6, 99), "level 6 has a budget of 99, not 1550"),
        ("tc-h3.json", lambda qdiscs: qdiscs[1]["options"]["packets"].__setitem__(6, 9), "its packets is [1000, 1000, 1000, 1000, 1000, 1000, 9, 1000]"),
        ("tc-h3.json", lambda qdiscs: qdiscs[1].update(parent="1:1"), "qjump's parent is 1:1, not 5:1"),
    ],
)
def test_each_difference_is_found_and_named(tmp_path: Path, file: str, change: Any, sentence: str) -> None:
    resolved = fig3a()
    arm = arm_of(resolved, "qjump")
    folder = built(tmp_path, resolved, arm)
    content = json.loads((folder / file).read_text())
    change(content)
    (folder / file).write_text(json.dumps(content))
    assert any(sentence in difference for difference in asbuilt.differences(folder, resolved.network, arm))


def test_a_limiter_in_an_arm_without_one_is_found(tmp_path: Path) -> None:
    resolved = fig3a()
    folder = built(tmp_path, resolved, arm_of(resolved, "qjump"))
    assert any("the arm has none" in text for text in asbuilt.differences(folder, resolved.network, arm_of(resolved, "idle")))


def test_an_offload_that_is_on_is_found(tmp_path: Path) -> None:
    resolved = fig3a()
    arm = arm_of(resolved, "idle")
    folder = built(tmp_path, resolved, arm)
    off = "Device h3-eth0:\nFeatures for h3-eth0:\ntcp-segmentation-offload: off\ngeneric-segmentation-offload: off\ngeneric-receive-offload: off\n"
    (folder / "ethtool-h3.txt").write_text(off)
    assert asbuilt.differences(folder, resolved.network, arm) == []
    (folder / "ethtool-h3.txt").write_text(off.replace("segmentation-offload: off", "segmentation-offload: on", 1))
    assert asbuilt.differences(folder, resolved.network, arm) == ["h3-eth0: tcp-segmentation-offload is on"]
