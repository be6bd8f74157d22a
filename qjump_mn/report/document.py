"""``report.md`` and a self-contained ``report.html``: what was asked, what came out, and how to do it
again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import markupsafe

from qjump_mn import theory
from qjump_mn.model.plan import ArmPlan, Plan, QJumpPlan
from qjump_mn.model.topology import Link, told_tolerance
from qjump_mn.model.units import told_rate
from qjump_mn.programs import registry
from qjump_mn.programs.base import WorkloadPlan
from qjump_mn.report import (
    ablation,
    asbuilt,
    challenges,
    links,
    missing_figures,
    notes,
    original,
    pdf,
    ratios,
    simulated,
    templating,
)
from qjump_mn.report.figures import numbers
from qjump_mn.report.network import drawing, roles
from qjump_mn.report.timelines import page as timelines
from qjump_mn.results import formatting, remarks, result_tables, summary
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest, TrialRecord, write_atomically
from qjump_mn.results.outcome import Outcome, Spread
from qjump_mn.steps.treatment import transport

_LINES = markupsafe.Markup('{}<br><code class="soft">{}</code>')
_CODE = markupsafe.Markup("<code>{}</code>")
PICTURE = "fig/network.svg"
"""Where the drawing of the network lies in the run directory."""
MOST_FLOWS = 12
"""Of a workload, that are named one by one."""
NOT_SPREAD = {"sent", "received", "min_ms", "p90_ms", "p999_ms", "mean_ms"}
"""Measures that claims may use and the table of spreads leaves out."""


def write(run: RunDirectory, manifest: Manifest, outcome: Outcome) -> tuple[Path, Path]:
    """Write both reports into the run directory; return where they are, HTML first."""
    notes.begin(run.path)
    (run.path / pdf.NAME).unlink(missing_ok=True)  # it is of another report
    content = context(run, manifest, outcome)
    run.figures.mkdir(exist_ok=True)
    write_atomically(run.path / PICTURE, content["drawn"].svg.encode())
    pages = (run.path / "report.html", run.path / "report.md")
    write_atomically(pages[0], templating.page("report.html.jinja").render(content).encode())
    write_atomically(pages[1], templating.text("report.md.jinja").render(content).encode())
    return pages


def context(run: RunDirectory, manifest: Manifest, outcome: Outcome) -> dict[str, Any]:
    """Everything that the templates need, already worded."""
    plan, by_simulator = manifest.plan, manifest.backend == "simulator"
    told_schemes = schemes(plan, simulated=by_simulator)
    return {
        "run": run.path.name,
        "manifest": manifest,
        "plan": plan,
        "outcome": outcome,
        "wording": formatting,
        "lead": original.lead,
        "undrawn": missing_figures.why(plan, outcome),
        "tabulated": result_tables,
        "figures": [
            (drawing, _svg(run.path / drawing.files["svg"], drawing.name)) for drawing in outcome.drawings
        ],
        "numbers": {
            drawing.name: numbers.read(run.path / drawing.files["csv"])
            for drawing in outcome.drawings
            if "csv" in drawing.files
        },
        "blocks": [
            (
                [*block.heads, "replicates"],
                [(arm, [*cells, formatting.replicates(arm)]) for arm, cells in block.rows],
            )
            for block in result_tables.blocks(plan, outcome.arms)
        ],
        "named": lambda arm: _LINES.format(arm.label, arm.name),
        "ratios": ratios.tables(plan, outcome),
        "sentences": remarks.of(plan, outcome),
        "used": [
            verdict
            for verdict in formatting.MEANINGS
            if any(row.verdict == verdict for row in outcome.verdicts)
        ],
        "equations": equations(plan, simulated=by_simulator),
        "network": network(plan, simulated=by_simulator),
        "workloads": workloads(plan),
        "schemes": told_schemes,
        "scheme_rows": [
            (
                label,
                templating.sentence(about),
                markupsafe.Markup("<br>").join(_CODE.format(line) for line in lines),
            )
            for label, about, lines in told_schemes
        ],
        "limiters": limiters(plan),
        "link_heads": links.heads(outcome),
        "loads": links.loads(plan, outcome),
        "built": asbuilt.summary(run, plan),
        "simulated": by_simulator,
        "simulated_schemes": simulated.schemes(run, plan) if by_simulator else [],
        "packets": simulated.packets(run, plan) if by_simulator else None,
        "spread": spread(plan, outcome),
        "intervals": formatting.intervals(plan),
        "timelines": timelines.links(run, plan),
        "commands": commands(run, manifest),
        "trials": [_trial(name, manifest.trials[name]) for name in sorted(manifest.trials)],
        **_around(run, manifest, outcome),
    }


def _around(run: RunDirectory, manifest: Manifest, outcome: Outcome) -> dict[str, Any]:
    """What a report has beside the results themselves."""
    plan = manifest.plan
    return {
        "summary": summary.of(plan, outcome),
        "written": notes.read(run.path),
        "notes": notes.NAME,
        "subset": original.subset(plan, outcome),
        "original": original.original(plan, outcome),
        "original_heads": original.HEADS,
        "drawn": drawing.draw(plan, outcome),
        "picture": PICTURE,
        "steps": ablation.steps(plan, outcome),
        "step_heads": ablation.heads(plan),
        "challenges": challenges.told(run, manifest, outcome),
    }


def _trial(name: str, record: TrialRecord) -> list[str]:
    times = (
        formatting.NONE if time is None else formatting.number(time)
        for time in (record.virtual_s, record.wall_s)
    )
    return [name, record.status, str(record.exit_code), *times, record.message]


def equations(plan: Plan, *, simulated: bool) -> list[tuple[str, str, str]]:
    """What is computed beforehand: name, formula with its numbers, value. Simulated packets have the bytes on
    the wire that a scheme says."""
    hosts, rate, mtu = len(plan.network.hosts), plan.network.slowest_bps, plan.network.mtu_bytes
    mbps, full = told_rate(rate), theory.frame_bytes(mtu)
    epoch = theory.network_epoch_ns(hosts, mtu, rate)
    rows = [
        (
            "Eq. 1, worst-case delay n·P/R",
            f"{hosts} × {mtu} B × 8 / {mbps}",
            f"{theory.worst_case_delay_ns(hosts, mtu, rate) / 1e6:g} ms",
        ),
        ("Eq. 2, network epoch 2·n·P/R", f"2 × {hosts} × {mtu} B × 8 / {mbps}", f"{epoch / 1e6:g} ms"),
        (
            "Eq. 3, a host's rate at factor 1, P/epoch",
            f"{mtu} B × 8 / {epoch / 1e6:g} ms",
            f"{theory.host_rate_bps(mtu, epoch) / 1e3:.4g} kb/s",
        ),
    ]
    if simulated:
        return rows
    before, after = theory.PREAMBLE_BYTES, theory.INTERFRAME_GAP_BYTES
    payload, wire = mtu - theory.TCP_HEADERS_BYTES, full + theory.AROUND_FRAME_BYTES
    rows += [
        (
            "a full-size frame on a link",
            f"({before} + {full} + {after}) B × 8 / {mbps}",
            f"{theory.occupancy_ns(full, rate) / 1e6:g} ms",
        ),
        (
            "TCP payload of a full link",
            f"{mbps} × {payload} / {wire}",
            told_rate(theory.tcp_goodput_bps(mtu, rate)),
        ),
    ]
    # One of each program: the formula is the same for the others.
    firsts = {
        registry.of(workload).name: workload
        for arm in reversed(plan.arms)
        for workload in reversed(arm.workloads)
    }
    return rows + [
        row for workload in firsts.values() for row in workload.equations(plan.network, plan.constants)
    ]


def network(plan: Plan, *, simulated: bool) -> list[tuple[str, str]]:
    """The network and the times, as planned."""
    net = plan.network
    seeds = (
        "replicates",
        f"{len(plan.seeds)}: seed{'s' if len(plan.seeds) > 1 else ''} "
        f"{', '.join(str(seed) for seed in plan.seeds)}",
    )
    runs = [seeds, *([("perturbed runs", formatting.perturbations(plan))] if plan.perturbations else [])]
    if simulated:
        links = [
            (
                "links of hosts",
                f"{told_rate(net.link.rate_bps)}, {net.link.delay_ns / 1e3:g} us of propagation",
            )
        ]
        if len(net.switches) > 1:
            links.append(
                (
                    "links between switches",
                    f"{told_rate(net.trunk.rate_bps)}, {net.trunk.delay_ns / 1e3:g} us of propagation",
                )
            )
        size = f"{len(net.hosts)} hosts, {len(net.switches)} switches"
        ends = f"{plan.duration_ns / 1e9:g} s" if plan.duration_ns else "until every flow has ended"
        return [("topology", f"{net.topology}: {size}"), *links, ("simulated", ends), *runs]
    return [
        ("topology", f"{net.topology}: {len(net.hosts)} hosts, {len(net.switches)} switches"),
        *_links("", net.link),
        *(_links(" between switches", net.trunk) if net.trunk != net.link else ()),
        *((name, told) for name, told in (("hosts", net.told_hosts), ("TCP", plan.tcp.told)) if told),
        *(("programs", arm.clock.told) for arm in plan.arms_run[:1] if arm.clock),
        ("MTU, VLAN", f"{net.mtu_bytes} B, VLAN {net.vlan}"),
        ("warm-up, measured", f"{plan.warmup_ns / 1e9:g} s, {plan.duration_ns / 1e9:g} s"),
        *runs,
    ]


def _links(which: str, link: Link) -> list[tuple[str, str]]:
    delay = f", {link.delay_ns / 1e6:g} ms of propagation" if link.delay_ns else ""
    return [
        (f"links{which}", f"{told_rate(link.rate_bps)}{told_tolerance(link)}, model {link.model}{delay}"),
        (
            f"buffer of a level and port{which}",
            f"{link.buffer_bytes} B, {link.buffer_bytes * 8e3 / link.rate_bps:.4g} ms",
        ),
    ]


def workloads(plan: Plan) -> list[tuple[str, str, str, str]]:
    """Each workload: name, flows, what it does, and its 802.1Q priority in the arms that use levels."""
    by_name: dict[str, WorkloadPlan] = {}
    windows: dict[str, dict[int, list[str]]] = {}
    for arm in plan.arms_run:
        for workload in arm.workloads:
            if workload.name not in by_name or workload.level > by_name[workload.name].level:
                by_name[workload.name] = workload
            if workload.window_bytes is not None:
                windows.setdefault(workload.name, {}).setdefault(workload.window_bytes, []).append(arm.label)
    rows = []
    for name, workload in by_name.items():
        what = workload.describe() + "".join(
            f"; socket buffers of {size} B in '{', '.join(labels)}'"
            for size, labels in windows.get(name, {}).items()
        )
        rows.append((name, roles.flows(workload, MOST_FLOWS), what, str(workload.level)))
    return rows


def schemes(plan: Plan, *, simulated: bool) -> list[tuple[str, str, list[str]]]:
    """Each scheme of the arms that were run: label, what it is, and what it set; the simulator sets no such
    thing."""
    arms = {arm.scheme.name: arm for arm in reversed(plan.arms_run)}
    return [
        (plan.schemes[name].label, plan.schemes[name].about, [] if simulated else _set(arm))
        for name, arm in arms.items()
    ][::-1]


def _set(arm: ArmPlan) -> list[str]:
    """What an arm's scheme set, as a shell or a link has it."""
    done = [f"{key.removeprefix('net.ipv4.')} = {value}" for key, value in transport(arm).items()]
    done += [f"switch port: tc {line}" for line in arm.scheme.switch_port]
    done += [
        f"port to another switch: tc {line}"
        for line in arm.scheme.trunk_port
        if line not in arm.scheme.switch_port
    ]
    done += [f"host: tc {line}" for line in arm.scheme.host]
    done += [f"host's VLAN device: tc {line}" for line in arm.scheme.vlan]
    link = arm.network.link
    if link.xoff_bytes:
        paused = "levels" if link.pfc else "links"
        done.append(f"{paused}: pause above {link.xoff_bytes} B, resume at {link.xon_bytes} B")
    return done


