"""The event wire:wire_frame, by which every wire tells of each frame that starts."""

import re

import rig

TRACING = "/sys/kernel/tracing"
FRAME = re.compile(r"wire_frame: dev=\S+ level=(\d) len=(\d+) arrival=(\d+) start=(\d+) handover=(\d+)")


def _write(name: str, text: str) -> None:
    with open(f"{TRACING}/{name}", "w") as file:
        file.write(text)


def begin(condition: str) -> None:
    """Listen to frames of which that is true, in ftrace's words, and to no others."""
    rig.run(f"mount -t tracefs tracefs {TRACING}", check=False)
    _write("trace", "")
    _write("events/wire/wire_frame/filter", condition)
    _write("events/wire/wire_frame/enable", "1")


def end() -> list[list[int]]:
    """Level, bytes (L), arrival, start and handover (ns) of each frame, in the order of being told."""
    _write("events/wire/wire_frame/enable", "0")
    with open(f"{TRACING}/trace") as file:
        return [[int(x) for x in found] for found in FRAME.findall(file.read())]
