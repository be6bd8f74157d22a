"""Compare TCP's middle flows in Figure 9's fabric with ns-2.35's, and switch what differs, one
after the other. Print a Markdown table.

    python bench/ns2_flows.py [--write]

`--write` replaces the table in docs/simulator-validation.md. Exit with 1 if a mean differs by more
than its tolerance where all is alike. Needs `cargo` and `ns` (`apt install ns2`), or exits with 3.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import marks
from bench.ns3 import DOCUMENT, bindings
from bench.simulator import SCRIPT, needed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qjump_sim import Outcome, Scheme

LOAD, FLOWS = 0.6, 3000
TRACES = (("published", 1), ("Poisson", 1), ("Poisson", 2))
TOLERANCE = 0.08
"""Of the mean of middle flows, where all is alike; a jitter of hosts of 1 us moves it by 2 %."""
SHORT, MIDDLE = 10_000, 10_000_000
"""The largest short and middle flows, in bytes."""


def main() -> None:
    """Run both, print and, if asked, write."""
    ns2 = needed("ns", "ns-2 is not installed: apt install ns2")
    with tempfile.TemporaryDirectory(prefix="bench-ns2-") as scratch:
        sys.path.insert(0, scratch)
        bindings(Path(scratch))
        columns = [column(ns2, kind, seed, Path(scratch)) for kind, seed in TRACES]
    head = " | ".join(f"{kind}, seed {seed}" for kind, seed in TRACES)
    lines = [
        f"| mean slowdown of middle (short) flows | {head} |",
        "|---" * (len(TRACES) + 1) + "|",
    ]
    for title in columns[0]:
        cells = (f"{middle:.2f} ({short:.2f})" for short, middle in (c[title] for c in columns))
        lines.append(f"| {title} | {' | '.join(cells)} |")
    print("\n".join(lines))
    if sys.argv[1:] == ["--write"]:
        marks.write(DOCUMENT, "ns2-flows", "\n".join(lines))
    for place in columns:
        ours, theirs = place["`qjump-sim`, forgets them, too"][1], place["ns-2.35, open"][1]
        if abs(ours / theirs - 1) > TOLERANCE:
            raise SystemExit(f"middle flows: {ours:.2f} instead of ns-2's {theirs:.2f}")


def column(ns2: str, kind: str, seed: int, scratch: Path) -> dict[str, tuple[float, float]]:
    """Return the mean slowdowns of short and middle flows of a trace, by row."""
    from qjump_sim import FIG9, US, Poisson, Published, Scenario, Scheme, run

    kinds: dict[str, Any] = {"published": Published, "Poisson": Poisson}
    tcp = Scheme.named("tcp", FIG9)
    changes: dict[str, Callable[[Scheme], Scheme]] = {
        "`qjump-sim`": lambda scheme: scheme,
        "`qjump-sim`, forgets them, too": lambda scheme: changed(scheme, sack_after_rto=False),
        "`qjump-sim`, SYNs": lambda scheme: changed(scheme, connections=0, handshake=200 * US),
        "`qjump-sim`, SYNs, forgets them, too": lambda scheme: changed(
            scheme, connections=0, handshake=200 * US, sack_after_rto=False
        ),
    }
    flows = kinds[kind]("search", LOAD, FLOWS)
    outcomes = {
        title: run(Scenario(FIG9, change(tcp), flows, seed=seed))
        for title, change in changes.items()
    }
    rows = {title: means(outcome, outcome.finish) for title, outcome in outcomes.items()}
    drawn = outcomes["`qjump-sim`"]
    trace = scratch / "flows.txt"
    columns = (drawn.start / 1e12, drawn.src, drawn.dst, drawn.packets)
    np.savetxt(trace, np.column_stack(columns), fmt=("%.12f", "%d", "%d", "%d"))
    for title, mode in (("ns-2.35, open", "open"), ("ns-2.35, SYNs", "each")):
        ends = np.zeros(FLOWS)
        output = subprocess.check_output([ns2, str(SCRIPT), str(trace), mode], text=True)
        for line in output.splitlines():
            if line.startswith("flow "):
                _, number, seconds = line.split()
                ends[int(number)] = float(seconds) * 1e12
        rows[title] = means(drawn, ends)
    return {title: rows[title] for title in sorted(rows, key=lambda title: "SYN" in title)}


def changed(scheme: Scheme, **settings: Any) -> Scheme:
    """Return the scheme with changed settings of its transport."""
    return replace(scheme, transport=replace(scheme.transport, **settings))


def means(flows: Outcome, ends: NDArray[Any]) -> tuple[float, float]:
    """Return the mean slowdowns of short and middle flows, as the published script divides them."""
    same = flows.src // 16 == flows.dst // 16
    ideal = (flows.packets - 1) * 1.2e6 + np.where(same, 13.264e6, 14.68e6)
    slowdown, size = (ends - flows.start) / ideal, flows.packets * 1500
    short, middle = size <= SHORT, (size > SHORT) & (size <= MIDDLE)
    return float(slowdown[short].mean()), float(slowdown[middle].mean())


if __name__ == "__main__":
    main()
