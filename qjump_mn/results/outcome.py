"""``verdicts.json``: what was made of a run. The report is written from this file and the manifest, and from
nothing else."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from qjump_mn.errors import UsageError, command, reason_of
from qjump_mn.results import bootstrap
from qjump_mn.results.manifest import write_atomically

NAME = "verdicts.json"

Verdict = Literal["REPRODUCED", "DIRECTION ONLY", "PARTLY", "NOT REPRODUCED", "INVALID", "NOT RUN"]
CheckStatus = Literal["pass", "fail", "unknown"]


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One number for each seed, and how they lie. ``interval95`` is the 95 % bootstrap interval of the median
    over the seeds, from three seeds on."""

    seeds: tuple[int, ...]
    values: tuple[float, ...]
    minimum: float
    median: float
    maximum: float
    interval95: tuple[float, float] | None

    @classmethod
    def of(cls, by_seed: Mapping[int, float]) -> Spread:
        """The spread of at least one value."""
        seeds = tuple(sorted(by_seed))
        values = tuple(by_seed[seed] for seed in seeds)
        interval = bootstrap.interval95(values)
        return cls(seeds, values, min(values), statistics.median(values), max(values), interval)

    @property
    def span(self) -> tuple[float, float]:
        """What is drawn around the median: its interval; of fewer than three seeds from the least to the
        greatest value."""
        return self.interval95 or (self.minimum, self.maximum)

    def over(self, base: Spread | None) -> Spread | None:
        """The ratios to ``base``, of the seeds that both have and no 0 to divide by; None if there is no such
        seed."""
        divisors = dict(zip(base.seeds, base.values, strict=True)) if base else {}
        ratios = {
            seed: value / divisors[seed]
            for seed, value in zip(self.seeds, self.values, strict=True)
            if divisors.get(seed)
        }
        return Spread.of(ratios) if ratios else None


class ArmSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An arm with its measures, ``measures[workload][measure]``, and the bulk goodput of each flow in Mb/s,
    ``flows[workload][flow]``."""

    name: str
    label: str
    scheme: str
    planned: int
    done: int
    measures: dict[str, dict[str, Spread]]
    flows: dict[str, dict[str, Spread]]


def medians(arms: Iterable[ArmSummary]) -> dict[str, dict[str, dict[str, float]]]:
    """``[arm][workload][measure]``: the medians over the seeds, as claims read the values of one seed."""
    return {
        arm.name: {
            key: {name: spread.median for name, spread in measured.items()}
            for key, measured in arm.measures.items()
        }
        for arm in arms
    }


class LinkLoad(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one level (all together if None) did to a directed link while an arm was measured.

    ``share`` of the time that the link was busy is the median over the seeds; ``drops`` and ``marks`` (ECN),
    in packets, and ``most_bytes``, which ever waited, are the greatest; None if that is not counted.
    """

    source: str
    destination: str
    level: int | None
    share: float
    drops: int
    marks: int = 0
    most_bytes: int | None


class Perturbed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the perturbed runs say to a claim: of so many that were ``planned`` the numbers of those in which
    it was ``checked`` and ``held``, and what was varied in the first where it did not hold, ``broken_by``."""

    planned: int
    checked: tuple[int, ...]
    held: tuple[int, ...]
    broken_by: str = ""


class VerdictRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A claim and what the run says to it. ``held`` are the seeds for which the predicate is true, of those
    in ``checked``. ``published`` are the least and the greatest that was published of what it shows, within
    ``factor`` of which REPRODUCED asks it to be, for the reason ``because``. ``perturbed`` is None where
    there are no perturbed runs; the verdict is of the seeds alone."""

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
    perturbed: Perturbed | None = None

    @property
    def fails_gate(self) -> bool:
        """Whether it is a gate that does not hold, so that the run may not be believed."""
        return self.gate and bool(self.checked) and self.held != self.checked


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One reason to believe the run, or not. A failed check makes it INVALID, unless it is about
    ``completeness`` only."""

    name: str
    status: CheckStatus
    text: str
    completeness: bool = False

    @classmethod
    def of(cls, name: str, problems: Sequence[str], good: str) -> Check:
        """Failed with up to three of its ``problems``; passed with the text ``good`` if there are none."""
        if not problems:
            return cls(name=name, status="pass", text=good)
        more = f", and {len(problems) - 3} more" if len(problems) > 3 else ""
        return cls(name=name, status="fail", text="; ".join(problems[:3]) + more)


class Drawing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A figure: ``files`` by their ending (png, svg, pdf, and csv, the numbers, if they are known), relative
    to the run directory; ``caption`` is plain text."""

    name: str
    title: str
    caption: str
    files: dict[str, str]


class Quantity(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A quantity in ms or, with ``unit`` "times", without a unit; a value for each column of its comparison,
    None where it is not known."""

    what: str
    unit: Literal["ms", "times"]
    values: tuple[float | None, ...]


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Quantities side by side: columns with their heads and how long a full-size frame takes at their scale,
    in ms; ``source`` of the published."""

    heads: tuple[str, ...]
    frames_ms: tuple[float, ...]
    rows: tuple[Quantity, ...]
    source: str


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that analysis found; ``missing`` names each trial without data with the reason.

    ``links`` has, for each arm that tells, what the levels did to the links that some arm kept busy or lost
    packets on. ``sentences`` are what the experiment says of the medians. ``reference_clause`` is
    ``reference`` in a few words, without hashes; "" where that says nothing new.
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
    reference_clause: str = ""

    @property
    def believable(self) -> bool:
        """Whether no check of fidelity failed."""
        return not any(check.status == "fail" and not check.completeness for check in self.checks)

    def arm(self, name: str) -> ArmSummary | None:
        """The arm called ``name``, if the plan has it."""
        return next((arm for arm in self.arms if arm.name == name), None)


def read(folder: Path) -> Outcome:
    """The outcome of the run in ``folder``; raise :class:`UsageError` if it was not analysed."""
    try:
        return msgspec.json.decode((folder / NAME).read_bytes(), type=Outcome)
    except FileNotFoundError:
        raise UsageError(f"{folder} has no {NAME}: run  {command('report', folder)}  first") from None
    except OSError as error:
        raise UsageError(f"{folder / NAME} cannot be read: {reason_of(error)}") from None
    except msgspec.DecodeError as error:
        what = f"{folder / NAME} is not of this version: {error}"
        raise UsageError(f"{what}: run  {command('report', folder)}  again") from None


def write(folder: Path, outcome: Outcome) -> None:
    """Replace the outcome of the run in ``folder`` at once."""
    write_atomically(folder / NAME, msgspec.json.format(msgspec.json.encode(outcome), indent=1) + b"\n")
