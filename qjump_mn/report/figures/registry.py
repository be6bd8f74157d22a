"""Find figures by name: ours, and those of other distributions, without importing them.

A figure is a function ``draw(run, manifest, arms) -> list[style.Figure]``, where ``arms`` are the
arms' measures. Other distributions add theirs as entry points of the group ``qjump_mn.figures``
(``qjump_mn.extensions``).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from qjump_mn import extensions
from qjump_mn.errors import UsageError
from qjump_mn.model import suggestions
from qjump_mn.model.experiment import FigureSpec
from qjump_mn.report.figures import published
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary

if TYPE_CHECKING:  # it imports matplotlib
    from qjump_mn.report.figures.style import Figure

GROUP = "qjump_mn.figures"
OURS = ("bars", "latency_cdf", "sweep", "timeline", "variations")

Draw = Callable[[RunDirectory, Manifest, Sequence[ArmSummary]], "list[Figure]"]


def names() -> list[str]:
    """Return the figures' names, sorted. Raises :class:`UsageError` if two have the same name."""
    return sorted([*OURS, *extensions.entries(GROUP, OURS)])


def check(figure: FigureSpec) -> None:
    """Raise :class:`UsageError` unless there is the figure, and the published values that it
    shows."""
    _check_name(figure.plot)
    for name in figure.published:
        published.read(name)


def find(name: str) -> Draw:
    """Return the function that draws the figure ``name``. Raises :class:`UsageError` if there is
    none."""
    _check_name(name)
    if name in OURS:
        ours: Draw = importlib.import_module(f"{__package__}.{name}").draw
        return ours
    draw: Draw = extensions.load(GROUP, name)
    if not callable(draw):
        distribution = extensions.owner(extensions.entries(GROUP)[name])
        what = f"{distribution} adds the figure {name!r}, which is no function"
        raise UsageError(f"{what}: repair or uninstall {distribution}")
    return draw


def _check_name(name: str) -> None:
    known = names()
    if name not in known:
        raise UsageError(f"there is no figure {name!r}: {suggestions.nearest(name, known)}")
