"""``explain``: what an experiment asks and does, in words or as JSON."""

from __future__ import annotations

import msgspec
from rich.console import Console

from qjump_mn.model import loading, resolve
from qjump_mn.model.plan import Plan
from qjump_mn.results import wording
from qjump_mn.session import check_backends


def explain(experiment: str, preset: str, settings: list[str], out: Console) -> None:
    """Say in words what an experiment asks and does."""
    plan = resolve.plan(experiment, preset, settings)
    check_backends(plan)
    lines = [
        f"{plan.experiment}: {plan.title}",
        f"reproduces: {plan.reproduces}",
        "",
        *([plan.question, ""] if plan.question else []),
        f"network: {_network(plan)}",
        f"trial: {_trial(plan)}; seeds {', '.join(map(str, plan.seeds))}",
        f"backends: {', '.join(plan.backends)}",
        "",
        "presets:",
        *(
            f"  {'*' if name == preset else ' '} {name}: {about}"
            for name, about in loading.presets(experiment).items()
        ),
        "",
        "arms:",
    ]
    listed = set()
    for arm in plan.arms:
        limits = ""
        if arm.qjump is not None:
            budgets = ", ".join(
                f"level {level}: {arm.qjump.budget_bytes[level]} B"
                for level in range(7, -1, -1)
                if arm.qjump.budget_bytes[level]
            )
            limits = f"; limiter, {arm.qjump.mode}, epoch {arm.qjump.epoch_ns / 1e6:g} ms ({budgets})"
        runs = ", ".join(f"{workload.label} at level {workload.level}" for workload in arm.workloads)
        name, label = arm.name, arm.label
        if wording.same_limits(plan.arms, arm.series):
            xs = [f"{one.x:g}" for one in plan.arms if one.series == arm.series and one.x is not None]
            name, label = arm.series, f"{wording.series_label(arm)}; {', '.join(xs)}"
        if name not in listed:
            lines.append(f"  {name} ({label}): {runs}; scheme {arm.scheme.name}{limits}")
        listed.add(name)
    lines += ["", "claims:"]
    for name, claim in plan.claims.items():
        lines += [
            f"  {name}{' (must hold for the run to be valid)' if claim.gate else ''}: {claim.statement}",
            f"    {claim.predicate}",
        ]
    lines += ["", *plan.remarks]
    for line in lines:
        out.print(line, markup=False)


def explain_json(experiment: str, preset: str, settings: list[str], out: Console) -> None:
    """Print the plan as JSON: what is run, shown and judged."""
    plan = resolve.plan(experiment, preset, settings)
    out.print(msgspec.json.format(msgspec.json.encode(plan), indent=1).decode(), markup=False)


def _network(plan: Plan) -> str:
    network = plan.network
    links = f"{network.topology}, {len(network.hosts)} hosts, {network.told_links}"
    return (
        links
        if plan.backends[0] == "simulator"
        else f"{links} (model {network.model}), {network.link.buffer_bytes} B of buffer per level and port"
    )


def _trial(plan: Plan) -> str:
    if not plan.duration_ns:
        return "until all of its flows have ended"
    return f"{plan.warmup_ns / 1e9:g} s of warm-up, {plan.duration_ns / 1e9:g} s measured"
