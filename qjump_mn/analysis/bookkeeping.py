"""Compare what programs say they sent with what links and switches counted.

All of a trial's programs run between the readings "before" and "after". So each link on the way has
carried what a program received, and somebody has sent what a link carried. Programs report through
:class:`~qjump_mn.programs.measures_api.Moved`, with their own tolerance below the counters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qjump_mn import theory
from qjump_mn.errors import LostError
from qjump_mn.links.base import Count
from qjump_mn.model import hooks, ports
from qjump_mn.model.topology import Network
from qjump_mn.model.workload import Flow, WorkloadPlan
from qjump_mn.programs import registry
from qjump_mn.programs.facts import Check, TrialFacts, TrialTables
from qjump_mn.programs.measures_api import HEADERS_BYTES, Moved, Said
from qjump_mn.results import links
from qjump_mn.results.directory import RunDirectory

Carried = dict[Flow, dict[int | None, Count]]

STRAY_FRAMES = 2
"""Of hosts' kernels, on any link: what no program has sent and no table of neighbours answers. In
150 trials there was none but the memberships that PTP's hosts report."""

READING = 0.1
"""Of the time of a whole short process, that the switches' ports are read apart: the rest is its
start. Of 150 trials one had a frame that was counted at one port and not yet at the other."""


class Account(NamedTuple):
    """A link at a level (None for all): its counter, and what each workload says it sent there.

    Each report has the bytes that may have waited on the way. ``complete``: nobody else uses the
    link. ``lost``: frames that it carried and nobody received; ``lost_bytes`` is the most that
    they had.
    """

    link: Flow
    level: int | None
    carried: Count
    moved: tuple[tuple[str, int, Moved], ...]
    complete: bool
    lost: int = 0
    lost_bytes: int = 0

    def problems(self) -> Iterator[str]:
        """Return where programs and counters contradict each other."""
        where = f"{'>'.join(self.link)}{'' if self.level is None else f' at level {self.level}'}"
        who = " and ".join(dict.fromkeys(name for name, _, _ in self.moved))
        for what, said, counted in (
            (
                "frames",
                sum(moved.arrived_frames for _, _, moved in self.moved),
                self.carried.frames,
            ),
            ("B", sum(moved.arrived_bytes for _, _, moved in self.moved), self.carried.bytes),
        ):
            if said > counted:
                yield f"{who} received {said} {what}, and {where} carried {counted}"
        if self.most_frames is not None and self.carried.frames > self.most_frames + STRAY_FRAMES:
            yield (
                f"{where} carried {self.carried.frames} frames, and {self.most_frames} are of {who}"
            )
        least = self.carried.bytes - HEADERS_BYTES * self.carried.frames
        if self.most_payload is not None and least > self.most_payload:
            yield (
                f"{who} moved {self.most_payload} B at most, with what was sent again or waited, "
                f"and {where} carried {least} B at least without headers"
            )

    @property
    def most_frames(self) -> int | None:
        """Return the frames that all programs sent there, or received on the last link; None if one
        does not say."""
        return self._sum([self._frames(moved) for _, _, moved in self.moved])

    @property
    def most_payload(self) -> int | None:
        """Return the same in bytes, with the longest headers."""
        return self._sum([self._payload(moved, waited) for _, waited, moved in self.moved])

    def _sum(self, parts: list[int | None]) -> int | None:
        known = [part for part in parts if part is not None]
        return sum(known) if self.complete and len(known) == len(parts) else None

    def _frames(self, moved: Moved) -> int | None:
        if moved.last_frames is not None and self.link[1] == moved.flow[1]:
            return moved.last_frames + self.lost
        return moved.sent_frames

    def _payload(self, moved: Moved, waited: int) -> int | None:
        if moved.last_payload is not None and self.link[1] == moved.flow[1]:
            return moved.last_payload + waited + self.lost_bytes
        if moved.sent_payload is None and moved.sent_frames is not None:
            # Of one length; as many as were sent.
            each = moved.arrived_bytes / moved.arrived_frames if moved.arrived_frames else 0
            return round(moved.sent_frames * max(0.0, each - HEADERS_BYTES))
        return moved.sent_payload


def check(run: RunDirectory, data: Sequence[TrialTables]) -> Check:
    """Check every link and level of every trial that has both readings."""
    problems: list[str] = []
    accounts = bounded = 0
    for tables in data:
        name = tables.trial.name
        if tables.facts.read_ns is None:
            continue
        try:
            for account in _accounts(tables, run.trial(name), run.raw(name)):
                accounts += 1
                bounded += account.most_frames is not None or account.most_payload is not None
                problems += (f"{name}: {problem}" for problem in account.problems())
        except (LostError, OSError) as error:
            problems.append(f"{name}: {error}")
    if not problems and not accounts:
        return Check(
            name="carried", status="unknown", text="no trial has the counters of its links"
        )
    good = f"what programs received is in what {accounts} links carried, at their levels" + (
        f"; {bounded} of them carried no more than programs sent" if bounded else ""
    )
    return Check.of("carried", problems, good)


