"""Compare the network that was read back with the network that was planned."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qjump_mn.links import commands, registry
from qjump_mn.links.base import HANDLE, PARENT, QUEUES, Qdisc
from qjump_mn.model.plan import ArmPlan, QJumpPlan
from qjump_mn.model.topology import SWITCHES, Network
from qjump_mn.steps.apply_arm import for_device, port_queues, transport, vlan_lines
from qjump_mn.theory import LEVELS

SEGMENTATION = ("tcp-segmentation-offload", "generic-segmentation-offload")
OFFLOADS = (*SEGMENTATION, "generic-receive-offload")


def differences(folder: Path, arm: ArmPlan) -> list[str]:
    """Return a sentence for each difference between the files in ``folder`` and an arm's plan."""
    return [
        sentence
        for node in (SWITCHES, *arm.network.hosts)
        for sentence in _node_differences(folder, arm, node)
    ]


def _node_differences(folder: Path, arm: ArmPlan, node: str) -> list[str]:
    on_switch = node == SWITCHES
    interfaces = {
        entry["ifname"]: entry
        for entry in json.loads((folder / f"ip-{node}.json").read_text())
        if "ifname" in entry
    }
    qdiscs: dict[str, list[Qdisc]] = defaultdict(list)
    for qdisc in json.loads((folder / f"tc-{node}.json").read_text()):
        if "dev" in qdisc:
            qdiscs[qdisc["dev"]].append(qdisc)
    sentences: list[str] = []
    for device in sorted(arm.network.switch_ports()) if on_switch else [f"{node}-eth0"]:
        if device not in interfaces:
            sentences.append(f"{node}: there is no interface {device}")
            continue
        differing = _interface_differences(interfaces[device], arm.network)
        differing += _qdisc_differences(qdiscs[device], device, arm, on_switch=on_switch)
        if arm.network.impaired:
            differing += _received_differences(qdiscs, device, arm.network)
        if not on_switch:
            differing += _limiter_differences(qdiscs[device], arm, folder / f"edt-{node}.json")
        sentences += [f"{device}: {text}" for text in differing]
    if not on_switch:
        vlan_device = arm.network.vlan_device(node)
        differing = _vlan_differences(interfaces.get(vlan_device), arm.network)
        sentences += [f"{node}: {text}" for text in differing]
        differing = _scheme_differences(qdiscs[vlan_device], vlan_lines(arm, node))
        sentences += [f"{vlan_device}: {text}" for text in differing]
        sentences += _transport_differences(folder, arm, node)
    return sentences + _offload_differences(folder, arm, node)


def _qdisc_differences(
    qdiscs: Sequence[Qdisc], device: str, arm: ArmPlan, *, on_switch: bool
) -> list[str]:
    """Compare an interface's qdiscs with its link and its scheme."""
    link = arm.network.by_device()[device]
    model = registry.of(arm.network.model)
    host_lines = for_device(arm.scheme.host, device)
    lines = port_queues(arm.scheme, arm.network)[device] if on_switch else host_lines
    differing = []
    if model.shapes(on_switch=on_switch):
        differing = model.differences(qdiscs, link, on_switch=on_switch)
    return differing + _scheme_differences(qdiscs, lines)


def _received_differences(
    qdiscs: Mapping[str, Sequence[Qdisc]], device: str, network: Network
) -> list[str]:
    """Compare what loses and reorders the frames that an interface receives with its link."""
    return registry.of(network.model).received_differences(
        qdiscs.get(commands.ifb(device), []), network.by_device()[device]
    )


def _transport_differences(folder: Path, arm: ArmPlan, host: str) -> list[str]:
    planned = transport(arm)
    settings = (folder / f"tcp-{host}.txt").read_text().splitlines() if planned else []
    lines = (f"{key} = {value}" for key, value in planned.items())
    return [f"{host}: its TCP does not have {line}" for line in lines if line not in settings]


def _interface_differences(interface: Mapping[str, Any], network: Network) -> list[str]:
    differing = []
    if interface.get("mtu") != network.mtu_bytes:
        differing.append(f"its MTU is {interface.get('mtu')}, not {network.mtu_bytes}")
    # A kernel built for one processor does not report receive queues (CONFIG_RPS).
    for key, default in (("num_tx_queues", 0), ("num_rx_queues", QUEUES)):
        if interface.get(key, default) < QUEUES:
            differing.append(f"it has {interface.get(key)} {key[4:6]} queues, not {QUEUES}")
    if "UP" not in interface.get("flags", []):
        differing.append("it is down")
    if any(address.get("family") == "inet6" for address in interface.get("addr_info", [])):
        differing.append("IPv6 is on")
    return differing


