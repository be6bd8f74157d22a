"""Write the page of a trial's time line, which contains all of its data and fetches nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import markupsafe
import msgspec
import numpy as np

from qjump_mn.errors import LostError
from qjump_mn.model import hooks
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.process.files import write_atomically
from qjump_mn.programs import registry
from qjump_mn.programs.facts import TrialTables
from qjump_mn.programs.tracks import Track
from qjump_mn.report import pages, templating
from qjump_mn.report.timelines import packing, ports, recorded, sampled
from qjump_mn.report.timelines.packing import Store
from qjump_mn.results import contents, counter_readings, formatting, queues, series
from qjump_mn.results.counter_readings import Reading
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.queues import Queues
from qjump_mn.results.series import Series

_MOST_TICKS = (1 << 31) - 1
"""Of the time axis: a time is a number of 32 bits in the page."""


class Link(NamedTuple):
    """A trial's page: the arm's label, the seed, and its path below the run directory."""

    label: str
    seed: int
    path: str


class Lane(NamedTuple):
    """Lines with one value axis: heading, unit and tracks."""

    title: str
    unit: str
    tracks: tuple[Track, ...]


def write(run: RunDirectory, manifest: Manifest, data: Sequence[TrialTables]) -> None:
    """Write the page of each trial of ``data``; those of others are left as they are."""
    (run.path / contents.TIMELINES).mkdir(exist_ok=True)
    names = [tables.trial.name for tables in data]
    template = templating.page("timeline.html.jinja")
    for tables in data:
        others = [
            _link(trial) for trial in manifest.plan.unperturbed.trials() if trial.name in names
        ]
        content = template.render(_context(run, manifest, tables, others))
        write_atomically(run.path / _link(tables.trial).path, content.encode())


def links(run: RunDirectory, plan: Plan) -> list[Link]:
    """Return the existing pages, in the plan's order."""
    pages = [_link(trial) for trial in plan.unperturbed.trials()]
    return [page for page in pages if (run.path / page.path).is_file()]


def _link(trial: Trial) -> Link:
    return Link(trial.arm.label, trial.seed, contents.timeline(trial))


def _context(
    run: RunDirectory, manifest: Manifest, tables: TrialTables, others: Sequence[Link]
) -> dict[str, Any]:
    plan, trial = manifest.plan, tables.trial
    read, samples, queued = _readings(run, tables), _series(run, tables), _queues(run, tables)
    lanes = list(_lanes(plan, tables, read, samples, queued))
    style, script = (
        pages.asset(names) for names in (("report.css", "timeline.css"), ("timeline.js",))
    )
    data, blob = _drawn(tables, lanes, read)
    return {
        "plan": plan,
        "trial": trial,
        "run": run.path.name,
        "link": _link(trial),
        "others": others,
        "lanes": lanes,
        "unrecorded": list(_unrecorded(manifest, tables, lanes, read, samples, queued)),
        "tables": sorted(
            path.relative_to(run.path).as_posix() for path in run.data(trial.name).glob("*.parquet")
        ),
        "heads": ["port", *ports.HEADS],
        "rows": [[row.name, *row.cells] for row in ports.rows(read)],
        "epoch": _epoch(tables),
        "style": style,
        "script": script,
        "data": data,
        "blob": blob,
    }


def _readings(run: RunDirectory, tables: TrialTables) -> list[Reading]:
    """Return the ports' readings; empty if missing or damaged, because the page must be written."""
    if tables.facts.read_ns is None:
        return []
    trial = tables.trial
    try:
        return list(
            counter_readings.of_trial(trial.network, run.trial(trial.name), tables.facts.read_ns)
        )
    except (LostError, KeyError, ValueError):
        return []


def _series(run: RunDirectory, tables: TrialTables) -> Series | None:
    """Return a simulated trial's samples; empty if missing or damaged."""
    try:
        return series.read(run.trial(tables.trial.name))
    except (OSError, msgspec.DecodeError):
        return None


