"""Write ``report.md`` and, from it, the self-contained ``report.html``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import markupsafe

from qjump_mn.model.plan import Plan
from qjump_mn.process.files import write_atomically
from qjump_mn.programs import registry
from qjump_mn.report import (
    ablation,
    asbuilt,
    challenges,
    links,
    markdown,
    missing_figures,
    notes,
    original,
    parameters,
    pdf,
    ratios,
    simulated,
    templating,
)
from qjump_mn.report.figures import numbers
from qjump_mn.report.network import drawing
from qjump_mn.report.network.drawing import Drawn
from qjump_mn.report.notes import Written
from qjump_mn.report.timelines import page as timelines
from qjump_mn.results import contents, formatting, remarks, result_tables, summary
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest, TrialRecord
from qjump_mn.results.outcome import ArmSummary, Outcome, Spread, VerdictRow

_PICTURE = markupsafe.Markup(
    '<div role="img" aria-label="{}: the numbers are in the table of arms">{}</div>'
)
_FOLDED = markupsafe.Markup("<details><summary>{}</summary>{}</details>")
_VALUE = markupsafe.Markup("value: {}")
PICTURE = "fig/network.svg"
"""Where the drawing of the network lies in the run directory."""
NOT_SPREAD = {"sent", "received", "min_ms", "p90_ms", "p999_ms", "mean_ms"}
"""Measures that claims may use and the table of spreads leaves out."""


def write(run: RunDirectory, manifest: Manifest, outcome: Outcome) -> tuple[Path, Path]:
    """Write both reports into the run directory; return where they are, HTML first."""
    notes.begin(run.path)
    (run.path / pdf.NAME).unlink(missing_ok=True)  # it is of another report
    own = notes.read(run.path)
    network = drawing.draw(manifest.plan, outcome)
    run.figures.mkdir(exist_ok=True)
    write_atomically(run.path / PICTURE, network.svg.encode())
    text = templating.text("report.md.jinja").render(context(run, manifest, outcome, own, network))
    page = templating.page("report.html.jinja").render(
        title=f"{manifest.plan.shown.title} · {run.path.name}",
        exit_code=outcome.exit_code,
        body=markdown.render(
            text, _pictures(run, outcome, network), [part.signed[1] for part in own.sections]
        ),
    )
    paths = (run.path / "report.html", run.path / "report.md")
    write_atomically(paths[0], page.encode())
    write_atomically(
        paths[1], markdown.fill(text, [part.signed[0] for part in own.sections]).encode()
    )
    return paths


def _pictures(run: RunDirectory, outcome: Outcome, network: Drawn) -> dict[str, str]:
    """Return the page's pictures as elements, by the files that report.md shows."""
    drawings = {
        one.files["png"]: _PICTURE.format(one.title, _svg(run.path / one.files["svg"], one.name))
        for one in outcome.drawings
    }
    return {**drawings, PICTURE: network.svg}


def context(
    run: RunDirectory, manifest: Manifest, outcome: Outcome, own: Written, network: Drawn
) -> dict[str, Any]:
    """Return everything that the template needs, already formatted."""
    plan = manifest.plan
    return {
        "manifest": manifest,
        "plan": plan,
        "outcome": outcome,
        "formatting": formatting,
        "result_tables": result_tables,
        "simulated": manifest.backend == "simulator",
        "summary": summary.of(plan, outcome),
        "written": own,
        "notes": notes.NAME,
        "drawn": network,
        "picture": PICTURE,
        "subset": original.subset(plan, outcome),
        "original": original.original(plan, outcome),
        "steps": ablation.steps(plan, outcome),
        "step_heads": ablation.heads(plan),
        "challenges": challenges.told(run, manifest, outcome),
        "timelines": timelines.links(run, plan),
        "player": contents.PLAYER if (run.path / contents.PLAYER).is_file() else "",
        "commands": commands(run, manifest),
        "trials": [_trial(name, manifest.trials[name]) for name in sorted(manifest.trials)],
        "made_of": _made_of(manifest, outcome),
        **_results(run, manifest, outcome),
        **_parameters(run, manifest, outcome),
    }


def _results(run: RunDirectory, manifest: Manifest, outcome: Outcome) -> dict[str, Any]:
    """Return the results: figures, tables of arms, verdicts and checks."""
    plan = manifest.plan
    found = {row.verdict for row in outcome.verdicts}
    return {
        "lead": original.lead,
        "undrawn": missing_figures.why(plan, outcome),
        "numbers": {
            drawing.name: numbers.read(run.path / drawing.files["csv"])
            for drawing in outcome.drawings
            if "csv" in drawing.files
        },
        "blocks": [
            (
                [*block.heads, "replicates"],
                [
                    [_named(arm), arm.scheme, *cells, formatting.replicates(arm)]
                    for arm, cells in block.rows
                ],
            )
            for block in result_tables.blocks(plan, outcome.arms)
        ],
        "ratios": ratios.tables(plan, outcome),
        "sentences": remarks.of(plan, outcome),
        "verdicts": list(map(_verdict, outcome.verdicts)),
        "used": [verdict for verdict in formatting.MEANINGS if verdict in found],
        "checks": [
            [templating.strong(check.status), check.name, check.text] for check in outcome.checks
        ],
        "spread": spread(plan, outcome),
        "intervals": formatting.intervals(plan),
    }


