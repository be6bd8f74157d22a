"""The same quantities by theory, emulated, simulated and as published, each at its own scale and in full-size
frames of its links.

An experiment file says in ``[beside]`` which quantities, and by which presets the emulation and the
simulation stand when the run is of the other: their values are those of the reference run. It is no part of a
plan, for it decides nothing of a run.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from qjump_mn import theory
from qjump_mn.analysis import claims
from qjump_mn.errors import UsageError
from qjump_mn.model import loading, resolve
from qjump_mn.model.plan import Plan
from qjump_mn.model.toml_types import convert
from qjump_mn.model.units import Duration, Rate
from qjump_mn.results import reference
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary, Comparison, Quantity, medians


class RowSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A quantity: expressions of the claims' language, in ms or, with ``unit`` "times", without a unit.

    ``of`` is what was measured, ``simulated`` that in the simulator where it has another name there,
    ``theory`` over the constants alone. ``published`` is a time ("900us"), or a number.
    """

    what: str
    of: str
    simulated: str = ""
    theory: str = ""
    published: str | float | None = None
    unit: Literal["ms", "times"] = "ms"


class BesideSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table ``[beside]``: two presets, the rate of the links of what was published, where that is from,
    and the rows."""

    emulation: str
    simulation: str
    published_rate: Rate
    source: str
    rows: list[RowSpec]


class Side(NamedTuple):
    """One scale: a plan, and the medians that were measured of it, none if nobody did."""

    plan: Plan
    measured: claims.Measured

    @property
    def frame_ms(self) -> float:
        """How long a full-size frame keeps a link busy."""
        return self.plan.judged.constants["frame_ms"]

    def value(self, text: str, where: str) -> float | None:
        """What an expression comes to; None where something of it is not known, or not of this plan, and for
        theory without anything beside it."""
        if not text or not self.measured:
            return None
        try:
            return claims.parse(text, "number", self.plan, where).number(
                self.measured, self.plan.judged.constants
            )
        except UsageError:  # the user's own arms; ours are checked by a test
            return None


def spec(experiment: str) -> BesideSpec | None:
    """What an experiment file says; None if it says nothing. Raises :class:`UsageError` with the place of
    what does not fit."""
    raw = loading.read("experiments", experiment).get("beside")
    if raw is None:
        return None
    where = f"experiment {experiment!r}: beside"
    made = convert(raw, BesideSpec, where)
    for row in made.rows:
        _published(row, f"{where}: {row.what}")
    return made


def compare(manifest: Manifest, arms: tuple[ArmSummary, ...]) -> Comparison | None:
    """The run ``manifest`` beside the reference of the other backend; None for an experiment that has no such
    table."""
    plan = manifest.plan
    try:
        comparison_spec = spec(plan.shown.experiment)
    except UsageError:  # a run is judged where its experiment's file is not, or is another by now
        return None
    if comparison_spec is None:
        return None
    own = Side(plan, medians(arms))
    if manifest.backend == "simulator":
        emulated, simulated = _referred(plan.shown.experiment, comparison_spec.emulation), own
    else:
        emulated, simulated = own, _referred(plan.shown.experiment, comparison_spec.simulation)
    published_ms = (
        theory.occupancy_ns(
            theory.frame_bytes(plan.shown.network.mtu_bytes), int(comparison_spec.published_rate)
        )
        / 1e6
    )
    return Comparison(
        heads=(
            *(
                f"{how}, {Rate(side.plan.shown.network.link.rate_bps)}"
                for side, of in ((emulated, "emulation"), (simulated, "simulation"))
                for how in ("theory", of)
            ),
            f"published, {comparison_spec.published_rate}",
        ),
        frames_ms=(
            emulated.frame_ms,
            emulated.frame_ms,
            simulated.frame_ms,
            simulated.frame_ms,
            published_ms,
        ),
        rows=tuple(
            _row(row, emulated, simulated, f"experiment {plan.shown.experiment!r}: beside: {row.what}")
            for row in comparison_spec.rows
        ),
        source=comparison_spec.source,
    )


def _referred(experiment: str, preset: str) -> Side:
    """A preset with the values of its reference run."""
    path = reference.find(experiment, preset)
    return Side(resolve.plan(experiment, preset, []), reference.read(path).values if path else {})


def _row(row: RowSpec, emulated: Side, simulated: Side, where: str) -> Quantity:
    sides = (
        (emulated, row.theory),
        (emulated, row.of),
        (simulated, row.theory),
        (simulated, row.simulated or row.of),
    )
    return Quantity(
        what=row.what,
        unit=row.unit,
        values=(*(side.value(text, where) for side, text in sides), _published(row, where)),
    )


def _published(row: RowSpec, where: str) -> float | None:
    if not isinstance(row.published, str):
        return row.published
    try:
        return int(Duration.parse(row.published)) / 1e6
    except UsageError as error:
        raise UsageError(f"{where}: published: {error}") from None
