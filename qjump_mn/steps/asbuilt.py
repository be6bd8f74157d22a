"""The network as it was read back, compared with the plan."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qjump_mn.links import registry
from qjump_mn.links.base import HANDLE, PARENT, QUEUES, Qdisc
from qjump_mn.model.plan import ArmPlan, QJumpPlan
from qjump_mn.model.topology import SWITCHES, Network
from qjump_mn.steps.treatment import placed, port_queues, transport, vlan_lines
from qjump_mn.theory import LEVELS

SEGMENTATION = ("tcp-segmentation-offload", "generic-segmentation-offload")
OFFLOADS = (*SEGMENTATION, "generic-receive-offload")


def differences(folder: Path, arm: ArmPlan) -> list[str]:
    """How what was read back into ``folder`` differs from what was planned for an arm, a sentence each; none
    when they are the same."""
    return [
        sentence
        for node in (SWITCHES, *arm.network.hosts)
        for sentence in _node_differences(folder, arm, node)
    ]


def _node_differences(folder: Path, arm: ArmPlan, node: str) -> list[str]:
    network, on_switch = arm.network, node == SWITCHES
    interfaces = {
        entry["ifname"]: entry
        for entry in json.loads((folder / f"ip-{node}.json").read_text())
        if "ifname" in entry
    }
    qdiscs = [qdisc for qdisc in json.loads((folder / f"tc-{node}.json").read_text()) if "dev" in qdisc]
    sentences: list[str] = []
    for device in sorted(network.switch_ports()) if on_switch else [f"{node}-eth0"]:
        if device not in interfaces:
            sentences.append(f"{node}: there is no interface {device}")
            continue
        of_device = [qdisc for qdisc in qdiscs if qdisc["dev"] == device]
        wrong = _interface_differences(interfaces[device], network) + _qdisc_differences(
            of_device, device, arm, on_switch=on_switch
        )
        if not on_switch:
            wrong += _limiter_differences(of_device, arm, folder / f"edt-{node}.json")
        sentences += [f"{device}: {text}" for text in wrong]
    if not on_switch:
        sentences += [
            f"{node}: {text}"
            for text in _vlan_differences(interfaces.get(network.vlan_device(node)), network)
        ]
        of_vlan = [qdisc for qdisc in qdiscs if qdisc["dev"] == network.vlan_device(node)]
        wrong = _scheme_differences(of_vlan, vlan_lines(arm, node))
        sentences += [f"{network.vlan_device(node)}: {text}" for text in wrong]
        sentences += _transport_differences(folder, arm, node)
    return sentences + _offload_differences(folder, arm, node)


def _qdisc_differences(qdiscs: Sequence[Qdisc], device: str, arm: ArmPlan, *, on_switch: bool) -> list[str]:
    """Those of an interface: its link, its scheme."""
    link = arm.network.by_device()[device]
    model = registry.of(arm.network.model)
    lines = port_queues(arm.scheme, arm.network)[device] if on_switch else placed(arm.scheme.host, device)
    wrong = model.differences(qdiscs, link, on_switch=on_switch) if model.shapes(on_switch=on_switch) else []
    return wrong + _scheme_differences(qdiscs, lines)


def _transport_differences(folder: Path, arm: ArmPlan, host: str) -> list[str]:
    planned = transport(arm)
    read = (folder / f"tcp-{host}.txt").read_text().splitlines() if planned else []
    lines = (f"{key} = {value}" for key, value in planned.items())
    return [f"{host}: its TCP has not {line}" for line in lines if line not in read]


def _interface_differences(interface: Mapping[str, Any], network: Network) -> list[str]:
    wrong = []
    if interface.get("mtu") != network.mtu_bytes:
        wrong.append(f"its MTU is {interface.get('mtu')}, not {network.mtu_bytes}")
    # A kernel for one processor alone says nothing of receive queues (CONFIG_RPS).
    for key, unsaid in (("num_tx_queues", 0), ("num_rx_queues", QUEUES)):
        if interface.get(key, unsaid) < QUEUES:
            wrong.append(f"it has {interface.get(key)} {key[4:6]} queues, not {QUEUES}")
    if "UP" not in interface.get("flags", []):
        wrong.append("it is down")
    if any(address.get("family") == "inet6" for address in interface.get("addr_info", [])):
        wrong.append("IPv6 is on")
    return wrong


def _vlan_differences(interface: Mapping[str, Any] | None, network: Network) -> list[str]:
    if interface is None:
        return [f"there is no device for VLAN {network.vlan}"]
    data = interface.get("linkinfo", {}).get("info_data", {})
    wrong = []
    if data.get("id") != network.vlan:
        wrong.append(f"its VLAN is {data.get('id')}, not {network.vlan}")
    identity = {(level, level) for level in LEVELS if level}
    for key, direction in (("egress_qos", "priority to PCP"), ("ingress_qos", "PCP to priority")):
        mapping = {(entry["from"], entry["to"]) for entry in data.get(key, []) if entry["from"]}
        if mapping != identity:
            wrong.append(f"the map from {direction} is {sorted(mapping)}, not one to one")
    return wrong


def _scheme_differences(qdiscs: Sequence[Qdisc], lines: Sequence[str]) -> list[str]:
    """The qdiscs that a scheme's tc lines add, each by its kind and parent."""
    missing = []
    for line in lines:
        match = re.match(r"qdisc (?:add|replace) dev \S+ (?:parent (\S+)|root)(?: handle \S+)? (\S+)", line)
        if match and not any((qdisc.get("parent"), qdisc.get("kind")) == match.groups() for qdisc in qdiscs):
            place = f"below {match[1]}" if match[1] else "as its root"
            missing.append(f"it has no {match[2]} qdisc {place}")
    return missing


