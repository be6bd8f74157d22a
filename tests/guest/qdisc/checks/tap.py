"""Read the trace event wire:wire_frame, which reports each frame that starts on a wire."""

import re

import rig

TRACING = "/sys/kernel/tracing"
FRAME = re.compile(r"wire_frame: dev=\S+ level=(\d) len=(\d+) arrival=(\d+) start=(\d+) handover=(\d+)")


def _write(name: str, text: str) -> None:
    with open(f"{TRACING}/{name}", "w") as file:
        file.write(text)


def begin(condition: str) -> None:
    """Record frames that match an ftrace filter expression."""
    rig.run(f"mount -t tracefs tracefs {TRACING}", check=False)
    _write("trace", "")
    _write("events/wire/wire_frame/filter", condition)
    _write("events/wire/wire_frame/enable", "1")


def end() -> list[list[int]]:
    """Stop; return level, bytes (L), arrival, start and handover (ns) of each frame in order."""
    _write("events/wire/wire_frame/enable", "0")
    with open(f"{TRACING}/trace") as file:
        return [[int(x) for x in found] for found in FRAME.findall(file.read())]
