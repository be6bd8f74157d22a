"""Draw published axes and numbers behind a plan's data, and describe them in captions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from qjump_mn.model.plan import Plan
from qjump_mn.report.figures import notes, published
from qjump_mn.report.figures.published import Across, Panel, Published, Range
from qjump_mn.report.figures.style import Floats
from qjump_mn.results import formatting

TIMES = 1e3
"""Published times are in us, ours in ms."""


@dataclass(frozen=True)
class Behind:
    """A published ``figure`` for a plan whose links are ``scale`` times slower, so times are
    stretched.

    Its axes are then the plan's own. ``values`` are the published numbers or ranges, by
    "arm.workload.measure", without those that stand for words.
    """

    figure: Published
    plan: Plan
    scale: float
    values: Mapping[str, Range]

    @property
    def x(self) -> Across:
        """Return the axis of all panels."""
        return self.figure.x if self.scale == 1 else Across()

    @property
    def shows(self) -> bool:
        """Return whether there is anything behind the data but axes."""
        return bool(self.values) or any(panel.bands for panel in self.figure.panels)

    def panel(self, index: int) -> Panel | None:
        """Return the published panel in the place of ours; None if ours was not published."""
        return (
            self.figure.panels[index]
            if self.scale == 1 and index < len(self.figure.panels)
            else None
        )

    def place(self, x: float) -> float:
        """Return the position of the value ``x`` of a sweep on its axis."""
        return published.position(self.figure, x) if self.scale == 1 else x

    def title(self, index: int) -> str:
        """Return the title for a panel that was not published, if others were."""
        return "(not published)" if self.scale == 1 and 0 < len(self.figure.panels) <= index else ""

    def told(self, series: Mapping[str, Collection[str]], marks: str) -> str:
        """Return caption sentences: what ``marks`` show, what was published in words, and what was
        not published.

        ``series`` are labels with the names of their numbers.
        """
        numbers, words, missing = [], [], []
        for label, entries in series.items():
            known = [self._number(entry) for entry in entries if entry in self.values]
            said = [self.figure.words[entry] for entry in entries if entry in self.figure.words]
            numbers += [f"{label}: {', '.join(known)}"] if known else []
            words += [f"{label}: {text}" for text in said]
            missing += [] if known or said else [label]
        stretched = (
            f", stretched by the ratio of the link rates, {self.scale:g}" if self.scale != 1 else ""
        )
        sentences = []
        if numbers:
            sentences.append(f"{marks}: {self.figure.title}, {'; '.join(numbers)}{stretched}.")
        if self.figure.measured:
            apart = (
                ", so that orders of magnitude may be compared and no more"
                if self.scale != 1
                else ""
            )
            sentences.append(f"Published values are {self.figure.measured}{apart}.")
        if words:
            sentences.append(f"Published in words: {'; '.join(words)}.")
        if missing and self.scale == 1:
            which = "all of it" if len(missing) == len(series) else ", ".join(missing)
            sentences.append(f"Not published as numbers ({self.figure.title}): {which}.")
        return " ".join([*sentences, f"{self.figure.source}."])

    def _number(self, entry: str) -> str:
        low, high = self.values[entry]
        heading = notes.heading(self.plan, entry.partition(".")[2], named=False)
        if not formatting.is_time(entry):
            return f"{heading} {' to '.join(f'{end:g}' for end in sorted({low, high}))}"
        as_is = " to ".join(f"{end / self.scale * TIMES:g}" for end in sorted({low, high}))
        here = (
            ""
            if self.scale == 1
            else f" ({formatting.duration(low, formatting.unit(self.plan))} here)"
        )
        return f"{heading} {as_is} us{here}"


def of(plan: Plan, picture: int = 0) -> Behind | None:
    """Return what was published for a plan's ``picture``; None if nothing can be drawn at the
    plan's rate."""
    if picture >= len(plan.shown.figure.published):
        return None
    figure = published.read(plan.shown.figure.published[picture])
    scale = int(figure.rate) / plan.shown.network.link.rate_bps
    if scale != 1 and not figure.stretches:
        return None
    values = {}
    for entry, value in plan.judged.published.items():
        if entry not in figure.words:
            low, high = value if isinstance(value, tuple) else (value, value)
            stretch = scale if formatting.is_time(entry) else 1
            values[entry] = (low * stretch, high * stretch)
    return Behind(figure, plan, scale, values)


def limits(ends: Range, lines: Iterable[Floats]) -> Range:
    """Return a published axis, widened so that it hides less than half of each line."""
    low, high = ends
    for line in lines:
        values = line[np.isfinite(line)]
        if len(values) and 2 * np.count_nonzero((values < ends[0]) | (values > ends[1])) >= len(
            values
        ):
            low, high = min(low, float(values.min())), max(high, float(values.max()) * 1.05)
    return low, high


def widened(what: str, ends: Range, drawn: Range) -> str:
    """Return a sentence about an axis that is longer than the published one; "" if it is not."""
    if ends == drawn:
        return ""
    ours, theirs = (
        f"from {formatting.number(low)} to {formatting.number(high)}" for low, high in (drawn, ends)
    )
    return f" {what} is {ours}, the published one {theirs}."