def _accounts(tables: TrialTables, folder: Path, raw: Path) -> Iterator[Account]:
    network = tables.trial.network
    carried = links.carried(network, folder, "before", "after")
    workloads = [workload for workload in tables.trial.arm.workloads if hooks.sends(workload)]
    moved = {workload.name: _moved(tables, workload, raw) for workload in workloads}
    flows = {one.flow for all_of_it in moved.values() for one in all_of_it or ()}
    paths = {flow: network.path(*flow) for flow in flows}
    waited = _waited(network, carried, paths)
    lost = links.lost(network, folder, "after")
    for link, levels in carried.items():
        for level, count in levels.items():
            own = tuple(
                (name, waited[one.flow], one)
                for name, all_of_it in moved.items()
                for one in all_of_it or ()
                if level in (None, one.level) and link in paths[one.flow]
            )
            there = [one for one in workloads if _crosses(one, network, link, level)]
            complete = all(
                moved[one.name] is not None and not hooks.is_copied(one) for one in there
            )
            if own:
                missing = lost.get(link, 0)
                size = missing * theory.wire_bytes(network.mtu_bytes)
                yield Account(link, level, count, own, complete, missing, size)


def _waited(
    network: Network, carried: Carried, paths: Mapping[Flow, Sequence[Flow]]
) -> dict[Flow, int]:
    """Return how much may wait on each flow's way: the most ever counted, or a buffer's size if not
    counted."""
    shapes, devices, most = network.by_device(), network.interfaces(), dict[Flow, int]()
    for link in {link for path in paths.values() for link in path}:
        counted = [count.most_bytes for count in carried[link].values()]
        known = [size for size in counted if size is not None]
        complete = len(known) == len(counted)
        most[link] = max(known) if complete else shapes[devices[link]].buffer_bytes
    return {flow: sum(most[link] for link in path) for flow, path in paths.items()}


def _moved(tables: TrialTables, workload: WorkloadPlan, raw: Path) -> tuple[Moved, ...] | None:
    """Return what a workload moved; None if it does not say, or if its frames also go elsewhere."""
    moved = registry.measures(workload).moved
    if moved is None:
        return None
    said = Said(
        plan=workload,
        table=tables.tables[workload.name],
        trial=tables.trial,
        facts=tables.facts,
        read=lambda name: (raw / name).read_text(encoding="utf-8"),
    )
    return tuple(moved(said))


def _crosses(workload: WorkloadPlan, network: Network, link: Flow, level: int | None) -> bool:
    """Return whether a workload's frames may be on a link at a level."""
    if level is not None and level not in hooks.levels(workload):
        return False
    return hooks.is_copied(workload) or any(
        link in network.path(*flow) for flow, _ in ports.ways(workload, network)
    )


def switches(run: RunDirectory, data: Sequence[TrialTables]) -> Check:
    """Check that each switch has sent, dropped or still holds what entered it.

    All switches are read at once, then the hosts one after another. So a switch had received at
    least what hosts had sent at the reading before, and at most what they had sent at theirs. If a
    switch makes several frames of one, only the lower limit holds. The switches' reading takes a
    moment too, so each port may differ by what it carries meanwhile.
    """
    problems: list[str] = []
    frames = 0
    for tables in data:
        if tables.facts.read_ns is None:
            continue
        try:
            counted, found = _conserved(tables, run.trial(tables.trial.name))
        except LostError as error:
            counted, found = 0, [str(error)]
        frames += counted
        problems += (f"{tables.trial.name}: {problem}" for problem in found)
    if not problems and not frames:
        return Check(
            name="switches", status="unknown", text="no trial has the counters of its switches"
        )
    good = (
        f"all {frames} frames that came into a switch were sent on, dropped there, or waited at "
        "the end"
    )
    return Check.of("switches", problems, good)


def _conserved(tables: TrialTables, folder: Path) -> tuple[int, list[str]]:
    network = tables.trial.network
    first, last = (links.handed_over(network, folder, when) for when in ("ended", "after"))
    copies = any(hooks.is_copied(workload) for workload in tables.trial.arm.workloads)
    problems, frames = [], 0
    moment_ns = READING * (_process_ns(tables.facts) or 0.0)
    shapes, devices = network.by_device(), network.interfaces()

    def meanwhile(link: Flow) -> float:
        """Return the frames that a full link carries during one reading."""
        each_bytes = last[link].mean_bytes or theory.MINIMUM_FRAME_BYTES
        return 1 + moment_ns * shapes[devices[link]].rate_bps / 8 / theory.NS_PER_S / each_bytes

    for switch in network.switches:
        inward = [link for link in last if link[1] == switch]
        out = sum(last[link].all for link in last if link[0] == switch)
        hosts = [link for link in inward if link[0] not in network.switches]
        between = sum(last[link].sent for link in inward if link not in hosts)
        between -= sum(last[link].lost for link in inward)
        least = between + sum(first[link].sent for link in hosts)
        most = between + sum(last[link].sent for link in hosts)
        frames += least
        apart = sum(
            map(
                meanwhile,
                (link for link in last if switch in link and set(link) <= set(network.switches)),
            )
        )
        if out < least - apart or (out > most + apart and not copies):
            problems.append(
                f"{least} to {most} frames came into {switch}, and {out} were sent on, dropped, or "
                "waited"
            )
    return frames, problems


def _process_ns(facts: TrialFacts) -> float | None:
    """Return how long a short process takes, in ns, from successive readings after the
    measurement."""
    times = sorted(
        ns for name, ns in (facts.read_ns or {}).items() if name.startswith("asbuilt/ended/")
    )
    return float(np.median(np.diff(times))) if len(times) > 1 else None
