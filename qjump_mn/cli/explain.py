"""``explain``: describe an experiment's question, arms, claims and presets, in words or as JSON."""

from __future__ import annotations

import textwrap

import msgspec
from rich.console import Console

from qjump_mn import resolve
from qjump_mn.backends import estimate, registry
from qjump_mn.errors import UsageError
from qjump_mn.model import tables, units
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.resolve import loading, sweep
from qjump_mn.results import formatting, panels
from qjump_mn.session import check_plan


def explain(experiment: str, preset: str, settings: list[str], out: Console) -> None:
    """Print what an experiment asks and does in short, and the time and memory of each preset."""
    plan = _plan(experiment, preset, settings)
    arms = {_series(plan, arm): None for arm in plan.arms}
    lines = [
        f"{plan.shown.experiment}: {plan.shown.title}",
        f"reproduces: {plan.shown.reproduces}",
        "",
        *([plan.shown.question, ""] if plan.shown.question else []),
        *_frame(plan),
        *_presets(experiment, preset),
        "arms:",
        *(f"  {name}: {label}" for name, label in arms),
        "",
        "claims:",
        *(f"  {name}: {claim.statement}" for name, claim in plan.judged.claims.items()),
        "",
        f"qjump-mn explain {experiment} --all  shows workloads, limits, predicates, remarks and "
        "settings.",
    ]
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        out.print(textwrap.fill(line, out.width, subsequent_indent=indent), markup=False)


def explain_all(experiment: str, preset: str, settings: list[str], out: Console) -> None:
    """Print everything that an experiment asks and does, and its settings."""
    plan = _plan(experiment, preset, settings)
    lines = [
        f"{plan.shown.experiment}: {plan.shown.title}",
        f"reproduces: {plan.shown.reproduces}",
        "",
        *([plan.shown.question, ""] if plan.shown.question else []),
        *_frame(plan),
        *_presets(experiment, preset),
        "arms:",
        *dict.fromkeys(_arm(plan, arm) for arm in plan.arms),
        "",
        "claims:",
    ]
    for name, claim in plan.judged.claims.items():
        lines += [
            f"  {name}{' (must hold for the run to be valid)' if claim.gate else ''}: "
            f"{claim.statement}",
            f"    {claim.predicate}",
        ]
    spec, _ = loading.experiment(experiment, preset, settings)
    plain = msgspec.to_builtins(spec, enc_hook=units.encode)
    lines += ["", *plan.shown.remarks, "", "settings, to change with -s:"]
    lines += (f"  {setting}" for setting in tables.values(plain))
    for line in lines:
        out.print(line, markup=False)


def explain_json(experiment: str, preset: str, settings: list[str], out: Console) -> None:
    """Print the plan as JSON: what is run, shown and judged."""
    plan = _plan(experiment, preset, settings)
    out.print(msgspec.json.format(msgspec.json.encode(plan), indent=1).decode(), markup=False)


def _plan(experiment: str, preset: str, settings: list[str]) -> Plan:
    """Resolve the plan of a run; raise :class:`UsageError` for settings that make none, or
    several."""
    if len(sweep.combinations(experiment, preset, settings)) > 1:
        raise UsageError("explain describes one plan: give every -s one value")
    plan = resolve.plan(experiment, preset, settings)
    check_plan(plan)
    return plan


def _network(plan: Plan) -> str:
    network = plan.shown.network
    links = f"{network.topology}, {len(network.hosts)} hosts, {network.told_links}"
    return (
        links
        if plan.shown.backends[0] == "simulator"
        else f"{links} (model {network.model}), {network.link.buffer_bytes} B of buffer per level "
        "and port"
    )


def _trial(plan: Plan) -> str:
    if not plan.run.duration_ns:
        return "until all flows have ended"
    return f"{plan.run.warmup_ns / 1e9:g} s of warm-up, {plan.run.duration_ns / 1e9:g} s measured"


def _frame(plan: Plan) -> list[str]:
    return [
        f"network: {_network(plan)}",
        f"trial: {_trial(plan)}; {formatting.seeds(plan.run.seeds)}",
        f"backends: {', '.join(plan.shown.backends)}",
        "",
    ]


def _presets(experiment: str, preset: str) -> list[str]:
    """Return a line for each preset with its time and memory here; the explained one is marked."""
    return [
        "presets, with what each takes on this machine:",
        *(
            f"  {'*' if name == preset else ' '} {name}: {_cost(experiment, name)}; {about}"
            for name, about in loading.presets(experiment).items()
        ),
        "",
    ]


def _cost(experiment: str, preset: str) -> str:
    plan = resolve.plan(experiment, preset, [])
    return str(estimate.run(plan, registry.make(plan.shown.backends[0])))


def _series(plan: Plan, arm: ArmPlan) -> tuple[str, str]:
    """Return the name and the label of an arm, or of the sweep that it belongs to."""
    if not formatting.same_limits(plan.arms, arm.series):
        return arm.name, arm.label
    values = [panels.point(member) for member in plan.arms if member.series == arm.series]
    return arm.series, f"{formatting.series_label(arm)}; {', '.join(values)}"


def _arm(plan: Plan, arm: ArmPlan) -> str:
    """Describe an arm with its workloads, scheme and limits."""
    limits = ""
    if arm.qjump is not None:
        budgets = ", ".join(
            f"level {level}: {arm.qjump.budget_bytes[level]} B"
            for level in range(7, -1, -1)
            if arm.qjump.budget_bytes[level]
        )
        limits = f"; limiter, {arm.qjump.mode}, epoch {arm.qjump.epoch_ns / 1e6:g} ms ({budgets})"
    runs = ", ".join(f"{workload.label} at level {workload.level}" for workload in arm.workloads)
    name, label = _series(plan, arm)
    return f"  {name} ({label}): {runs}; scheme {arm.scheme.name}{limits}"