def _parameters(run: RunDirectory, manifest: Manifest, outcome: Outcome) -> dict[str, Any]:
    """Return what was run: network, workloads, schemes, limits, equations, and what was built."""
    plan, by_simulator = manifest.plan, manifest.backend == "simulator"
    return {
        "equations": parameters.equations(plan, simulated=by_simulator),
        "constants": [
            (templating.code(name), formatting.number(value))
            for name, value in plan.judged.constants.items()
        ],
        "network": parameters.network(plan, simulated=by_simulator),
        "workloads": parameters.workloads(plan),
        "schemes": parameters.schemes(plan, simulated=by_simulator),
        "limiters": parameters.limiters(plan),
        "link_heads": links.heads(outcome),
        "loads": links.loads(plan, outcome),
        "built": asbuilt.summary(run, plan),
        "simulated_schemes": simulated.schemes(run, plan) if by_simulator else [],
        "packets": simulated.packets(run, plan) if by_simulator else None,
    }


def _named(arm: ArmSummary) -> markupsafe.Markup:
    return templating.lines([arm.label, templating.code(arm.name)])


def _verdict(row: VerdictRow) -> list[object]:
    """Return a row of the table of verdicts."""
    statement = (
        f"{row.statement}{' (gate)' if row.gate else ''}{f' ({row.note})' if row.note else ''}"
    )
    value = _VALUE.format(templating.code(row.shows)) if row.shows else ""
    predicate = _FOLDED.format(row.claim, templating.lines([templating.code(row.predicate), value]))
    notes = [
        templating.soft(words)
        for words in (formatting.published(row), formatting.perturbed(row))
        if words
    ]
    claim = templating.lines([statement, *notes])
    return [templating.strong(row.verdict), formatting.value(row), claim + predicate, row.source]


def _made_of(manifest: Manifest, outcome: Outcome) -> list[tuple[str, object]]:
    """Return hashes and versions of what the run was made with."""
    hashes = {"plan": manifest.plan_sha256, "results": outcome.results_sha256, **manifest.machine}
    return [
        *((name, templating.code(value)) for name, value in hashes.items()),
        *manifest.versions.items(),
    ]


def _trial(name: str, record: TrialRecord) -> list[str]:
    times = (
        formatting.NONE if time is None else formatting.number(time)
        for time in (record.virtual_s, record.wall_s)
    )
    return [name, record.status, str(record.exit_code), *times, record.message]


def spread(plan: Plan, outcome: Outcome) -> list[tuple[str, str, str, str, str]]:
    """Return rows: arm, workload, measure, the value of each seed, and the median's 95 % interval
    if there are enough seeds."""
    labels = {
        workload.name: registry.headings(workload)
        for arm in plan.arms
        for workload in arm.workloads
    }
    rows = []
    for arm in outcome.arms:
        for workload, measured in arm.measures.items():
            measures = (
                (key, label)
                for key, label in labels[workload].items()
                if key in measured and key not in NOT_SPREAD
            )
            rows += [
                (arm.label, workload, label, *_seeds(measured[key])) for key, label in measures
            ]
        for workload, flows in arm.flows.items():
            rows += [
                (arm.label, workload, f"goodput {flow}, Mb/s", *_seeds(values))
                for flow, values in flows.items()
            ]
    return rows


def commands(run: RunDirectory, manifest: Manifest) -> list[str]:
    """Return the command lines that repeat the run, and that read it again."""
    checkout = [f"git checkout {manifest.git.commit}"] if manifest.git.commit else []
    folder = _out(manifest.argv) / run.path.name
    return [
        *checkout,
        shlex.join(manifest.argv),
        shlex.join(["qjump-mn", "report", folder.as_posix()]),
    ]


def _out(argv: Sequence[str]) -> Path:
    """Return the folder in which a command line makes its run directory."""
    values = [value for option, value in pairwise(argv) if option == "--out"]
    values += [
        argument.removeprefix("--out=") for argument in argv if argument.startswith("--out=")
    ]
    return Path(values[-1] if values else "results")


def _seeds(values: Spread) -> tuple[str, str]:
    by_seed = "; ".join(
        f"{seed}: {formatting.number(value)}"
        for seed, value in zip(values.seeds, values.values, strict=True)
    )
    interval = (
        f"{formatting.number(values.interval95[0])} to {formatting.number(values.interval95[1])}"
        if values.interval95
        else formatting.NONE
    )
    return by_seed, interval


def _svg(path: Path, prefix: str) -> markupsafe.Markup:
    """Return an SVG file for use inside HTML: without its prologue, and with names that no other
    figure has."""
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{prefix}-", text)
    # The size in points would win over the page's width.
    text = re.sub(
        r"^<svg [^>]*>",
        lambda match: re.sub(r' (?:width|height)="[^"]*"', "", match[0]),
        text,
        count=1,
    )
    # What it shows is told by the element around it, once.
    text = text.replace("<svg ", '<svg aria-hidden="true" ', 1)
    return markupsafe.Markup(text)
