"""Note how the ports of a Mininet network are built and what passed them, before it is stopped."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

NOTES = Path("/tmp/qjump-mn-ports")
"""A file for each network that was stopped."""

_CLASSFUL = ("htb", "hfsc")


def note(network: Any) -> None:
    """Write the read-back of all nodes of a Mininet network; never fail the script's own work."""
    try:
        nodes = [*network.hosts, *network.switches]
        places = {"": None} | {
            node.name: node.pid for node in nodes if getattr(node, "inNamespace", False)
        }
        text = json.dumps({name: _look(pid) for name, pid in places.items()})
        NOTES.mkdir(exist_ok=True)
        (NOTES / f"{len(os.listdir(NOTES)) + 1}.json").write_text(text)
    except Exception as error:
        Path("/dev/host-log").write_text(f"qjump-mn: the ports could not be read: {error}\n")


def _look(pid: int | None) -> dict[str, Any]:
    """Return the links, qdiscs and classes of a namespace, as ip and tc print them."""
    inside = [] if pid is None else ["mnexec", "-a", str(pid)]
    qdiscs = _json(inside, "tc -s -j qdisc show")
    shaped = sorted({one["dev"] for one in qdiscs if one["kind"] in _CLASSFUL})
    return {
        "links": _json(inside, "ip -s -j link show"),
        "qdiscs": qdiscs,
        "classes": {
            device: _json(inside, f"tc -s -j class show dev {device}") for device in shaped
        },
    }


def _json(inside: list[str], command: str) -> Any:
    argv = [*inside, *command.split()]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return json.loads(printed or "[]")