def limiters(plan: Plan) -> list[dict[str, Any]]:
    """The rate limits of each arm that has some; arms of a series whose limits are all the same are told
    once."""
    shown: dict[tuple[str, QJumpPlan], dict[str, Any]] = {}
    for arm in plan.arms_run:
        if arm.qjump:
            label = (
                formatting.series_label(arm)
                if formatting.same_limits(plan.arms_run, arm.series)
                else arm.label
            )
            shown.setdefault((label, arm.qjump), {**limiter(arm), "label": label})
    return list(shown.values())


def limiter(arm: ArmPlan) -> dict[str, Any]:
    """An arm's rate limits; budgets are from priority 7 to 0, each with the rate that it stands for."""
    assert arm.qjump is not None
    plan = arm.qjump
    budgets = []
    for level in reversed(theory.LEVELS):
        rate = formatting.budget_mbps(plan.budget_bytes[level], plan.epoch_ns)
        none = "nothing passes" if plan.blocks(level) else "unlimited"
        budgets.append(
            none if rate is None else f"{plan.budget_bytes[level]} B = {formatting.number(rate)} Mb/s"
        )
    waits = f", at most {plan.limit_packets} packets wait" if plan.keeps_budgets else ""
    return {
        "label": arm.label,
        "epoch": f"{plan.epoch_ns / 1e6:g} ms, {plan.epochs}"
        + (f", {plan.slack_ns / 1e3:g} us of slack" if plan.slack_ns else ""),
        "mode": f"{plan.mode}{waits}",
        "budgets": budgets,
    }


