"""Write docs/measures.md from the registry of programs: measures, table columns, and constants for
claims.

    python3 bench/measures.py [--write]

Without `--write`, print it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import marks
from qjump_mn.programs import registry
from qjump_mn.programs.base import LATENCIES, Program

PAGE = ROOT / "docs/measures.md"
CONSTANTS = {
    "hosts": "hosts of the topology",
    "rate_mbps": "rate of a host's link, in Mb/s",
    "frame_ms": "how long a full-size frame occupies the slowest link",
    "buffer_ms": "how long a host's link takes to send a full port buffer",
    "link_goodput_mbps": "the most TCP payload that a host's link carries, in Mb/s",
    "processor_ms": (
        "the processor's allowance on an urgent packet's way; 0 where code takes no time"
    ),
    "busy_ports, "
    "WORKLOAD_busy_ports": "ports where an urgent packet may find bulk data in transmission",
    "ack_ports, WORKLOAD_ack_ports": "ports where it may find an acknowledgement in transmission",
    "wait_ms, WORKLOAD_wait_ms": "how long all of these frames occupy their links",
    "WORKLOAD_analytic_ms": "how long the workload's messages take in an idle network",
    "WORKLOAD_interval_ms": "a ping's interval",
    "WORKLOAD_bound_ms": "the bound of Equation 1 for the senders of `fanin`",
    "WORKLOAD_drains": "how many full buffers a link can send between two bursts of `noise`",
    "ARM_predicted_wait_ms": "how long a ping waits in its host's full limiter",
    "ARM_predicted_loss": "the share of pings that a dropping limiter must drop",
}
"""Constants of a plan, known before it runs; words in capitals stand for names."""


def main(arguments: list[str]) -> None:
    """Print the page, or write it."""
    text = "\n".join(page()).strip("\n")
    if "--write" in arguments:
        marks.write(PAGE, "measures", text)
    else:
        print(text)


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield "## Measures of latencies\n"
    yield ", ".join(_measures(LATENCIES)) + "\n"
    yield "## Programs\n"
    for name in registry.OURS:
        yield from _program(registry.program(name))
    yield "## Constants\n"
    yield (
        "These are known before a plan runs. Without a workload's name, they belong to the "
        "workload that the figure shows.\n"
    )
    yield "| name | meaning |"
    yield "|---|---|"
    for names, about in CONSTANTS.items():
        yield f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {about} |"


def constant_entry(name: str) -> str | None:
    """Return the entry of ``CONSTANTS`` that a plan's constant belongs to."""
    fitting = [
        (len(one), names)
        for names in CONSTANTS
        for one in names.split(", ")
        if re.fullmatch(re.sub("WORKLOAD|ARM", r"\\w+", one), name)
    ]
    return max(fitting)[1] if fitting else None


def _program(program: Program) -> Iterator[str]:
    plan = program.plan
    yield f"### `{program.name}`\n"
    yield f"Runs {_where(program)}. Table: {_columns(program)}.\n"
    own = {key: heading for key, heading in plan.MEASURES.items() if LATENCIES.get(key) != heading}
    common = ["those of latencies"] if len(own) < len(plan.MEASURES) else []
    if plan.MEASURES:
        yield f"Measures: {', '.join([*common, *_measures(own)])}.\n"
    else:
        yield (
            "Its measures are the numbers that the experiment's file names: "
            "[programs](programs.md).\n"
        )


def _where(program: Program) -> str:
    only_simulated = getattr(program.plan, "ONLY_SIMULATED", False)
    if isinstance(only_simulated, property):
        return "in the simulator, and with some settings in the guest"
    if only_simulated:
        return "in the simulator only"
    return (
        "in the guest, on a host and in the simulator"
        if program.simulated
        else "in the guest and on a host"
    )


def _columns(program: Program) -> str:
    return ", ".join(f"`{name}` ({kind})" for name, kind in program.columns.items())


def _measures(measures: dict[str, str]) -> Iterator[str]:
    """Yield each measure with its heading in tables."""
    yield from (f"`{name}` ({heading})" for name, heading in measures.items())


if __name__ == "__main__":
    main(sys.argv[1:])
