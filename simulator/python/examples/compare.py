"""Compares a scheme of one's own with three of QJump's Figure 9: short flows, long flows, drops, for web search at load 0.6.

python examples/compare.py [FLOWS]
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from qjump_sim import FIG9, Marking, Outcome, Poisson, Scenario, Scheme, run

flows = Poisson("search", load=0.6, count=int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
schemes = {name: Scheme.named(name, FIG9) for name in ("tcp", "dctcp", "qjump-script")}
schemes["dctcp, K = 65"] = replace(schemes["dctcp"], queue=Marking(limit=150 * 1500, threshold=65 * 1500))


def simulate(name: str) -> Outcome:
    return run(Scenario(FIG9, schemes[name], flows, seed=1))


print("scheme         short flows: mean   p99   long flows: mean   dropped packets")
with ThreadPoolExecutor() as threads:  # a run leaves the interpreter to others
    for name, outcome in zip(schemes, threads.map(simulate, schemes), strict=True):
        regions, dropped = outcome.regions(FIG9), sum(outcome.counters["full"]) + sum(outcome.counters["pushed_out"])
        print(f"{name:14} {regions.short.mean:17.2f} {regions.short.p99:5.2f} {regions.long.mean:18.2f} {dropped:17}")
