"""Describe a run's parameters: network, workloads, schemes, limits, equations with numbers."""

from __future__ import annotations

import markupsafe

from qjump_mn import theory
from qjump_mn.model.hooks import HasEquations
from qjump_mn.model.plan import ArmPlan, Plan, QJumpPlan
from qjump_mn.model.topology import Link, told_tolerance
from qjump_mn.model.units import told_rate
from qjump_mn.model.workload import WorkloadPlan
from qjump_mn.programs import registry
from qjump_mn.report import templating
from qjump_mn.report.network import roles
from qjump_mn.results import formatting
from qjump_mn.steps.apply_arm import transport

MAX_FLOWS = 12
"""The most flows of a workload that are named one by one."""


def equations(plan: Plan, *, simulated: bool) -> list[tuple[str, str, str]]:
    """Return predictions: name, formula with numbers, value. Simulated packets have the scheme's
    wire bytes."""
    hosts, rate, mtu = (
        len(plan.shown.network.hosts),
        plan.shown.network.slowest_bps,
        plan.shown.network.mtu_bytes,
    )
    mbps, epoch = told_rate(rate), theory.network_epoch_ns(hosts, mtu, rate)
    rows = [
        (
            "Eq. 1, worst-case delay n·P/R",
            f"{hosts} × {mtu} B × 8 / {mbps}",
            f"{theory.worst_case_delay_ns(hosts, mtu, rate) / 1e6:g} ms",
        ),
        (
            "Eq. 2, network epoch 2·n·P/R",
            f"2 × {hosts} × {mtu} B × 8 / {mbps}",
            f"{epoch / 1e6:g} ms",
        ),
        (
            "Eq. 3, a host's rate at factor 1, P/epoch",
            f"{mtu} B × 8 / {epoch / 1e6:g} ms",
            f"{theory.host_rate_bps(mtu, epoch) / 1e3:.4g} kb/s",
        ),
    ]
    return rows if simulated else [*rows, *_frames(mtu, rate), *_programs(plan)]


def _frames(mtu: int, rate: int) -> list[tuple[str, str, str]]:
    """Return the rate of full-size frames on a link of ``rate`` b/s."""
    before, after = theory.PREAMBLE_BYTES, theory.INTERFRAME_GAP_BYTES
    full, payload = theory.frame_bytes(mtu), mtu - theory.TCP_HEADERS_BYTES
    return [
        (
            "a full-size frame on a link",
            f"({before} + {full} + {after}) B × 8 / {told_rate(rate)}",
            f"{theory.occupancy_ns(full, rate) / 1e6:g} ms",
        ),
        (
            "TCP payload of a full link",
            f"{told_rate(rate)} × {payload} / {full + theory.AROUND_FRAME_BYTES}",
            told_rate(theory.tcp_goodput_bps(mtu, rate)),
        ),
    ]


def _programs(plan: Plan) -> list[tuple[str, str, str]]:
    """Return the equations of each program's first workload; the others have the same formula."""
    firsts = {
        registry.of(workload).name: workload
        for arm in reversed(plan.arms)
        for workload in reversed(arm.workloads)
    }
    return [
        row
        for workload in firsts.values()
        if isinstance(workload, HasEquations)
        for row in workload.equations(plan.shown.network, plan.judged.constants)
    ]


def network(plan: Plan, *, simulated: bool) -> list[tuple[str, str]]:
    """Return the planned network and times."""
    net = plan.shown.network
    seeds = (
        "replicates",
        f"{len(plan.run.seeds)}: seed{'s' if len(plan.run.seeds) > 1 else ''} "
        f"{', '.join(str(seed) for seed in plan.run.seeds)}",
    )
    runs = [
        seeds,
        *([("perturbed runs", formatting.perturbations(plan))] if plan.run.perturbations else []),
    ]
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
                    f"{told_rate(net.trunk.rate_bps)}, {net.trunk.delay_ns / 1e3:g} us of "
                    "propagation",
                )
            )
        size = f"{len(net.hosts)} hosts, {len(net.switches)} switches"
        ends = (
            f"{plan.run.duration_ns / 1e9:g} s"
            if plan.run.duration_ns
            else "until every flow has ended"
        )
        return [("topology", f"{net.topology}: {size}"), *links, ("simulated", ends), *runs]
    return [
        ("topology", f"{net.topology}: {len(net.hosts)} hosts, {len(net.switches)} switches"),
        *_links("", net.link),
        *(_links(" between switches", net.trunk) if net.trunk != net.link else ()),
        *(
            (name, told)
            for name, told in (
                ("hosts", net.told_hosts),
                ("switches", net.told_switches),
                ("impairments", net.told_impairments),
                ("TCP", plan.shown.tcp.told),
            )
            if told
        ),
        *(
            (setting, f"calibrated on {measure}, published as {_told(plan, measure)}")
            for setting, measure in plan.judged.calibrated.items()
        ),
        *(("programs", arm.clock.told) for arm in plan.run.arms[:1] if arm.clock),
        ("MTU, VLAN", f"{net.mtu_bytes} B, VLAN {net.vlan}"),
        ("warm-up, measured", f"{plan.run.warmup_ns / 1e9:g} s, {plan.run.duration_ns / 1e9:g} s"),
        *runs,
    ]


