"""Read and write ``verdicts.json``, the results of an analysis.

The report is written from this file and the manifest alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from qjump_mn.errors import UsageError, command, reason_of
from qjump_mn.model.experiment import Better
from qjump_mn.process.files import write_atomically
from qjump_mn.programs.facts import Check
from qjump_mn.results import bootstrap

NAME = "verdicts.json"

Verdict = Literal["REPRODUCED", "DIRECTION ONLY", "PARTLY", "NOT REPRODUCED", "INVALID", "NOT RUN"]


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One value per seed, and their spread. ``interval95`` is the 95 % bootstrap interval of the
    median, or null for fewer than three seeds."""

    seeds: tuple[int, ...]
    values: tuple[float, ...]
    minimum: float
    median: float
    maximum: float
    interval95: tuple[float, float] | None

    @classmethod
    def of(cls, by_seed: Mapping[int, float]) -> Spread:
        """Return the spread of at least one value."""
        seeds = tuple(sorted(by_seed))
        values = tuple(by_seed[seed] for seed in seeds)
        interval = bootstrap.interval95(values)
        return cls(seeds, values, min(values), statistics.median(values), max(values), interval)

    @property
    def span(self) -> tuple[float, float]:
        """The error bar of the median: its interval, or the whole range for fewer than three
        seeds."""
        return self.interval95 or (self.minimum, self.maximum)

    def over(self, base: Spread | None) -> Spread | None:
        """Return the ratios to ``base``, seed by seed; None if no seed has both values, or ``base``
        is 0."""
        divisors = dict(zip(base.seeds, base.values, strict=True)) if base else {}
        ratios = {
            seed: value / divisors[seed]
            for seed, value in zip(self.seeds, self.values, strict=True)
            if divisors.get(seed)
        }
        return Spread.of(ratios) if ratios else None


class ArmSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An arm with its values: ``measures[workload][measure]``, and the bulk goodput in Mb/s,
    ``flows[workload][flow]``."""

    name: str
    label: str
    scheme: str
    planned: int
    done: int
    measures: dict[str, dict[str, Spread]]
    flows: dict[str, dict[str, Spread]]


def medians(arms: Iterable[ArmSummary]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the medians over the seeds as ``[arm][workload][measure]``, the form that claims
    read."""
    return {
        arm.name: {
            key: {name: spread.median for name, spread in measured.items()}
            for key, measured in arm.measures.items()
        }
        for arm in arms
    }


class LinkLoad(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The load of one level on a directed link while an arm was measured; level null: all levels.

    ``share`` is the median over the seeds of the fraction of time that the link was busy. ``drops``
    and ``marks`` (ECN) in packets, and ``most_bytes`` waiting, are maxima; null if not counted.
    """

    source: str
    destination: str
    level: int | None
    share: float
    drops: int
    marks: int = 0
    most_bytes: int | None


class Perturbed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a claim fares in the perturbed runs, of which there are ``planned``.

    ``checked`` and ``held`` are the numbers of the runs in which it was checked and held.
    ``broken_by`` is what was varied in the first run where it did not hold."""

    planned: int
    checked: tuple[int, ...]
    held: tuple[int, ...]
    broken_by: str = ""


class VerdictRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A claim and its verdict. ``held`` are the seeds, out of ``checked``, for which it is true.

    ``published`` is the range of the published number. REPRODUCED requires a value within
    ``factor`` of it; ``because`` says why not closer. ``better`` says on which side of it a number
    is better. ``perturbed`` is null without perturbed runs, which do not change the verdict."""

    claim: str
    statement: str
    source: str
    predicate: str
    shows: str
    gate: bool
    verdict: Verdict
    shown: Spread | None
    held: tuple[int, ...]
    checked: tuple[int, ...]
    note: str
    published: tuple[float, float] | None = None
    factor: float = 1.0
    because: str = ""
    better: Better = ""
    perturbed: Perturbed | None = None

    @property
    def times_published(self) -> float | None:
        """The shown median divided by the nearest published number; 1 inside the published range,
        None if one of them is missing."""
        if self.published is None or self.shown is None:
            return None
        least, most = self.published
        return self.shown.median / min(max(self.shown.median, least), most)

    @property
    def is_better(self) -> bool:
        """Whether the claim holds with a number that is not of the published size, but better."""
        times = self.times_published
        if self.verdict != "DIRECTION ONLY" or times is None:
            return False
        return times > 1 if self.better == "more" else times < 1 and self.better == "less"

    @property
    def fails_gate(self) -> bool:
        """Whether this is a gate that does not hold, which makes the run INVALID."""
        return self.gate and bool(self.checked) and self.held != self.checked


class Drawing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A figure. ``files`` are relative to the run directory, by suffix: png, svg, pdf and, if the
    figure provides its numbers, csv. ``caption`` is plain text. ``missing_glyphs`` are characters
    that the figure's font lacks."""

    name: str
    title: str
    caption: str
    files: dict[str, str]
    missing_glyphs: str = ""


class Quantity(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A row of a comparison: a value for each column, null if unknown.

    Values are in ms or, with ``unit`` "times", ratios."""

    what: str
    unit: Literal["ms", "times"]
    values: tuple[float | None, ...]


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Quantities side by side. ``frames_ms`` is how long a full-size frame takes at each column's
    scale; ``source`` is where the published values are from."""

    heads: tuple[str, ...]
    frames_ms: tuple[float, ...]
    rows: tuple[Quantity, ...]
    source: str


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All results of an analysis. ``missing`` has the reason for each trial without data.

    ``links`` has each arm's load of the links that were busy or lost packets in some arm.
    ``sentences`` are the experiment's own remarks on the medians; ``alike`` name arms that left the
    same bytes. ``reference_clause`` is ``reference`` in short, without hashes; "" if it adds
    nothing.
    """

    schema: Literal[1] = 1
    plan_sha256: str
    results_sha256: str
    reference: str
    arms: tuple[ArmSummary, ...]
    verdicts: tuple[VerdictRow, ...]
    checks: tuple[Check, ...]
    missing: dict[str, str]
    drawings: tuple[Drawing, ...]
    exit_code: int
    links: dict[str, tuple[LinkLoad, ...]] = {}
    beside: Comparison | None = None
    sentences: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    reference_clause: str = ""

    @property
    def believable(self) -> bool:
        """Whether no check of fidelity failed."""
        return not any(check.status == "fail" and not check.completeness for check in self.checks)

    def arm(self, name: str) -> ArmSummary | None:
        """Return the arm called ``name``; None if the plan does not have it."""
        return next((arm for arm in self.arms if arm.name == name), None)


def read(folder: Path) -> Outcome:
    """Return the outcome of the run in ``folder``. Raises :class:`UsageError` if it is not
    analysed."""
    try:
        return msgspec.json.decode((folder / NAME).read_bytes(), type=Outcome)
    except FileNotFoundError:
        raise UsageError(
            f"{folder} has no {NAME}: run  {command('report', folder)}  first"
        ) from None
    except OSError as error:
        raise UsageError(f"{folder / NAME} cannot be read: {reason_of(error)}") from None
    except msgspec.DecodeError as error:
        problem = f"{folder / NAME} is not of this version: {error}"
        raise UsageError(f"{problem}: run  {command('report', folder)}  again") from None


def write(folder: Path, outcome: Outcome) -> None:
    """Replace the outcome of the run in ``folder`` atomically."""
    write_atomically(
        folder / NAME, msgspec.json.format(msgspec.json.encode(outcome), indent=1) + b"\n"
    )
