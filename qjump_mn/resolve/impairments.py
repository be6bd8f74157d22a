"""Resolve and check what links lose, delay and reorder."""

from __future__ import annotations

from collections.abc import Mapping

from qjump_mn.errors import UsageError
from qjump_mn.model.graph import Pairs
from qjump_mn.model.link import SOUND, Impairment, LinkSpec
from qjump_mn.model.units import Duration, Quantiles, Share
from qjump_mn.resolve import named_files

MAX_SHARE = Share.parse("50%")
"""More lost frames than this leave TCP no time to end; reordering is symmetrical around it."""

MAX_LATER = Duration.parse("1s")


def resolve(
    where: str, spec: LinkSpec, edges: Pairs, several_paths: bool
) -> tuple[tuple[str, Impairment], ...]:
    """Return the links that lose, delay or reorder frames, by the node at their lower end.

    Raises :class:`UsageError` that begins with ``where`` for a wrong setting.
    """
    nodes = [below for _, below in edges]
    for table in ("loss_of", "jitter_of", "reorder_of", "trace_of"):
        if unknown := set(getattr(spec, table)) - set(nodes):
            raise UsageError(
                f"{where}: link.{table}: there is no link of {min(unknown)!r}: name the host or "
                "switch at its lower end"
            )
    _check(where, spec)
    traces = {
        name: named_files.trace(where, name) if name else ()
        for name in {spec.trace, *spec.trace_of.values()}
    }
    impaired = [(node, _of(node, spec, traces)) for node in nodes]
    found = tuple((node, one) for node, one in impaired if one != SOUND)
    if several_paths and (found or any((spec.loss, spec.jitter.points, spec.reorder, spec.trace))):
        raise UsageError(
            f"{where}: link.loss, link.jitter, link.reorder and link.trace are for trees: leave "
            "them out"
        )
    return found


def _of(node: str, spec: LinkSpec, traces: Mapping[str, tuple[int, ...]]) -> Impairment:
    reorder = int(spec.reorder_of.get(node, spec.reorder))
    return Impairment(
        loss_ppb=int(spec.loss_of.get(node, spec.loss)) or None,
        jitter=spec.jitter_of.get(node, spec.jitter).points,
        reorder_ppb=reorder or None,
        reorder_ns=int(spec.reorder_by) if reorder else None,
        trace=traces[spec.trace_of.get(node, spec.trace)],
    )


def _check(where: str, spec: LinkSpec) -> None:
    for name, share in _shares(spec).items():
        if share > MAX_SHARE:
            raise UsageError(
                f"{where}: link.{name} = {share} is out of range: use at most {MAX_SHARE}"
            )
    reorders = any(spec.reorder_of.values()) or bool(spec.reorder)
    if reorders and not 0 < spec.reorder_by <= MAX_LATER:
        raise UsageError(
            f"{where}: link.reorder needs the time by which these frames are late: set "
            f"link.reorder_by, at most {MAX_LATER}"
        )
    if spec.reorder_by and not reorders:
        raise UsageError(f"{where}: link.reorder_by needs a share of frames: set link.reorder")
    drawn: dict[str, Quantiles] = {"jitter": spec.jitter}
    drawn |= {f"jitter_of.{node}": points for node, points in spec.jitter_of.items()}
    for name, quantiles in drawn.items():
        if quantiles.points and quantiles.points[-1][1] > MAX_LATER:
            raise UsageError(
                f"{where}: link.{name} is out of range: use at most {MAX_LATER} at 100"
            )


def _shares(spec: LinkSpec) -> dict[str, Share]:
    return (
        {"loss": spec.loss, "reorder": spec.reorder}
        | {f"loss_of.{node}": share for node, share in spec.loss_of.items()}
        | {f"reorder_of.{node}": share for node, share in spec.reorder_of.items()}
    )
