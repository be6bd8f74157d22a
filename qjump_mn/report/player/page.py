"""Write the player's page, which contains all of its data and fetches nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.model.watch import SIMULATED
from qjump_mn.process.files import write_atomically
from qjump_mn.programs.facts import TrialTables
from qjump_mn.report import pages, templating
from qjump_mn.report.player import packing
from qjump_mn.report.player.packing import Watched
from qjump_mn.results import contents, frames
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest

MAX_ROWS = 400_000
"""Frames of all arms in the page; further arms are left out."""

_IN_HOSTS = "What waits in a host, in its limiter or before its link: the trace begins on the link."

_STYLES, _SCRIPTS = (
    ("report.css", "timeline.css", "player.css"),
    (
        "player.js",
        "player-view.js",
        "player-recorded.js",
    ),
)


def write(run: RunDirectory, manifest: Manifest, data: Sequence[TrialTables]) -> None:
    """Write the page if frames were recorded that can be read; else remove an older one."""
    path = run.path / contents.PLAYER
    if manifest.plan.run.watch is None:
        return
    watched, notes = _read(run, manifest, data)
    if not watched:
        path.unlink(missing_ok=True)
        return
    template = templating.page("player.html.jinja")
    write_atomically(path, template.render(_context(run, manifest, watched, notes)).encode())


def _read(
    run: RunDirectory, manifest: Manifest, data: Sequence[TrialTables]
) -> tuple[list[Watched], list[str]]:
    """Return the arms' frames, those of the figure first, and sentences on what is missing."""
    watch, rows = manifest.plan.run.watch, 0
    simulated = manifest.backend == SIMULATED
    watched: list[Watched] = []
    notes: list[str] = []
    assert watch is not None
    by_arm = {tables.trial.arm.name: tables for tables in data if tables.trial.watch}
    for arm in _in_order(manifest.plan):
        if (tables := by_arm.get(arm.name)) is None:
            continue
        try:
            found = frames.read(run.trial(tables.trial.name))
        except (OSError, ValueError):
            found = None
        if found is None:
            notes.append(f"{arm.label}: its frames cannot be read.")
        elif watched and rows + len(found.device) > MAX_ROWS:
            notes.append(f"{arm.label}: left out, because the page would be too large.")
        else:
            rows += len(found.device)
            zero_ns = tables.facts.began_ns + watch.start_ns
            watched.append(Watched(arm, tables.trial.network, found, zero_ns))
            notes += _about(watched[-1], watch.length_ns, simulated=simulated)
    return watched, [*notes, _IN_HOSTS] if simulated else notes


def _about(one: Watched, length_ns: int, *, simulated: bool) -> Iterator[str]:
    lasted_ns = one.frames.to_ns - one.zero_ns
    if lasted_ns < length_ns:
        yield (
            f"{one.arm.label}: there was room for {len(one.frames.device)} frames and drops, so "
            f"it ends after {lasted_ns / 1e6:.6g} ms."
        )
    if simulated and one.network.multipath:
        yield (
            f"{one.arm.label}: what waits longer than a full queue takes to send, at a switch with "
            "several ways on: the trace does not tell at which port."
        )
    if simulated:
        return
    if one.arm.scheme.switch_port or one.arm.scheme.trunk_port:
        yield f"{one.arm.label}: what waits in the scheme's own queues is not seen."
    if one.arm.qjump is not None:
        yield f"{one.arm.label}: what waits in hosts' limiters, before the wire, is not seen."


def _in_order(plan: Plan) -> list[ArmPlan]:
    """Return the arms to run: those of the figure with most workloads first, then its others."""
    shown = plan.shown.figure.arms
    most = max(len(arm.workloads) for arm in plan.run.arms)
    return sorted(
        plan.run.arms,
        key=lambda arm: (
            not {arm.name, arm.series} & set(shown),
            len(arm.workloads) < most,
        ),
    )


def _context(
    run: RunDirectory, manifest: Manifest, watched: list[Watched], notes: list[str]
) -> dict[str, Any]:
    plan, tick = manifest.plan, packing.tick_ns(watched)
    watch = plan.run.watch
    assert watch is not None
    packed = [packing.pack(one, tick, plan.shown.figure.workload) for one in watched]
    content = {
        "tick_ns": tick,
        "start_ns": watch.start_ns,
        "mtu": plan.shown.network.mtu_bytes,
        "arms": [content for content, _ in packed],
    }
    return {
        "plan": plan,
        "run": run.path.name,
        "notes": notes,
        "style": pages.asset(_STYLES),
        "script": pages.asset(_SCRIPTS),
        "data": pages.json(content),
        "blobs": [blob for _, blob in packed],
    }