def _queues(run: RunDirectory, tables: TrialTables) -> Queues | None:
    """Return what the guest recorded of queues; None if missing or damaged."""
    try:
        found = queues.read(run.trial(tables.trial.name))
    except (OSError, ValueError):
        return None
    known = tables.trial.network.ways()
    return found if found and all(line.device in known for line in found.lines) else None


def _lanes(
    plan: Plan,
    tables: TrialTables,
    read: Sequence[Reading],
    samples: Series | None,
    queued: Queues | None,
) -> Iterator[Lane]:
    """Return the lanes: measured workloads first, then load, then ports."""
    trial, facts = tables.trial, tables.facts
    workloads = sorted(
        trial.arm.workloads,
        key=lambda workload: (
            workload.name != plan.shown.figure.workload,
            hooks.is_background(workload),
        ),
    )
    for workload in workloads:
        tracks = registry.measures(workload).tracks(
            tables.tables[workload.name], workload, trial, facts
        )
        yield from _by_axis(plan, f"{workload.label}: ", tracks)
    if queued is not None:
        yield from _by_axis(plan, "", recorded.tracks(queued, trial.network, facts.began_ns))
    yield from _by_axis(plan, "", ports.tracks(read, facts.began_ns, between=queued is None))
    if samples is not None:
        yield from _by_axis(plan, "", sampled.tracks(samples, facts.began_ns))


def _by_axis(plan: Plan, before: str, tracks: Iterator[Track]) -> Iterator[Lane]:
    found: dict[str, list[Track]] = {}
    for track in tracks:
        if len(track.at_ns):
            found.setdefault(track.what, []).append(track)
    for what, each in found.items():
        unit = formatting.unit(plan) if each[0].unit == "ms" else each[0].unit
        yield Lane(f"{before}{what}" if before else what[:1].upper() + what[1:], unit, tuple(each))


def _epoch(tables: TrialTables) -> str:
    """Return a sentence about epochs; "" if there are none."""
    limiter = tables.trial.arm.qjump
    if limiter is None:
        return ""
    long = f"An epoch takes {limiter.epoch_ns / 1e6:g} ms"
    if limiter.epochs == "aligned":
        return f"{long}; dotted lines are where one ends and the next begins, on every host."
    if limiter.epochs == "rolling":
        return (
            f"{long} and rolls: in no time as long as that does more than a budget leave, so it "
            "has no edges."
        )
    return (
        f"{long}. Each begins with the first packet after the last one; when that was is not "
        "recorded."
    )


def _unrecorded(
    manifest: Manifest,
    tables: TrialTables,
    lanes: Sequence[Lane],
    read: Sequence[Reading],
    samples: Series | None,
    queued: Queues | None,
) -> Iterator[str]:
    """Return a sentence for each quantity that was not recorded."""
    if manifest.backend == "simulator":
        if samples is None:
            yield (
                "Queues and drops over time: there is no series.json that can be read; "
                "raw/counters.json counts drops for the whole trial."
            )
        yield (
            "At which port packets were dropped or marked, and when ports were paused: "
            "raw/counters.json counts that of all ports together."
        )
    elif not read:
        yield (
            "Queues, drops and pauses: the counters of the ports were not read, or cannot be read."
        )
    else:
        if queued is None:
            times = len({reading.when for reading in read})
            yield (
                f"How long queues were between the readings: each port was read {times} times; it "
                "keeps the most that ever waited."
            )
            yield (
                "When each packet was dropped: ports count drops, and nobody wrote down their "
                "times."
            )
        if all(reading.pauses is None for reading in read):
            yield "Pauses: links without flow control have none."
        else:
            yield "When each pause was: ports count them, and add up how long they lasted."
        if not ports.rows(read):
            yield (
                "At no reading had a port anything to tell: nothing waited, and nothing was "
                "dropped."
            )
    for workload in tables.trial.arm.workloads:
        if not any(lane.title.lower().startswith(f"{workload.label}:".lower()) for lane in lanes):
            yield f"{workload.label}: what {registry.of(workload).name} leaves has no times."


