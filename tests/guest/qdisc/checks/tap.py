"""Read the trace events of wires: frames that start, frames that are dropped, queues."""

import re

import rig

TRACING = "/sys/kernel/tracing"
EVENTS = ("wire_frame", "wire_drop")
FRAME = re.compile(
    r"(wire_frame|wire_drop): dev=\S+ level=(\d) len=(\d+) arrival=(\d+) start=(\d+) handover=(\d+) "
    r"vlan=(-?\d+) head=(\w+)"
)
QUEUE = re.compile(r"wire_queue: dev=a0 window=(\d+) peak=\{(.*?)\} then=\{(.*?)\} drops=\{(.*?)\}")


def _write(name: str, text: str) -> None:
    with open(f"{TRACING}/{name}", "w") as file:
        file.write(text)


def begin(condition: str) -> None:
    """Record frames that match an ftrace filter expression, and all queues."""
    rig.run(f"mount -t tracefs tracefs {TRACING}", check=False)
    _write("trace", "")
    for name in EVENTS:
        _write(f"events/wire/{name}/filter", condition)
    _write("events/wire/enable", "1")


def _end() -> str:
    _write("events/wire/enable", "0")
    with open(f"{TRACING}/trace") as file:
        return file.read()


def end() -> list[list[int]]:
    """Stop; return level, bytes (L), arrival, start and handover (ns) of each frame in order."""
    found = FRAME.findall(_end())
    return [[int(x) for x in words[:5]] for event, *words in found if event == "wire_frame"]


def end_with_heads() -> dict[str, list[list[str]]]:
    """Stop; return the text of each event's fields, in order: of frames level, len, arrival, start,
    handover, vlan and head; of queues the window, the peaks, what waited then, and the drops."""
    text = _end()
    found: dict[str, list[list[str]]] = {name: [] for name in EVENTS}
    for event, *words in FRAME.findall(text):
        found[event].append(words)
    return {**found, "wire_queue": [list(words) for words in QUEUE.findall(text)]}
