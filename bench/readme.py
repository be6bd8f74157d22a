"""Write Figure 3a's numbers, network and final table into README and docs/cli.md, from the
committed reference run.

    python3 bench/readme.py [--write]

Without `--write`, print the tables.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from rich.console import Console

from bench import marks
from qjump_mn import resolve
from qjump_mn.analysis import published_comparison, terminal
from qjump_mn.model.plan import Plan
from qjump_mn.report.network import drawing
from qjump_mn.resolve import loading
from qjump_mn.results import formatting, outcome, reference
from qjump_mn.results.outcome import ArmSummary, Spread

EXPERIMENT = "fig3a"
ARMS = ("idle", "contended", "qjump")
WIDTH = 80
PICTURE = ROOT / "docs/network.svg"


def main(arguments: list[str]) -> None:
    """Print or write."""
    if "--write" not in arguments:
        print(numbers(), run_table(), links_table(), sep="\n\n")
        return
    marks.write(ROOT / "README.md", "readme", numbers())
    marks.write(ROOT / "docs/cli.md", "readme", run_table())
    PICTURE.write_text(network())
    marks.write(ROOT / "docs/emulation.md", "links", links_table())


def numbers() -> str:
    """Return the table of Figure 3a: the medians of the reference run, and what was published."""
    preset = loading.usual_preset(EXPERIMENT)
    values = reference_values(EXPERIMENT, preset)
    spec = published_comparison.spec(EXPERIMENT)
    assert spec is not None
    published = {row.of: row.published for row in spec.rows}
    rows = [
        "| ping at 10 Gb/s, real Linux | alone | beside bulk traffic | with QJump |",
        "|---|---|---|---|",
    ]
    for what, workload in (
        ("median round trip", "ping"),
        ("median one way through one switch", "tap"),
    ):
        cells = [_microseconds(values[arm][workload]["p50_ms"]) for arm in ARMS]
        rows.append(f"| {what} | {' | '.join(cells)} |")
    cells = [str(published[f"{arm}.ping.p50_ms"]).replace("us", " µs") for arm in ARMS[1:]]
    rows.append(
        f"| the same, published (NSDI'15, Figure 3a) | {formatting.NONE} | {' | '.join(cells)} |"
    )
    return "\n".join(rows)


def _microseconds(value_ms: float) -> str:
    return formatting.duration(value_ms, "us").replace("us", "µs")


def network() -> str:
    """Draw the plan's network as SVG."""
    plan = resolve.plan(EXPERIMENT, loading.usual_preset(EXPERIMENT), [])
    nothing = outcome.Outcome(
        plan_sha256="",
        results_sha256="",
        reference="",
        arms=(),
        verdicts=(),
        checks=(),
        missing={},
        drawings=(),
        exit_code=0,
    )
    return drawing.draw(plan, nothing).svg


def run_table() -> str:
    """Return the table of arms that a run prints at its end."""
    preset = loading.usual_preset(EXPERIMENT)
    plan = resolve.plan(EXPERIMENT, preset, [])
    arms = summaries(plan, reference_values(EXPERIMENT, preset))
    page = io.StringIO()
    Console(file=page, width=WIDTH, highlight=False, markup=False).print(
        *terminal.arms_tables(plan, arms)
    )
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    return "\n".join(["```", *lines[1:], "```"])  # without the title


def summaries(
    plan: Plan, values: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> list[ArmSummary]:
    """Return a plan's arms with the medians of a reference run, as of one seed."""
    return [
        ArmSummary(
            name=arm.name,
            label=arm.label,
            scheme=plan.shown.schemes[arm.scheme.name].label,
            planned=1,
            done=1,
            measures={
                workload: {measure: Spread.of({1: value}) for measure, value in measured.items()}
                for workload, measured in values[arm.name].items()
            },
            flows={},
        )
        for arm in plan.run.arms
    ]


def links_table() -> str:
    """Return the table of each link model's pings, idle and beside bulk traffic, from the reference
    run of `links`."""
    plan, values = resolve.plan("links", "smoke", []), reference_values("links", "smoke")
    idle_ms, wait_ms = (plan.judged.constants[name] for name in ("ping_analytic_ms", "wait_ms"))
    rows = [
        "| 10 Mb/s, `--preset smoke` | idle median | urgent ping under load: median, p99, slowest "
        "|",
        "|---|---|---|",
        f"| arithmetic | {formatting.time(idle_ms)} ms | at most "
        f"{formatting.time(idle_ms + wait_ms)} ms |",
    ]
    for model, idle_arm in (("wire", "idle"), ("tbf", "tbf_idle"), ("htb", "htb_idle")):
        idle, loaded = values[idle_arm]["ping"], values[model]["ping"]
        times = ", ".join(formatting.time(loaded[name]) for name in ("p50_ms", "p99_ms", "max_ms"))
        rows.append(f"| {model} | {formatting.time(idle['p50_ms'])} ms | {times} ms |")
    return "\n".join(rows)


def reference_values(experiment: str, preset: str) -> dict[str, dict[str, dict[str, float]]]:
    """Return the medians of a reference run."""
    path = reference.find(experiment, preset)
    assert path is not None
    return reference.read(path).values


if __name__ == "__main__":
    main(sys.argv[1:])
