"""Write the table in docs/similarity.md of the settings that were calibrated on a published
number, from the experiments.

    python3 bench/calibrated.py [--write]

Without `--write`, print it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import marks
from qjump_mn import resolve
from qjump_mn.analysis.claims import Claim
from qjump_mn.resolve import loading

PAGE = ROOT / "docs/similarity.md"


def table() -> Iterator[str]:
    """Yield the table's lines: what each setting was calibrated on, and what that predicts, which
    is what the other claims with a published size show."""
    yield "| run | setting | calibrated on | predicted and judged |"
    yield "|---|---|---|---|"
    for experiment in loading.names("experiments"):
        for preset in loading.presets(experiment):
            plan = resolve.plan(experiment, preset, [])
            judged = plan.judged
            sized = [name for name in judged.claims if Claim.of(plan, name).size]
            predicted = [f"`{judged.claims[name].shows}`" for name in sized]
            for setting, measure in judged.calibrated.items():
                yield (
                    f"| `{experiment} --preset {preset}` | `{setting}` | `{measure}`: "
                    f"{judged.published[measure]:g} | {', '.join(predicted)} |"
                )


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        marks.write(PAGE, "calibrated", "\n".join(table()))
    else:
        print("\n".join(table()))
