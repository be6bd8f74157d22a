"""Measure what a congestion law of one's own costs: the simulator's Reno and DCTCP, and the same
laws in WebAssembly and in Python, in turn. Print a Markdown table.

    python bench/laws.py [--write]

CPU seconds are those of a whole run, also with building the network; the least of three rounds. All
laws have the same outcome. `--write` replaces the table in docs/simulator.md. Exit with 1 if a law
in WebAssembly costs more than 3 times the simulator's own.
"""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import machine, marks
from qjump_mn.toolbox import simulator

if TYPE_CHECKING:
    from qjump_sim import Scenario

ROOT = Path(__file__).parent.parent
DOCUMENT, EXAMPLES = ROOT / "docs/simulator.md", ROOT / "simulator/python/examples"
ROUNDS, FLOWS, LOAD = 3, 3000, 0.6
MOST = 3
"""The most that WebAssembly may cost, in times a built-in law."""
LAWS = {"tcp": "Reno", "dctcp": "DCTCP"}
KINDS = ("built in", "WebAssembly", "Python")

Seconds = Mapping[str, float]
"""CPU seconds by kind of law."""


def main() -> None:
    """Measure, print and, if asked, write."""
    sys.path.insert(0, str(simulator.package()))
    measured = {name: least(scenarios(name)) for name in LAWS}
    text = table(measured)
    print(text)
    if sys.argv[1:] == ["--write"]:
        marks.write(DOCUMENT, "laws", text)
    worst = max(seconds["WebAssembly"] / seconds["built in"] for seconds in measured.values())
    if worst > MOST:
        raise SystemExit(
            f"a law in WebAssembly costs {worst:.1f} times a built-in one, above {MOST}"
        )


def scenarios(name: str) -> dict[str, Scenario]:
    """Return a scheme's scenario with each kind of its law."""
    from qjump_sim import FIG9, Custom, Poisson, Scenario, Scheme

    built_in, law, ecn = Scheme.named(name, FIG9), LAWS[name], name == "dctcp"
    classes = runpy.run_path(str(EXAMPLES / "laws.py"))
    own = {
        "WebAssembly": Custom.read(EXAMPLES / f"{law.lower()}.wat", ecn=ecn),
        "Python": Custom(classes[law.capitalize()], ecn=ecn),
    }
    schemes = {"built in": built_in} | {
        kind: replace(built_in, transport=replace(built_in.transport, congestion=custom))
        for kind, custom in own.items()
    }
    traffic = Poisson("search", LOAD, FLOWS)
    return {kind: Scenario(FIG9, schemes[kind], traffic) for kind in KINDS}


def least(of: Mapping[str, Scenario]) -> dict[str, float]:
    """Return the least CPU seconds of each scenario, in turn. Raise SystemExit if outcomes
    differ."""
    from qjump_sim import run

    seconds: dict[str, float] = {}
    ends = set()
    for _ in range(ROUNDS):
        for kind, scenario in of.items():
            began = time.process_time()
            outcome = run(scenario)
            taken = time.process_time() - began
            seconds[kind] = min(taken, seconds.get(kind, taken))
            ends.add((outcome.finish.tobytes(), outcome.counters["events"]))
    if len(ends) != 1:
        raise SystemExit(f"the outcomes of {', '.join(of)} differ")
    return seconds


def table(measured: Mapping[str, Seconds]) -> str:
    """Return the table with its heading."""
    rows = ["| law | built in | WebAssembly | Python |", "|---|---|---|---|"]
    rows += [row(LAWS[name], seconds) for name, seconds in measured.items()]
    note = f"{FLOWS:,} flows of web search on Figure 9's fabric; {machine.description()}."
    return "\n".join([*rows, "", note])


def row(law: str, seconds: Seconds) -> str:
    """Return a law's row: seconds, and times the built-in law's."""
    own = seconds["built in"]
    cells = [f"{own:.2f} s", *(f"{seconds[kind] / own:.2f} times" for kind in KINDS[1:])]
    return f"| {law} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
