"""The names of files that steps write and results read."""

from __future__ import annotations

QUEUES = "asbuilt/queues.json"
"""Queues over time."""
FRAMES = "asbuilt/frames.json"
"""Every frame of a part of the measurement."""


def counters(when: str, node: str) -> str:
    """Return the file of one reading of a node's qdiscs. All switches are the node
    :data:`topology.SWITCHES`."""
    return f"asbuilt/{when}/tc-{node}.json"


def departure_times(when: str, node: str) -> str:
    """Return the file of one reading of a host's qjump-edt: rule and counters."""
    return f"asbuilt/{when}/edt-{node}.json"
