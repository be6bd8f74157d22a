"""Resolve perturbed runs: every arm again, each time with one change that should not matter.

A verdict that two frames of buffer overturn is worth little, and seeds alone do not show that. The
changes take turns: another seed (start phases and drawn numbers), buffers 2 % larger or smaller,
host times 2 % longer or shorter (or some ns of propagation if hosts take no time), and full-size
packets one word shorter. The next round starts from the other seed of the round before: each of its
runs differs from that one in one thing, and no run is repeated.

Start times of programs are drawn from the seed when a trial is compiled. So a plan cannot move a
single start by some ns; another seed moves them all.
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

MAX_RUNS = 1000
SHARE = 0.02
"""The relative change of buffers and host times."""
PROPAGATION_NS = 20
"""The change of propagation: about 4 m of cable."""
WORD_BYTES = 4
ANOTHER_SEED = "another seed"

Changed = tuple[TopologySpec, LinkSpec]
Change = Callable[[TopologySpec, LinkSpec], Changed]


class Varied(NamedTuple):
    """The arms to run and the constants of an experiment, resolved with a change."""

    arms: tuple[ArmPlan, ...]
    constants: dict[str, float]


class Perturbed(NamedTuple):
    """The perturbed runs of a plan (see :class:`~qjump_mn.model.plan.Run`). ``remarks`` explain the
    changes that were impossible.
    """

    runs: tuple[Perturbation, ...]
    arms: dict[str, tuple[ArmPlan, ...]]
    constants: dict[str, dict[str, float]]
    remarks: tuple[str, ...]


def check(count: int) -> None:
    """Raise :class:`UsageError` if the number of perturbed runs is out of range."""
    if not 0 <= count <= MAX_RUNS:
        raise UsageError(f"{count} perturbed runs are out of range: use 0 to {MAX_RUNS}")


def nothing(topology: TopologySpec, link: LinkSpec) -> Changed:
    """Change nothing."""
    return topology, link


def perturbed(
    count: int,
    seeds: Sequence[int],
    arms: tuple[ArmPlan, ...],
    link: LinkSpec,
    varied: Callable[[Change], Varied],
) -> Perturbed:
    """Return ``count`` perturbed runs of ``arms``, whose replicates have ``seeds``. ``link`` is the
    experiment's link, and ``varied`` resolves the experiment with a change."""
    if not count:
        return Perturbed((), {}, {}, ())
    kinds: list[tuple[str, ...]] = [(ANOTHER_SEED,)]
    variants: dict[str, Varied] = {}
    remarks = []
    for kind in _kinds(link):
        for name, change in kind.items():
            try:
                variant = varied(change)
            except UsageError as error:  # at a limit already, such as a packet that fills a frame
                remarks.append(f"No perturbed run has {name}: {error}.")
                continue
            if variant.arms != arms:
                variants[name] = variant
        kinds.append(tuple(name for name in kind if name in variants))
    kinds = [kind for kind in kinds if kind]
    runs = tuple(_runs(count, seeds, kinds))
    names = {run.what for run in runs}
    used = {name: variant for name, variant in variants.items() if name in names}
    return Perturbed(
        runs,
        {
            name: tuple(sorted(variant.arms, key=lambda arm: arm.name))
            for name, variant in used.items()
        },
        {name: variant.constants for name, variant in used.items()},
        tuple(remarks),
    )


def _runs(count: int, seeds: Sequence[int], kinds: Sequence[tuple[str, ...]]) -> list[Perturbation]:
    """Take the kinds in turn, and the alternatives of each kind in turn."""
    runs = []
    for index in range(count):
        turn, kind = divmod(index, len(kinds))
        name = kinds[kind][turn % len(kinds[kind])]
        # After the seeds of the replicates, so that it differs from them.
        other_seed = seeds[-1] + 1 + turn
        base_seed = other_seed - 1 if turn else seeds[0]
        runs.append(Perturbation(what=name, seed=other_seed if name == ANOTHER_SEED else base_seed))
    return runs


def _kinds(link: LinkSpec) -> list[dict[str, Change]]:
    """Return the changes other than the seed: for each kind, its alternatives by name."""
    return [
        {_percent("buffer", sign): _buffer(1 + sign * SHARE) for sign in (1, -1)},
        _hosts(link),
        {f"full-size packets - {WORD_BYTES} B": _shorter},
    ]


def _percent(quantity: str, sign: int) -> str:
    return f"{quantity} {'+' if sign > 0 else '-'} {SHARE:.0%}".replace("%", " %")


def _buffer(factor: float) -> Change:
    def change(topology: TopologySpec, link: LinkSpec) -> Changed:
        trunk = None if link.trunk_buffer is None else Size(round(link.trunk_buffer * factor))
        buffer = Size(round(link.buffer * factor))
        return topology, msgspec.structs.replace(link, buffer=buffer, trunk_buffer=trunk)

    return change


def _hosts(link: LinkSpec) -> dict[str, Change]:
    """Change the host time if there is one; else propagation, by + and - 20 ns, or + 20 and + 40 ns
    if it is too short.
    """
    if link.host_time:
        return {_percent("host time", sign): _host_time(1 + sign * SHARE) for sign in (1, -1)}
    steps = (
        PROPAGATION_NS,
        -PROPAGATION_NS if link.delay >= PROPAGATION_NS else 2 * PROPAGATION_NS,
    )
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
        # With htb and tbf, any propagation would add a netem, which has a queue of its own.
        if not link.delay and not links.of(link.model).exact:
            return topology, link
        trunk = None if link.trunk_delay is None else moved(link.trunk_delay)
        return topology, msgspec.structs.replace(link, delay=moved(link.delay), trunk_delay=trunk)

    return change


def _shorter(topology: TopologySpec, link: LinkSpec) -> Changed:
    return msgspec.structs.replace(topology, mtu=Size(topology.mtu - WORD_BYTES)), link
