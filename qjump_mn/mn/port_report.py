"""Say where packets waited and were dropped in a command's networks, from what was read back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from rich.console import Console

from qjump_mn.console import Table
from qjump_mn.links import commands
from qjump_mn.model import units

MAX_ROWS = 12
"""The most ports that are printed; all are in the run's files."""

_PORT = re.compile(r".+-eth\d+")
"""How Mininet calls the ends of links."""

HELD_BACK = (
    "TCLink without a delay holds the senders back, so its queues stay short: --link qjwire has "
    "queues as switches have (see docs/mininet.md)"
)


class Port(NamedTuple):
    """An end of a link: its rate in bit/s, 0 for none; its counters; and its longest wait in ns,
    None if its qdisc does not measure it."""

    name: str
    rate_bps: int
    packets: int
    drops: int
    held: int
    wait_ns: int | None
    holds_back: bool


def read(path: Path) -> list[Port]:
    """Return the ports in a file that the machine wrote (inside/ports.py); [] if it is none."""
    try:
        nodes = msgspec.json.decode(path.read_bytes(), type=dict[str, _Node])
    except (OSError, msgspec.DecodeError):
        return []
    return [port for name, node in nodes.items() for port in _ports(name, node)]


class _Node(msgspec.Struct):
    links: list[dict[str, Any]]
    qdiscs: list[dict[str, Any]]
    classes: dict[str, list[dict[str, Any]]] = {}


def _ports(name: str, node: _Node) -> Iterator[Port]:
    for link in node.links:
        device = str(link.get("ifname", ""))
        qdiscs = [one for one in node.qdiscs if one.get("dev") == device]
        if not _PORT.fullmatch(device):
            continue
        classes = node.classes.get(device, [])
        kinds = {str(one.get("kind")): one for one in qdiscs}
        levels = [level for one in qdiscs for level in one.get("levels", ())]
        # qjump2015 has levels, but measures no waits; a wire does not see what waits for a trace.
        waits = [level["max_wait_ns"] for level in levels if "max_wait_ns" in level]
        no_delay = "netem" not in kinds or "delay" not in kinds["netem"].get("options", {})
        yield Port(
            name=device,
            rate_bps=_rate(qdiscs, classes),
            packets=_most(qdiscs, "packets"),
            drops=_most(qdiscs, "drops"),
            held=_most(qdiscs, "overlimits"),
            wait_ns=max(waits) if waits and not any(map(_follows, qdiscs)) else None,
            holds_back=not name and "htb" in kinds and no_delay,
        )


def _most(counters: Sequence[Mapping[str, Any]], key: str) -> int:
    # A qdisc's parent counts its packets and drops again.
    return max((int(one.get(key, 0)) for one in counters), default=0)


def _follows(qdisc: Mapping[str, Any]) -> bool:
    """Return whether it is the gate of a link that follows a trace."""
    return qdisc.get("handle") == commands.TRACED and qdisc.get("kind") == "tbf"


def _rate(qdiscs: Sequence[Mapping[str, Any]], classes: Sequence[Mapping[str, Any]]) -> int:
    """Return the least rate of a device's shapers in bit/s; 0 if it has none."""
    # tc gives the rates of classes, and of all qdiscs but ours, in bytes per second.
    rates = [8 * int(one["rate"]) for one in classes if one.get("rate")]
    for one in qdiscs:
        if _follows(one):
            continue
        options = one.get("options", {})
        rates += [int(options["rate_bps"])] if options.get("rate_bps") else []
        if isinstance(options.get("rate"), int):
            rates.append(8 * options["rate"])
    return min(rates, default=0)


def show(networks: Sequence[Sequence[Port]], out: Console) -> None:
    """Print where packets were dropped or waited in each network, and what a student should
    know."""
    for number, ports in enumerate(networks, 1):
        if len(networks) > 1:
            out.print(f"network {number} of {len(networks)}", markup=False)
        _show_network(ports, out)
    if any(port.holds_back for ports in networks for port in ports):
        out.print(HELD_BACK, markup=False)


def _show_network(ports: Sequence[Port], out: Console) -> None:
    busy = [port for port in ports if port.drops or port.held or port.wait_ns]
    if busy:
        out.print(
            _table(sorted(busy, key=lambda port: (-port.drops, -(port.wait_ns or port.held))))
        )
    if len(busy) > MAX_ROWS:
        out.print(f"and {len(busy) - MAX_ROWS} more ports: see ports-*.json", markup=False)
    # i-NAME gets what NAME receives, after its time on the link (mininet_qos.commands.ifb).
    unshaped = [port.name for port in ports if not port.rate_bps and not port.name.startswith("i-")]
    if unshaped:
        named = (
            f"{unshaped[0]} has"
            if len(unshaped) == 1
            else (f"{unshaped[0]} and {len(unshaped) - 1} more have")
        )
        out.print(f"{named} no rate: a packet takes no time there", markup=False)


def _table(ports: Sequence[Port]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("port")
    for head in ("rate", "packets", "dropped", "waited"):
        table.add_column(head, justify="right")
    for port in ports[:MAX_ROWS]:
        waited = f"{port.held:,} times"
        if port.wait_ns is not None:
            waited = f"up to {units.told_time(port.wait_ns)}"
        rate = units.told_rate(port.rate_bps) if port.rate_bps else "none"
        table.add_row(port.name, rate, f"{port.packets:,}", f"{port.drops:,}", waited)
    return table
