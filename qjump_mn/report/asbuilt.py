"""Summarise the network as read back: ports, and the qdiscs of one host and one switch port."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from qjump_mn.model.plan import Plan
from qjump_mn.model.topology import SWITCHES, Network
from qjump_mn.results.directory import RunDirectory


class Port(NamedTuple):
    """An interface: name, state, MTU, transmit and receive queues, kind and address."""

    name: str
    state: str
    mtu: str
    queues: str
    kind: str
    address: str


class AsBuilt(NamedTuple):
    """The network of one trial: ``trees`` are (title, qdisc tree as text); all readings are in
    ``folder``, below the run directory."""

    trial: str
    ports: tuple[Port, ...]
    trees: tuple[tuple[str, str], ...]
    counts: tuple[tuple[str, int], ...]
    folder: str


def summary(run: RunDirectory, plan: Plan) -> AsBuilt | None:
    """Summarise the network of the most telling trial: one with a limiter, if any; None without
    read-back."""
    trials = sorted(
        plan.unperturbed.trials(),
        key=lambda trial: (trial.arm.qjump is None, len(trial.arm.workloads) < 2),
    )
    for trial in trials:
        folder = run.asbuilt(trial.name) / "before"
        if run.is_done(trial.name) and folder.is_dir():
            flows = [
                flow
                for workload in trial.arm.workloads
                if workload.name == plan.shown.figure.workload
                for flow in workload.flows
            ]
            source, destination = flows[0] if flows else trial.network.hosts[:2]
            port = _port_towards(trial.network, destination)
            host, switches = (
                _json(folder / f"tc-{source}.json"),
                _json(folder / f"tc-{SWITCHES}.json"),
            )
            trees = (
                (f"host {source}, {source}-eth0", tree(host, f"{source}-eth0")),
                (f"switch port {port}, towards {destination}", tree(switches, port)),
            )
            links = [*_links(folder, source), *_links(folder, SWITCHES)]
            shown = tuple(item for item in trees if item[1])
            where = f"{folder.relative_to(run.path).as_posix()}/"
            return AsBuilt(trial.name, tuple(links), shown, _kinds(switches), where)
    return None


def tree(qdiscs: list[dict[str, Any]], device: str) -> str:
    """Return the qdiscs of ``device`` as an indented tree, a line each, in tc's words."""
    of_device = [qdisc for qdisc in qdiscs if qdisc.get("dev") == device]
    lines: list[str] = []

    def add(qdisc: dict[str, Any], depth: int) -> None:
        place = "root" if qdisc.get("root") else f"parent {qdisc.get('parent', '?')}"
        lines.append(
            f"{'    ' * depth}{qdisc.get('kind', '?')} {qdisc.get('handle', '')} "
            f"{place}{_options(qdisc.get('options', {}))}"
        )
        major = str(qdisc.get("handle", "")).rstrip(":")
        for child in of_device:
            if (
                major
                and child is not qdisc
                and not child.get("root")
                and str(child.get("parent", "")).split(":")[0] == major
            ):
                add(child, depth + 1)

    for qdisc in of_device:
        above = {
            str(other.get("handle", "")).rstrip(":") for other in of_device if other is not qdisc
        }
        if qdisc.get("root") or str(qdisc.get("parent", "")).split(":")[0] not in above:
            add(qdisc, 0)
    return "\n".join(lines)


def _options(options: dict[str, Any]) -> str:
    parts = []
    for key, value in options.items():
        if key == "budgets" and isinstance(value, list):
            none = "nothing" if options.get("mode") == "2015" else "unlimited"
            budgets = [f"{level}:{value[level] or none}" for level in reversed(range(len(value)))]
            parts.append(f"bytes per epoch by priority {' '.join(budgets)}")
        elif isinstance(value, list) and value:
            parts.append(
                f"{key} {value[0]}"
                if value.count(value[0]) == len(value)
                else f"{key} {' '.join(map(str, value))}"
            )
        elif isinstance(value, str | int | float):
            parts.append(f"{key} {value}")
    return f" {', '.join(parts)}" if parts else ""


def _kinds(qdiscs: list[dict[str, Any]]) -> tuple[tuple[str, int], ...]:
    roots = [
        str(qdisc.get("kind"))
        for qdisc in qdiscs
        if qdisc.get("root") and qdisc.get("dev") not in ("lo", "ovs-system")
    ]
    return tuple(sorted((kind, roots.count(kind)) for kind in set(roots)))


def _links(folder: Path, node: str) -> list[Port]:
    return [
        Port(
            name=str(link["ifname"]),
            state="up" if "UP" in link.get("flags", ()) else "down",
            mtu=str(link.get("mtu", "")),
            queues=f"{link.get('num_tx_queues', '?')} / {link.get('num_rx_queues', '?')}",
            kind=_kind(link.get("linkinfo", {})),
            address=", ".join(
                f"{entry.get('local')}/{entry.get('prefixlen')}"
                for entry in link.get("addr_info", ())
                if entry.get("family") == "inet"
            ),
        )
        for link in _json(folder / f"ip-{node}.json")
        if "ifname" in link and link["ifname"] != "lo"
    ]


def _kind(linkinfo: dict[str, Any]) -> str:
    data = linkinfo.get("info_data", {})
    kind = str(linkinfo.get("info_kind", ""))
    return (
        f"{kind} {data.get('id')}, {len(data.get('egress_qos', ()))} priorities mapped"
        if kind == "vlan"
        else kind
    )


def _port_towards(network: Network, host: str) -> str:
    return next(port for (_, port), (node, _) in network.ports() if node == host)


def _json(path: Path) -> list[dict[str, Any]]:
    """Return a list of objects from a file; empty if it is not readable, because the report must be
    written."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return (
        [entry for entry in content if isinstance(entry, dict)] if isinstance(content, list) else []
    )
