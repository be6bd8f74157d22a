"""The command that makes a cable."""

from __future__ import annotations

from collections.abc import Collection

from .steps import Cable, End


def veth(step: Cable, hosts: Collection[str]) -> list[str]:
    """A veth pair with its queues, the ends in the namespaces of their ``hosts`` (Mininet issue 976: it has
    no option for queues)."""
    first, second = (_end(end, step.queues, inside=end.node in hosts) for end in step.ends)
    return ["ip", "link", "add", *first, "type", "veth", "peer", *second]


def _end(end: End, queues: int, *, inside: bool) -> list[str]:
    counts = ["numtxqueues", str(queues), "numrxqueues", str(queues)]
    return ["name", end.device, "address", end.mac, *counts, *(["netns", end.node] if inside else [])]