UNLIMITED = 2**32 - 1
"""How qjump2015 tells of a level without a limit."""


PARTS = {"tbf": ("tbf", "token buckets"), "edt": ("fq", "fq qdiscs")}
"""What a limiter of tc's own parts has for each limited level, and how several are called."""


def _limiter_differences(qdiscs: Sequence[Qdisc], arm: ArmPlan, times: Path) -> list[str]:
    """Those of a host's limiter; ``times`` is what qjump-edt tells of itself."""
    limiters = [qdisc for qdisc in qdiscs if qdisc.get("kind") in ("qjump", "qjump2015")]
    if arm.qjump is None:
        return [f"it has a {limiters[0]['kind']} qdisc, and the arm has none"] if limiters else []
    plan = arm.qjump
    if plan.mode in PARTS:
        kind, several = PARTS[plan.mode]
        parts = sum(
            qdisc.get("kind") == kind and qdisc.get("parent", "").startswith(HANDLE) for qdisc in qdiscs
        )
        limited = sum(budget > 0 for budget in plan.budget_bytes)
        wrong = [] if parts == limited else [f"it has {parts} {several}, not {limited}"]
        return wrong + (_rule_differences(json.loads(times.read_text()), plan) if plan.mode == "edt" else [])
    if len(limiters) != 1:
        return [f"it has {len(limiters)} qjump qdiscs, not one"]
    if limiters[0]["kind"] != plan.qdisc:
        return [f"its qdisc is {limiters[0]['kind']}, not {plan.qdisc}"]
    wrong = _rule_differences(limiters[0].get("options", {}), plan)
    if limiters[0].get("parent") != PARENT:
        wrong.append(f"qjump's parent is {limiters[0].get('parent')}, not {PARENT}")
    return wrong


def _rule_differences(options: Mapping[str, Any], plan: QJumpPlan) -> list[str]:
    """Those of what a limiter tells of its rule."""
    budgets = dict(enumerate(options.get("budgets", [])))
    planned: dict[str, object] = {"epoch_ns": plan.epoch_ns}
    if plan.keeps_budgets:
        planned |= {
            "slack_ns": plan.slack_ns,
            "limits": [plan.limit_packets] * len(LEVELS),
            "priomap": list(plan.priomap),
            "overhead": plan.overhead,
            "mpu": plan.mpu,
        }
    none = UNLIMITED if plan.mode == "drop" else 0
    wrong = [
        f"its {key} is {options.get(key)}, not {value}"
        for key, value in planned.items()
        if options.get(key) != value
    ]
    return wrong + [
        f"level {level} has a budget of {budgets.get(level)}, not {plan.budget_bytes[level] or none}"
        for level in LEVELS
        if budgets.get(level) != (plan.budget_bytes[level] or none)
    ]


def _offload_differences(folder: Path, arm: ArmPlan, node: str) -> list[str]:
    """Which of a node's interfaces have not the offloads that they should have, and no others."""
    if not (path := folder / f"ethtool-{node}.txt").exists():
        return []
    network, on = arm.network, SEGMENTATION if arm.tcp.segmentation_offload and node != SWITCHES else ()
    devices = network.switch_ports() if node == SWITCHES else [f"{node}-eth0", network.vlan_device(node)]
    told = r"^Features for (\S+):\n(.*?)(?=^Features for |\Z)"
    features = dict(re.findall(told, path.read_text(), re.DOTALL | re.MULTILINE))
    wrong = []
    for device in devices:
        if device not in features:
            wrong.append(f"{device}: ethtool does not tell of it")
            continue
        for name in OFFLOADS:
            planned, other = ("on", "off") if name in on else ("off", "on")
            if not re.search(rf"^\s*{name}: {planned}", features[device], re.MULTILINE):
                wrong.append(f"{device}: {name} is {other}")
    return wrong
