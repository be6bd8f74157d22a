"""Write the table in docs/similarity.md of the settings that were calibrated on a published
number, from the experiments.

    python3 bench/calibrated.py [--write]

Without `--write`, print it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import marks
from qjump_mn import resolve
from qjump_mn.analysis.claims import Claim
from qjump_mn.resolve import loading

PAGE = ROOT / "docs/similarity.md"


def table() -> Iterator[str]:
    """Yield the table's lines: what each run's settings were calibrated on, and what they predict,
    which is what the other claims with a published size show."""
    yield "| run | settings | calibrated on | predicted and judged |"
    yield "|---|---|---|---|"
    for experiment in loading.names("experiments"):
        for preset in loading.presets(experiment):
            plan = resolve.plan(experiment, preset, [])
            judged = plan.judged
            sized = [name for name in judged.claims if Claim.of(plan, name).size]
            if judged.calibrated:
                on = {
                    measure: f"`{measure}`: {judged.published[measure]:g}"
                    for measure in judged.calibrated.values()
                }
                yield (
                    f"| `{experiment} --preset {preset}` | {_listed(judged.calibrated)} "
                    f"| {', '.join(on.values())} "
                    f"| {_listed(str(judged.claims[name].shows) for name in sized)} |"
                )


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        marks.write(PAGE, "calibrated", "\n".join(table()))
    else:
        print("\n".join(table()))