def spread(plan: Plan, outcome: Outcome) -> list[tuple[str, str, str, str, str]]:
    """Arm, workload, measure, the value of each seed, and the 95 % interval of the median where there are
    seeds enough."""
    labels = {workload.name: registry.headings(workload) for arm in plan.arms for workload in arm.workloads}
    rows = []
    for arm in outcome.arms:
        for workload, measured in arm.measures.items():
            measures = (
                (key, label)
                for key, label in labels[workload].items()
                if key in measured and key not in NOT_SPREAD
            )
            rows += [(arm.label, workload, label, *_seeds(measured[key])) for key, label in measures]
        for workload, flows in arm.flows.items():
            rows += [
                (arm.label, workload, f"goodput {flow}, Mb/s", *_seeds(values))
                for flow, values in flows.items()
            ]
    return rows


def commands(run: RunDirectory, manifest: Manifest) -> list[str]:
    """What to type to do it again, and to read this run again."""
    checkout = [f"git checkout {manifest.git.commit}"] if manifest.git.commit else []
    folder = _out(manifest.argv) / run.path.name
    return [*checkout, shlex.join(manifest.argv), shlex.join(["qjump-mn", "report", folder.as_posix()])]


def _out(argv: Sequence[str]) -> Path:
    """The folder in which a command line makes its run directory."""
    values = [value for option, value in pairwise(argv) if option == "--out"]
    values += [argument.removeprefix("--out=") for argument in argv if argument.startswith("--out=")]
    return Path(values[-1] if values else "results")


def _seeds(values: Spread) -> tuple[str, str]:
    by_seed = "; ".join(
        f"{seed}: {formatting.number(value)}" for seed, value in zip(values.seeds, values.values, strict=True)
    )
    interval = (
        f"{formatting.number(values.interval95[0])} to {formatting.number(values.interval95[1])}"
        if values.interval95
        else formatting.NONE
    )
    return by_seed, interval


def _svg(path: Path, prefix: str) -> markupsafe.Markup:
    """An SVG file as part of an HTML page: without its prologue, its names made different from those of other
    figures."""
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{prefix}-", text)
    # The size in points would win over the page's width.
    text = re.sub(
        r"^<svg [^>]*>", lambda match: re.sub(r' (?:width|height)="[^"]*"', "", match[0]), text, count=1
    )
    # What it shows is told by the element around it, once.
    text = text.replace("<svg ", '<svg aria-hidden="true" ', 1)
    return markupsafe.Markup(text)