def _vlan_differences(interface: Mapping[str, Any] | None, network: Network) -> list[str]:
    if interface is None:
        return [f"there is no device for VLAN {network.vlan}"]
    data = interface.get("linkinfo", {}).get("info_data", {})
    differing = []
    if data.get("id") != network.vlan:
        differing.append(f"its VLAN is {data.get('id')}, not {network.vlan}")
    identity = {(level, level) for level in LEVELS if level}
    for key, direction in (("egress_qos", "priority to PCP"), ("ingress_qos", "PCP to priority")):
        mapping = {(entry["from"], entry["to"]) for entry in data.get(key, []) if entry["from"]}
        if mapping != identity:
            differing.append(f"the map from {direction} is {sorted(mapping)}, not one to one")
    return differing


def _scheme_differences(qdiscs: Sequence[Qdisc], lines: Sequence[str]) -> list[str]:
    """Report the qdiscs of a scheme's tc lines, by kind and parent, that are missing."""
    missing = []
    for line in lines:
        match = re.match(
            r"qdisc (?:add|replace) dev \S+ (?:parent (\S+)|root)(?: handle \S+)? (\S+)", line
        )
        if match is None:
            continue
        if all((qdisc.get("parent"), qdisc.get("kind")) != match.groups() for qdisc in qdiscs):
            location = f"below {match[1]}" if match[1] else "as its root"
            missing.append(f"it has no {match[2]} qdisc {location}")
    return missing


UNLIMITED = 2**32 - 1
"""The budget that qjump2015 reports for a level without a limit."""


PARTS = {"tbf": ("tbf", "token buckets"), "edt": ("fq", "fq qdiscs")}
"""For a limiter made of stock qdiscs: the kind that each limited level has, and its plural."""


def _limiter_differences(qdiscs: Sequence[Qdisc], arm: ArmPlan, times: Path) -> list[str]:
    """Compare a host's limiter; ``times`` is the file that ``qjump-edt show`` printed."""
    limiters = [qdisc for qdisc in qdiscs if qdisc.get("kind") in ("qjump", "qjump2015")]
    if arm.qjump is None:
        if not limiters:
            return []
        return [f"it has a {limiters[0]['kind']} qdisc, but the arm has no limiter"]
    plan = arm.qjump
    if plan.mode in PARTS:
        kind, plural = PARTS[plan.mode]
        parts = sum(
            qdisc.get("kind") == kind and qdisc.get("parent", "").startswith(HANDLE)
            for qdisc in qdiscs
        )
        limited = sum(budget > 0 for budget in plan.budget_bytes)
        differing = [] if parts == limited else [f"it has {parts} {plural}, not {limited}"]
        if plan.mode == "edt":
            differing += _rule_differences(json.loads(times.read_text()), plan)
        return differing
    if len(limiters) != 1:
        return [f"it has {len(limiters)} qjump qdiscs, not one"]
    if limiters[0]["kind"] != plan.qdisc:
        return [f"its qdisc is {limiters[0]['kind']}, not {plan.qdisc}"]
    differing = _rule_differences(limiters[0].get("options", {}), plan)
    if limiters[0].get("parent") != PARENT:
        differing.append(f"qjump's parent is {limiters[0].get('parent')}, not {PARENT}")
    return differing


def _rule_differences(options: Mapping[str, Any], plan: QJumpPlan) -> list[str]:
    """Compare the options that a limiter reports with the planned ones."""
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
    unlimited = UNLIMITED if plan.mode == "drop" else 0
    differing = [
        f"its {key} is {options.get(key)}, not {value}"
        for key, value in planned.items()
        if options.get(key) != value
    ]
    for level in LEVELS:
        budget, planned_budget = budgets.get(level), plan.budget_bytes[level] or unlimited
        if budget != planned_budget:
            differing.append(f"level {level} has a budget of {budget}, not {planned_budget}")
    return differing


def _offload_differences(folder: Path, arm: ArmPlan, node: str) -> list[str]:
    """Report the interfaces of a node whose offloads are not exactly the planned ones."""
    if not (path := folder / f"ethtool-{node}.txt").exists():
        return []
    network, on = (
        arm.network,
        SEGMENTATION if arm.tcp.segmentation_offload and node != SWITCHES else (),
    )
    devices = (
        network.switch_ports() if node == SWITCHES else [f"{node}-eth0", network.vlan_device(node)]
    )
    section = r"^Features for (\S+):\n(.*?)(?=^Features for |\Z)"
    features = dict(re.findall(section, path.read_text(), re.DOTALL | re.MULTILINE))
    differing = []
    for device in devices:
        if device not in features:
            differing.append(f"{device}: ethtool does not list its features")
            continue
        for name in OFFLOADS:
            planned, other = ("on", "off") if name in on else ("off", "on")
            if not re.search(rf"^\s*{name}: {planned}", features[device], re.MULTILINE):
                differing.append(f"{device}: {name} is {other}")
    return differing
