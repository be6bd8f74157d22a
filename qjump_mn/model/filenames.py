"""Names of the files that steps write and results read."""

from __future__ import annotations


def counters(when: str, node: str) -> str:
    """The file of one reading of a node's qdiscs; the machine's node is called :data:`topology.SWITCHES`."""
    return f"asbuilt/{when}/tc-{node}.json"
