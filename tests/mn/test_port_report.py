"""What is said about ports after a command."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from qjump_mn.mn import port_report

HTB = {"kind": "htb", "dev": "h1-eth0", "packets": 9, "drops": 0, "overlimits": 4}


def ports(folder: Path, *qdiscs: dict[str, Any]) -> list[port_report.Port]:
    path = folder / "ports-1.json"
    links = [{"ifname": "h1-eth0"}]
    path.write_text(json.dumps({"": {"links": links, "qdiscs": qdiscs, "classes": {}}}))
    return port_report.read(path)


def shown(*networks: list[port_report.Port]) -> str:
    out = Console(file=io.StringIO(), width=200)
    port_report.show(networks, out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_levels_without_waits_do_not_hide_that_packets_were_held(tmp_path: Path) -> None:
    qjump = {"kind": "qjump2015", "dev": "h1-eth0", "levels": [{"level": 7, "packets": 9}]}
    assert "4 times" in shown(ports(tmp_path, HTB, qjump))
    gate: dict[str, Any] = {"kind": "tbf", "handle": "4:", "dev": "h1-eth0", "overlimits": 5}
    gate["options"] = {"rate": 12}
    wire: dict[str, Any] = {
        "kind": "wire",
        "dev": "h1-eth0",
        "levels": [{"level": 7, "max_wait_ns": 2_000_000}],
    }
    assert "up to 2 ms" in shown(ports(tmp_path, wire))
    wire["options"] = {"rate_bps": 10_000_000}
    (traced,) = ports(tmp_path, wire, gate)
    assert (traced.rate_bps, traced.wait_ns, traced.held) == (10_000_000, None, 5)


def test_several_networks_are_numbered_and_advice_is_given_once(tmp_path: Path) -> None:
    network = ports(tmp_path, HTB)
    text = shown(network, network)
    assert "network 1 of 2\n" in text and "network 2 of 2\n" in text
    assert text.count(port_report.HELD_BACK) == 1
    assert "network 1" not in shown(network)