def _told(plan: Plan, measure: str) -> str:
    value = plan.judged.published[measure]
    tell = formatting.magnitude if formatting.is_time(measure) else formatting.number
    return formatting.span(value if isinstance(value, tuple) else (value,), tell)


def _links(which: str, link: Link) -> list[tuple[str, str]]:
    delay = f", {link.delay_ns / 1e6:g} ms of propagation" if link.delay_ns else ""
    return [
        (
            f"links{which}",
            f"{told_rate(link.rate_bps)}{told_tolerance(link)}, model {link.model}{delay}",
        ),
        (
            f"buffer of a level and port{which}",
            f"{link.buffer_bytes} B, {link.buffer_bytes * 8e3 / link.rate_bps:.4g} ms",
        ),
    ]


def workloads(plan: Plan) -> list[tuple[str, str, str, str]]:
    """Return each workload: name, flows, description, and its 802.1Q priority in arms with
    levels."""
    by_name: dict[str, WorkloadPlan] = {}
    windows: dict[str, dict[int, list[str]]] = {}
    for arm in plan.run.arms:
        for workload in arm.workloads:
            if workload.name not in by_name or workload.level > by_name[workload.name].level:
                by_name[workload.name] = workload
            if workload.window_bytes is not None:
                windows.setdefault(workload.name, {}).setdefault(workload.window_bytes, []).append(
                    arm.label
                )
    rows = []
    for name, workload in by_name.items():
        what = workload.describe() + "".join(
            f"; socket buffers of {size} B in '{', '.join(labels)}'"
            for size, labels in windows.get(name, {}).items()
        )
        rows.append((name, roles.flows(workload, MAX_FLOWS), what, str(workload.level)))
    return rows


def schemes(plan: Plan, *, simulated: bool) -> list[tuple[str, str, markupsafe.Markup]]:
    """Return each scheme that was run: label, description and settings; the simulator has no
    settings."""
    arms = {arm.scheme.name: arm for arm in reversed(plan.run.arms)}
    return [
        (
            plan.shown.schemes[name].label,
            templating.sentence(plan.shown.schemes[name].about),
            templating.lines(map(templating.code, [] if simulated else _set(arm))),
        )
        for name, arm in reversed(arms.items())
    ]


def _set(arm: ArmPlan) -> list[str]:
    """Return an arm's scheme settings as shell or link settings."""
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


def limiters(plan: Plan) -> tuple[list[str], list[tuple[str, ...]], int] | None:
    """Return the rate limits as a table: heads, rows, and the number of columns with words; None
    without limits.

    Arms of a series with the same limits share a column.
    """
    shown: dict[tuple[str, QJumpPlan], list[str]] = {}
    for arm in plan.run.arms:
        if arm.qjump:
            label = (
                formatting.series_label(arm)
                if formatting.same_limits(plan.run.arms, arm.series)
                else arm.label
            )
            shown.setdefault((label, arm.qjump), limiter(arm.qjump))
    heads = ["", *(label for label, _ in shown)]
    names = ["epoch", "mode", *(f"priority {level}" for level in reversed(theory.LEVELS))]
    return (heads, list(zip(names, *shown.values(), strict=True)), len(heads)) if shown else None


def limiter(plan: QJumpPlan) -> list[str]:
    """Return an arm's epoch, mode, and budgets from priority 7 to 0, each with its rate."""
    budgets = []
    for level in reversed(theory.LEVELS):
        rate = formatting.budget_mbps(plan.budget_bytes[level], plan.epoch_ns)
        none = "nothing passes" if plan.blocks(level) else "unlimited"
        budgets.append(
            none
            if rate is None
            else f"{plan.budget_bytes[level]} B = {formatting.number(rate)} Mb/s"
        )
    waits = f", at most {plan.limit_packets} packets wait" if plan.keeps_budgets else ""
    slack = f", {plan.slack_ns / 1e3:g} us of slack" if plan.slack_ns else ""
    return [f"{plan.epoch_ns / 1e6:g} ms, {plan.epochs}{slack}", f"{plan.mode}{waits}", *budgets]
