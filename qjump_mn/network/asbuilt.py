"""The network as it is: read back with tc, ip, ovs and ethtool, kept verbatim, and compared with the plan."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qjump_mn.model.plan import ArmPlan
from qjump_mn.model.topology import SWITCHES, Network
from qjump_mn.network import commands
from qjump_mn.network.commands import LEVELS, QUEUES

if TYPE_CHECKING:  # the testbed needs Mininet, what is compared here does not
    from qjump_mn.network.testbed import Testbed

_OFFLOADS = ("tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload")


def collect(testbed: Testbed, folder: Path, arm: ArmPlan) -> None:
    """Write ip-NODE.json, ethtool-NODE.txt, tc-NODE.json, ovs.txt and flows-SWITCH.txt into ``folder``; tcp-HOST.txt if the arm changes TCP."""
    counters(testbed, folder)
    for name in (None, *testbed.hosts):
        node = name or SWITCHES
        (folder / f"ip-{node}.json").write_text(testbed.read(name, ["ip", "-j", "-d", "addr", "show"]))
        (folder / f"ethtool-{node}.txt").write_text(testbed.offloads[node])
    keys = [line.partition(" = ")[0] for line in commands.transport(arm.scheme)]
    for name in testbed.hosts if keys else ():
        (folder / f"tcp-{name}.txt").write_text(testbed.read(name, ["sysctl", *keys]))
    (folder / "ovs.txt").write_text(testbed.read(None, ["ovs-vsctl", "show"]))
    for switch in testbed.switches:
        (folder / f"flows-{switch}.txt").write_text(testbed.read(None, ["ovs-ofctl", "dump-flows", switch]))


def counters(testbed: Testbed, folder: Path) -> dict[str, int]:
    """Write tc-NODE.json, every qdisc with its statistics, into ``folder``; return when each node was read, in ns of CLOCK_MONOTONIC."""
    folder.mkdir(parents=True, exist_ok=True)
    read_ns: dict[str, int] = {}
    for name in (None, *testbed.hosts):
        node = name or SWITCHES
        began_ns = time.monotonic_ns()
        text = testbed.read(name, ["tc", "-j", "-s", "qdisc", "show"])
        read_ns[node] = (began_ns + time.monotonic_ns()) // 2
        (folder / f"tc-{node}.json").write_text(text)
    return read_ns


def differences(folder: Path, network: Network, arm: ArmPlan) -> list[str]:
    """How what was read back differs from the plan, a sentence each; empty when the network built is the network planned."""
    found: list[str] = []
    shapes, queues = network.by_device(), commands.port_queues(arm.scheme, network)
    for node in (SWITCHES, *network.hosts):
        links = {link["ifname"]: link for link in json.loads((folder / f"ip-{node}.json").read_text()) if "ifname" in link}
        qdiscs = [qdisc for qdisc in json.loads((folder / f"tc-{node}.json").read_text()) if "dev" in qdisc]
        devices = sorted(queues) if node == SWITCHES else [f"{node}-eth0"]
        for device in devices:
            if device not in links:
                found.append(f"{node}: there is no interface {device}")
                continue
            found += [f"{device}: {text}" for text in _link_differences(links[device], network)]
            mine = [qdisc for qdisc in qdiscs if qdisc["dev"] == device]
            found += [f"{device}: {text}" for text in _shape_differences(mine, shapes[device], on_switch=node == SWITCHES)]
            lines = queues[device] if node == SWITCHES else commands.placed(arm.scheme.host, device)
            found += [f"{device}: {text}" for text in _scheme_differences(mine, lines)]
            if node != SWITCHES:
                found += [f"{device}: {text}" for text in _limiter_differences(mine, arm)]
        if node != SWITCHES:
            found += [f"{node}: {text}" for text in _vlan_differences(links.get(f"{node}-eth0.{network.vlan}"), network)]
            asked = commands.transport(arm.scheme)
            read = (folder / f"tcp-{node}.txt").read_text().splitlines() if asked else []
            found += [f"{node}: its TCP has not {line}" for line in asked if line not in read]
        offloads = folder / f"ethtool-{node}.txt"
        if offloads.exists():
            found += _offload_differences(offloads.read_text())
    return found


def _link_differences(link: dict[str, Any], network: Network) -> list[str]:
    found = []
    if link.get("mtu") != network.mtu_bytes:
        found.append(f"its MTU is {link.get('mtu')}, not {network.mtu_bytes}")
    for key in ("num_tx_queues", "num_rx_queues"):
        if link.get(key, 0) < QUEUES:
            found.append(f"it has {link.get(key)} {key[4:6]} queues, not {QUEUES}")
    if "UP" not in link.get("flags", []):
        found.append("it is down")
    if any(address.get("family") == "inet6" for address in link.get("addr_info", [])):
        found.append("IPv6 is on")
    return found


def _vlan_differences(link: dict[str, Any] | None, network: Network) -> list[str]:
    if link is None:
        return [f"there is no device for VLAN {network.vlan}"]
    data = link.get("linkinfo", {}).get("info_data", {})
    found = []
    if data.get("id") != network.vlan:
        found.append(f"its VLAN is {data.get('id')}, not {network.vlan}")
    identity = {(level, level) for level in LEVELS if level}
    for key, direction in (("egress_qos", "priority to PCP"), ("ingress_qos", "PCP to priority")):
        mapping = {(entry["from"], entry["to"]) for entry in data.get(key, []) if entry["from"]}
        if mapping != identity:
            found.append(f"the map from {direction} is {sorted(mapping)}, not one to one")
    return found


def _shape_differences(qdiscs: list[dict[str, Any]], network: Network, *, on_switch: bool) -> list[str]:
    root = next((qdisc for qdisc in qdiscs if qdisc.get("root")), None)
    kind = {"wire": "wire", "htb": "htb", "tbf": "tbf"}[network.model]
    if root is None or root.get("kind") != kind:
        return [f"its root qdisc is {root.get('kind') if root else 'missing'}, not {kind}"]
    options = root.get("options", {})
    if network.model == "wire":
        planned = {"rate_bps": network.rate_bps, "limit": network.buffer_bytes, "delay_ns": network.delay_ns, "classify": "pcp", "orphan": network.orphan}
        if on_switch and network.xoff_bytes:
            planned |= {"xoff": network.xoff_bytes, "xon": network.xon_bytes}
        return [f"its wire's {key} is {options.get(key)}, not {value}" for key, value in planned.items() if options.get(key) != value]
    if network.model == "tbf":
        found = (
            [] if options.get("rate") == network.rate_bps // 8 else [f"its rate is {options.get('rate')} B/s, not {network.rate_bps // 8}"]
        )
        queues = sum(qdisc.get("kind") == "pfifo" for qdisc in qdiscs)
        return found + ([f"it has {queues} queues, not {QUEUES}"] if on_switch and queues != QUEUES else [])
    return []


def _scheme_differences(qdiscs: list[dict[str, Any]], lines: list[str]) -> list[str]:
    """The qdiscs that a scheme's tc lines add, each by its kind and parent."""
    found = []
    for line in lines:
        match = re.match(r"qdisc \S+ dev \S+ parent (\S+)(?: handle \S+)? (\S+)", line)
        if match and not any((qdisc.get("parent"), qdisc.get("kind")) == match.groups() for qdisc in qdiscs):
            found.append(f"it has no {match[2]} qdisc below {match[1]}")
    return found


