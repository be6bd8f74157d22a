"""Read what was published of a figure, from plots/published/: its axes, its marks and its source.

Published numbers are in the experiment's table [published].
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model import expression
from qjump_mn.model.units import Rate
from qjump_mn.resolve import loading
from qjump_mn.resolve.toml_types import convert

KIND = "plots/published"

Range = tuple[float, float]


class Across(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The axis of all panels: its limits, in two ``parts`` if it was broken; as long as the data by
    default.

    In a sweep it has ``of``, an expression of the sweep's value ``x``, and ``label``, its name.
    """

    parts: tuple[Range, ...] = ()
    log: bool = False
    of: str = "x"
    label: str = ""


class Band(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A range on the axis ``x`` or ``y`` with its ``label``; a line if both ends are equal.

    In a timeline it belongs to one ``arm`` and ``workload``.
    """

    label: str
    x: Range | None = None
    y: Range | None = None
    arm: str = ""
    workload: str = ""


class Panel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A panel's own axis with a tick each ``step``, what is behind its lines, and measures drawn as
    ``crosses``."""

    y: Range
    log: bool = False
    step: float | None = None
    bands: tuple[Band, ...] = ()
    crosses: tuple[str, ...] = ()


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published figure: a file of plots/published/, ours or in your own folder of that name.

    Its links have ``rate``; ``source`` says where its numbers are from and how they were read,
    ``measured`` between what. A run at another rate shows nothing of it, unless it ``stretches``
    because the network alone decides its times: then times are stretched by the ratio of the rates.

    Axes of times are in us, others in what they show. ``panels`` are in the order of ours;
    left-over panels of ours were not published. ``words`` replace a number of the experiment's
    table [published], by its name there.
    """

    title: str
    source: str
    measured: str = ""
    rate: Rate
    stretches: bool = False
    x: Across = Across()
    panels: tuple[Panel, ...] = ()
    words: dict[str, str] = {}


def read(name: str) -> Published:
    """Read the published figure ``name``. Raises :class:`UsageError` if none fits."""
    where = f"published figure {name!r}"
    figure = convert(loading.read(KIND, name), Published, where)
    if len(figure.x.parts) > 2:
        raise UsageError(f"{where}: x.parts: an axis is broken once at most: give one part or two")
    for left, right in pairwise(figure.x.parts):
        if right[0] < left[1]:
            raise UsageError(f"{where}: x.parts: the second part begins within the first")
    for part in figure.x.parts:
        _check(f"{where}: x.parts", part, log=figure.x.log)
    position(figure, 1.0, where)
    for place, panel in (
        (f"{where}: panels[{index}]", panel) for index, panel in enumerate(figure.panels)
    ):
        _check(f"{place}.y", panel.y, log=panel.log)
        for band in panel.bands:
            if (band.x is None) == (band.y is None):
                raise UsageError(f"{place}.bands: {band.label!r} lies on one axis: give it x or y")
            if any(low > high for low, high in filter(None, (band.x, band.y))):
                raise UsageError(f"{place}.bands: {band.label!r}: put the lesser end first")
    return figure


def position(figure: Published, x: float, where: str = "") -> float:
    """Return the position of the value ``x`` of a sweep on the figure's axis."""
    found = expression.parse(figure.x.of, f"{where}: x.of")
    found.check("number", _known)
    return float(found.value(lambda _: x))


def _known(path: expression.Path) -> expression.Kind:
    if path != ("x",):
        raise expression.UnknownNameError("is not known: x is the sweep's value")
    return "number"


def _check(where: str, ends: Range, *, log: bool) -> None:
    low, high = ends
    if low >= high:
        raise UsageError(f"{where}: {low:g} to {high:g} is no range: put the lesser end first")
    if log and low <= 0:
        raise UsageError(f"{where}: a logarithmic axis has no {low:g}: begin above 0")
