"""Compare quantities by theory, emulation, simulation and publication, each at its own scale.

The table ``[beside]`` of an experiment file names the quantities and two presets. The backend that
did not make the run is represented by the reference run of its preset. The table is not part of a
plan, because it decides nothing in a run.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from qjump_mn import resolve, theory
from qjump_mn.analysis import claims
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Plan
from qjump_mn.model.units import Duration, Rate
from qjump_mn.resolve import loading
from qjump_mn.resolve.toml_types import convert
from qjump_mn.results import reference
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary, Comparison, Quantity, medians


class RowSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A quantity: expressions in the language of claims, in ms or, with ``unit`` "times", a ratio.

    ``of`` is measured. ``simulated`` replaces it in the simulator if the name differs there.
    ``theory`` uses constants alone. ``published`` is a time ("900us") or a number.
    """

    what: str
    of: str
    simulated: str = ""
    theory: str = ""
    published: str | float | None = None
    unit: Literal["ms", "times"] = "ms"


class BesideSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table ``[beside]``: two presets, link rate and source of the published values, and the
    rows."""

    emulation: str
    simulation: str
    published_rate: Rate
    source: str
    rows: list[RowSpec]


class Side(NamedTuple):
    """One scale: a plan, and its measured medians, if any."""

    plan: Plan
    measured: claims.Measured

    @property
    def frame_ms(self) -> float:
        """Return how long a full-size frame occupies a link, in ms."""
        return self.plan.judged.constants["frame_ms"]

    def value(self, text: str, where: str) -> float | None:
        """Return the value of an expression; None if a part of it is unknown, or nothing was
        measured."""
        if not text or not self.measured:
            return None
        try:
            return claims.parse(text, "number", self.plan, where).number(
                self.measured, self.plan.judged.constants
            )
        except UsageError:  # the user's own arms; ours are checked by a test
            return None


def spec(experiment: str) -> BesideSpec | None:
    """Return the table ``[beside]`` of an experiment file; None if it has none.

    Raises :class:`UsageError` with the location of an error.
    """
    raw = loading.read("experiments", experiment).get("beside")
    if raw is None:
        return None
    where = f"experiment {experiment!r}: beside"
    table = convert(raw, BesideSpec, where)
    for row in table.rows:
        _published(row, f"{where}: {row.what}")
    return table


def compare(manifest: Manifest, arms: tuple[ArmSummary, ...]) -> Comparison | None:
    """Compare a run with the other backend's reference run and with published values.

    Returns None if the experiment has no table ``[beside]``.
    """
    plan = manifest.plan
    try:
        comparison_spec = spec(plan.shown.experiment)
    except UsageError:  # the experiment's file may be missing here, or may have changed since
        return None
    if comparison_spec is None:
        return None
    own = Side(plan, medians(arms))
    if manifest.backend == "simulator":
        emulated, simulated = _reference_side(plan.shown.experiment, comparison_spec.emulation), own
    else:
        emulated, simulated = (
            own,
            _reference_side(plan.shown.experiment, comparison_spec.simulation),
        )
    return _comparison(plan, comparison_spec, emulated, simulated)


def _comparison(
    plan: Plan, comparison_spec: BesideSpec, emulated: Side, simulated: Side
) -> Comparison:
    frame_bytes = theory.frame_bytes(plan.shown.network.mtu_bytes)
    published_ms = theory.occupancy_ns(frame_bytes, int(comparison_spec.published_rate)) / 1e6
    heads = [
        f"{method}, {Rate(side.plan.shown.network.link.rate_bps)}{run}"
        for side, backend in ((emulated, "emulation"), (simulated, "simulation"))
        for method, run in (
            ("theory", ""),
            (backend, ", this run" if side.plan is plan else ", reference run"),
        )
    ]
    return Comparison(
        heads=(*heads, f"published, {comparison_spec.published_rate}"),
        frames_ms=(
            emulated.frame_ms,
            emulated.frame_ms,
            simulated.frame_ms,
            simulated.frame_ms,
            published_ms,
        ),
        rows=tuple(
            _row(
                row,
                emulated,
                simulated,
                f"experiment {plan.shown.experiment!r}: beside: {row.what}",
            )
            for row in comparison_spec.rows
        ),
        source=comparison_spec.source,
    )


def _reference_side(experiment: str, preset: str) -> Side:
    """Return a preset with the values of its reference run."""
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