def _limiter_differences(qdiscs: list[dict[str, Any]], arm: ArmPlan) -> list[str]:
    found = [qdisc for qdisc in qdiscs if qdisc.get("kind") == "qjump"]
    if arm.qjump is None:
        return ["it has a qjump qdisc, and the arm has none"] if found else []
    if arm.qjump.mode == "tbf":
        buckets = sum(qdisc.get("kind") == "tbf" and qdisc.get("parent", "").startswith(commands.HOST_HANDLE) for qdisc in qdiscs)
        wanted = sum(budget > 0 for budget in arm.qjump.budget_bytes)
        return [] if buckets == wanted else [f"it has {buckets} token buckets, not {wanted}"]
    if len(found) != 1:
        return [f"it has {len(found)} qjump qdiscs, not one"]
    options = found[0].get("options", {})
    budgets = dict(enumerate(options.get("budgets", [])))
    plan = arm.qjump
    packets = None if plan.mode == "2015" else [plan.limit_packets] * len(LEVELS)
    planned = {"epoch_ns": plan.epoch_ns, "mode": plan.mode, "epochs": plan.epochs, "packets": packets}
    wrong = [f"its {key} is {options.get(key)}, not {value}" for key, value in planned.items() if options.get(key) != value]
    wrong += [
        f"level {level} has a budget of {budgets.get(level)}, not {plan.budget_bytes[level]}"
        for level in LEVELS
        if budgets.get(level) != plan.budget_bytes[level]
    ]
    if found[0].get("parent") != "5:1":
        wrong.append(f"qjump's parent is {found[0].get('parent')}, not 5:1")
    return wrong


def _offload_differences(text: str) -> list[str]:
    found = []
    for device, features in re.findall(r"Device (\S+):\n(.*?)(?=\nDevice |\Z)", text, re.DOTALL):
        for name in _OFFLOADS:
            if not re.search(rf"^\s*{name}: off", features, re.MULTILINE):
                found.append(f"{device}: {name} is on")
    return found
