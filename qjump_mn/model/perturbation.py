"""Perturbed runs: every arm once more with one thing otherwise that should not matter.

A verdict that two frames of buffer overturn says little, and seeds alone do not show it. In turn another seed
is used (start phases and drawn numbers), buffers are 2 % larger or smaller, hosts take 2 % more or less of
their time, or a link some ns of propagation where hosts take none, and full-size packets are a word shorter.
When all have had their turn, the next round begins from the other seed of the round before: its runs differ
from that one in one thing each, and no run is repeated.

The instants at which programs start are drawn from the seed when a trial is compiled: a plan cannot move one
of them alone by some ns, and another seed moves all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.links import registry as links
from qjump_mn.model.plan import ArmPlan, Perturbation
from qjump_mn.model.topology import LinkSpec, TopologySpec
from qjump_mn.model.units import Duration, Size

MOST = 1000
"""Perturbed runs that may be asked for."""
SHARE = 0.02
"""By which buffers and the hosts' time are varied."""
PROPAGATION_NS = 20
"""About 4 m of cable."""
WORD_BYTES = 4
ANOTHER_SEED = "another seed"

Changed = tuple[TopologySpec, LinkSpec]
Change = Callable[[TopologySpec, LinkSpec], Changed]


class Varied(NamedTuple):
    """The arms that are run of an experiment, resolved with something varied, and its constants then."""

    arms: tuple[ArmPlan, ...]
    constants: dict[str, float]


class Perturbed(NamedTuple):
    """What a plan has of perturbed runs (:class:`~qjump_mn.model.plan.Run`); ``remarks`` name what could not
    be varied."""

    runs: tuple[Perturbation, ...]
    arms: dict[str, tuple[ArmPlan, ...]]
    constants: dict[str, dict[str, float]]
    remarks: tuple[str, ...]


def check(count: int) -> None:
    """Raise :class:`UsageError` for a number of perturbed runs that cannot be."""
    if not 0 <= count <= MOST:
        raise UsageError(f"{count} perturbed runs are out of range: use 0 to {MOST}")


def nothing(topology: TopologySpec, link: LinkSpec) -> Changed:
    """Vary nothing."""
    return topology, link


def perturbed(
    count: int,
    seeds: Sequence[int],
    arms: tuple[ArmPlan, ...],
    link: LinkSpec,
    varied: Callable[[Change], Varied],
) -> Perturbed:
    """``count`` perturbed runs of ``arms``, whose replicates have ``seeds``; ``link`` is the experiment's
    own, and ``varied`` resolves it with a change."""
    if not count:
        return Perturbed((), {}, {}, ())
    kinds: list[tuple[str, ...]] = [(ANOTHER_SEED,)]
    made: dict[str, Varied] = {}
    remarks = []
    for kind in _kinds(link):
        for what, change in kind.items():
            try:
                found = varied(change)
            except UsageError as error:  # at a limit already, such as a packet that fills a frame
                remarks.append(f"No perturbed run has {what}: {error}.")
                continue
            if found.arms != arms:
                made[what] = found
        kinds.append(tuple(what for what in kind if what in made))
    kinds = [kind for kind in kinds if kind]
    runs = tuple(_runs(count, seeds, kinds))
    used = {run.what for run in runs} & set(made)
    return Perturbed(
        runs,
        {what: tuple(sorted(made[what].arms, key=lambda arm: arm.name)) for what in made if what in used},
        {what: made[what].constants for what in made if what in used},
        tuple(remarks),
    )


def _runs(count: int, seeds: Sequence[int], kinds: Sequence[tuple[str, ...]]) -> list[Perturbation]:
    """Each kind in turn, and of each its alternatives in turn."""
    runs = []
    for index in range(count):
        turn, place = divmod(index, len(kinds))
        what = kinds[place][turn % len(kinds[place])]
        # Behind the seeds of the replicates, so that it is none of them.
        other = seeds[-1] + 1 + turn
        before = other - 1 if turn else seeds[0]
        runs.append(Perturbation(what=what, seed=other if what == ANOTHER_SEED else before))
    return runs


def _kinds(link: LinkSpec) -> list[dict[str, Change]]:
    """What is varied beside the seed, each with its alternatives by their names."""
    return [
        {_percent("buffer", sign): _buffer(1 + sign * SHARE) for sign in (1, -1)},
        _hosts(link),
        {f"full-size packets - {WORD_BYTES} B": _shorter},
    ]


def _percent(what: str, sign: int) -> str:
    return f"{what} {'+' if sign > 0 else '-'} {SHARE:.0%}".replace("%", " %")


def _buffer(factor: float) -> Change:
    def change(topology: TopologySpec, link: LinkSpec) -> Changed:
        trunk = None if link.trunk_buffer is None else Size(round(link.trunk_buffer * factor))
        buffer = Size(round(link.buffer * factor))
        return topology, msgspec.structs.replace(link, buffer=buffer, trunk_buffer=trunk)

    return change


def _hosts(link: LinkSpec) -> dict[str, Change]:
    """The time of hosts that take any; else propagation, longer and shorter, or longer twice where there is
    none to take from."""
    if link.host_time:
        return {_percent("host time", sign): _host_time(1 + sign * SHARE) for sign in (1, -1)}
    steps = (PROPAGATION_NS, -PROPAGATION_NS if link.delay >= PROPAGATION_NS else 2 * PROPAGATION_NS)
    return {f"propagation {'+' if ns > 0 else '-'} {abs(ns)} ns": _propagation(ns) for ns in steps}


def _host_time(factor: float) -> Change:
    def change(topology: TopologySpec, link: LinkSpec) -> Changed:
        host_time = Duration(round(link.host_time * factor))
        return topology, msgspec.structs.replace(link, host_time=host_time)

    return change


def _propagation(ns: int) -> Change:
    def moved(delay: Duration) -> Duration:
        return Duration(max(0, delay + ns))

    def change(topology: TopologySpec, link: LinkSpec) -> Changed:
        # The first ns of htb and tbf would put a netem with a queue of its own into the way.
        if not link.delay and not links.of(link.model).exact:
            return topology, link
        trunk = None if link.trunk_delay is None else moved(link.trunk_delay)
        return topology, msgspec.structs.replace(link, delay=moved(link.delay), trunk_delay=trunk)

    return change


def _shorter(topology: TopologySpec, link: LinkSpec) -> Changed:
    return msgspec.structs.replace(topology, mtu=Size(topology.mtu - WORD_BYTES)), link