def _drawn(
    tables: TrialTables, lanes: Sequence[Lane], read: Sequence[Reading]
) -> tuple[markupsafe.Markup, str]:
    """Return what the script draws, as JSON that is safe in a page, and the numbers it refers
    to."""
    start_s, end_s = tables.facts.window_s
    window_ns = (end_s - start_s) * 1e9
    ends = [
        (
            float(track.at_ns[0]),
            float(np.max(track.at_ns if track.until_ns is None else track.until_ns)),
        )
        for lane in lanes
        for track in lane.tracks
    ]
    first_ns = min([0.0, *(low for low, _ in ends)])
    last_ns = max([window_ns, *(high for _, high in ends)])
    axis = _Axis(first_ns, max(1, math.ceil((last_ns - first_ns) / _MOST_TICKS)))
    store = Store()
    limiter = tables.trial.arm.qjump
    # Aligned epochs are counted from 0 of the clock of began_ns.
    content = {
        "tick_ns": axis.tick_ns,
        "zero": axis.ticks(0.0),
        "window": axis.ticks(window_ns) - axis.ticks(0.0),
        "end": axis.ticks(last_ns),
        "shown": [axis.ticks(at_ns) for at_ns in _shown_ns(tables, read, window_ns)],
        "epoch_ns": limiter.epoch_ns if limiter else None,
        "edge_ns": -tables.facts.began_ns % limiter.epoch_ns
        if limiter and limiter.epochs == "aligned"
        else None,
        "lanes": [
            {
                "unit": lane.unit,
                "kind": lane.tracks[0].kind,
                "unit_ns": 1e3 if lane.unit == "us" else 1e6,
                "lines": [_line(track, lane, axis, store) for track in lane.tracks],
            }
            for lane in lanes
        ],
    }
    return pages.json(content), store.text()


def _shown_ns(
    tables: TrialTables, read: Sequence[Reading], window_ns: float
) -> tuple[float, float]:
    """Return the first view: the measurement with the readings at its ends, and a margin."""
    began_ns = tables.facts.began_ns
    first = min([0.0, *(reading.at_ns - began_ns for reading in read if reading.when == "began")])
    last = max(
        [window_ns, *(reading.at_ns - began_ns for reading in read if reading.when == "ended")]
    )
    return first - (last - first) / 50, last + (last - first) / 50


class _Axis(NamedTuple):
    """Times as whole numbers: ticks of ``tick_ns`` since ``first_ns``."""

    first_ns: float
    tick_ns: int

    def ticks(self, at_ns: float) -> int:
        return round((at_ns - self.first_ns) / self.tick_ns)

    def deltas(self, at_ns: Any) -> Any:
        """Return the ticks between successive times, shape (rows,)."""
        ticks = np.rint((np.asarray(at_ns, dtype=np.float64) - self.first_ns) / self.tick_ns)
        return np.diff(ticks, prepend=0).astype(np.int32)


def _line(track: Track, lane: Lane, axis: _Axis, store: Store) -> dict[str, Any]:
    """Store a track: what arrived, and the times of what did not."""
    came = np.flatnonzero(~np.isnan(track.values))
    rows = came[packing.kept(track.values[came])]
    scale = 1e3 if lane.unit == "us" and track.unit == "ms" else 1.0
    values = (track.values[rows] * scale).astype(np.float32)
    until_ns = None if track.until_ns is None else track.until_ns[rows]
    lasts = None if until_ns is None else np.rint((until_ns - track.at_ns[rows]) / axis.tick_ns)
    return {
        "name": track.label,
        "came": len(came),
        "at": store.add(axis.deltas(track.at_ns[rows])),
        "values": store.add(values),
        "lasts": None if lasts is None else store.add(lasts.astype(np.int32)),
        "lost": store.add(axis.deltas(track.at_ns[np.isnan(track.values)])),
    }
