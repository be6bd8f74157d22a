"""Note how the ports of a Mininet network are built and what passed them, before it is stopped."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

NOTES = Path("/tmp/qjump-mn")
"""A file for each network that was stopped, and one of sentences for the user."""
SENTENCES = NOTES / "notes"

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
        number = len([*NOTES.glob("*.json")]) + 1
        (NOTES / f"{number:03}.json").write_text(text)
    except Exception as error:
        Path("/dev/host-log").write_text(f"qjump-mn: the ports could not be read: {error}\n")


def tell(sentence: str) -> None:
    """Add a sentence for the user, once."""
    NOTES.mkdir(exist_ok=True)
    told = SENTENCES.read_text() if SENTENCES.exists() else ""
    if f"{sentence}\n" not in told:
        SENTENCES.write_text(f"{told}{sentence}\n")


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
