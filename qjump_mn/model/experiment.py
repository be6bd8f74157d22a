"""The types of an experiment file: workloads, limiters, arms, sweeps, claims and the figure."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from qjump_mn import theory
from qjump_mn.model import words
from qjump_mn.model.clock import Clock
from qjump_mn.model.scheme import SchemeSpec
from qjump_mn.model.tcp import Tcp
from qjump_mn.model.topology import LinkChange, LinkSpec
from qjump_mn.model.units import Duration, Size
from qjump_mn.model.workload import AnySpec

EpochMode = Literal["rolling", "first-packet", "aligned"]


class QJumpSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Rate limits. A level's budget is factor x ``budget_packet`` bytes per epoch. A level without
    a factor is unlimited. Bytes are wire bytes, with preamble and gap: a frame costs its length in
    the kernel plus ``overhead``, and at least ``mpu``.

    ``epoch`` is by default that of Eq. 2 for ``hosts`` and ``packet`` on this network. ``slack`` is
    how long after it was charged a frame may leave; the default suits the link model. ``priomap``
    has the level of each socket priority from 0 to 15.

    The arm's scheme decides what happens to packets above the budget. In the modes "2015" (the
    rules of the published module) and "drop", a packet is charged on arrival, without ``overhead``.
    Epochs then start with the first packet, and ``limit_packets`` has no effect.
    """

    hosts: int | None = None
    packet: Size = Size(1500)
    budget_packet: Size = Size(1550)
    epoch: Duration | None = None
    epochs: EpochMode = "rolling"
    slack: Duration | None = None
    overhead: int = theory.TAG_TO_GAP_BYTES
    mpu: int = theory.LEAST_WIRE_BYTES
    priomap: tuple[int, ...] = theory.PRIOMAP
    limit_packets: int = 1000
    factors: dict[str, float] = {}


class ArmSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One treatment: ``scheme`` names a file in schemes/.

    ``qjump`` names the limiter for a scheme that limits; by default the experiment's first.
    ``window`` and ``link`` override those of the scheme, ``tcp`` that of the experiment. ``sweep``
    makes the arm a series: one arm for each value of that sweep.
    """

    label: str
    workloads: list[str]
    scheme: str = "none"
    qjump: str | None = None
    window: Size | None = None
    link: LinkChange | None = None
    tcp: Tcp = Tcp()
    sweep: str | None = None


class SweepSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A parameter to vary: each setting in ``sets``, such as ``link.buffer``, takes each of
    ``values`` in turn. If the sweep has ``points`` instead, the values are the names of points.

    ``label`` names the parameter and its unit on the axis of the figure. All values have the same
    unit.
    """

    sets: list[str]
    values: list[int | float | str]
    label: str


Better = Literal["more", "less", ""]
"""Whether more or less than the published number is a better result; "" if neither is."""


class SizeSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How close a claim's number must be to the published one: within this ``factor``, up or down.
    ``because`` explains the factor.

    ``published`` is the published number or range, such as a ratio. By default it is computed from
    the experiment's published numbers. ``better`` says on which side of it a number is better.
    """

    factor: float
    because: str
    published: float | tuple[float, float] | None = None
    better: Better = ""


class ClaimSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published statement, as a predicate over the arms' measures. ``qjump_mn.analysis.claims``
    describes the language.

    If a claim with ``gate`` fails, the run is INVALID. ``shows`` is an expression that is printed
    beside the claim; with a ``size`` it is compared with its value for the published numbers.

    A claim about a series is judged for each of its arms whose ``x``, the sweep's value, fulfils
    ``where``. The largest of the shown numbers is printed.
    """

    statement: str
    source: str
    predicate: str
    shows: str = ""
    where: str = ""
    gate: bool = False
    size: SizeSpec | None = None


Published = dict[str, float | tuple[float, float]]
"""Published numbers by measure, "arm.workload.measure". Two numbers are a range."""


class PanelSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A panel of a figure: ``measures``, "workload.measure", against the sweep's value. ``bound``
    draws a constant across it, or a measure of a series, "arm.workload.measure". ``title`` is
    printed above it. Panels with the same ``column`` are below each other. ``arms`` are the arms
    drawn, by default all of the figure's.

    ``saturates`` marks the value above which the first line gains less than 5 %. ``relative_to``
    maps a workload to an arm or series: its measures are divided by those of that arm, seed by
    seed, at the same x.
    """

    measures: list[str]
    label: str
    title: str = ""
    column: int = 0
    arms: list[str] = []
    log: bool = False
    bound: str = ""
    saturates: bool = False
    relative_to: dict[str, str] = {}


class SentenceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A sentence below the table of arms: ``text``, in which {value} is replaced by the value of
    ``of``.

    ``of`` is an expression in the claims' language over the medians of the replicates. If it has no
    value, because an arm was not run, the sentence is left out.
    """

    of: str
    text: str


class FigureSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The figure of the experiment: its kind (``plot``) and the arms in its panels. ``quantity``
    labels the axis of latencies. ``panels`` are the panels of a sweep's figure; ``log_x`` makes
    their x axis logarithmic.

    ``table`` lists the measures, "workload.measure", in the table of arms; by default the latencies
    and the bulk goodput. ``sentences`` are printed below that table.

    ``published`` names files in plots/published, one for each published picture, in the order of
    ours. A run at the published rate is drawn on the published axes, with the published curves
    behind its data.
    """

    plot: str
    workload: str
    arms: list[str]
    detail: list[str] = []
    quantity: str = "round-trip time"
    table: list[str] = []
    panels: list[PanelSpec] = []
    log_x: bool = False
    published: list[str] = []
    sentences: list[SentenceSpec] = []


class ExperimentSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An experiment with one preset applied. Times are on the clock of the network under test. If
    the simulator is the first backend, a trial without a ``duration`` ends when all its flows have
    ended.

    ``backends`` can run the experiment; the first is the default. ``compare`` names the arm or arms
    whose workloads are run with each scheme that a user adds. ``schemes`` are the schemes of all
    arms, read from their files, with the experiment's changes.

    ``calibrated`` names settings whose published value is not known, each with the measure that was
    published and by which the setting was chosen. What is published of that measure is then no
    prediction: a claim that shows nothing else has no ``size``.
    """

    BESIDE: ClassVar[tuple[str, ...]] = ("also", "beside", "usual_preset")
    """Further keys of the file, which are not part of the spec; so is ``presets``."""
    WORDS: ClassVar[words.Kinds] = words.OF_EXPERIMENTS

    title: str
    reproduces: str = "none: an experiment of one's own"
    question: str = ""
    topology: str
    link: LinkSpec
    tcp: Tcp = Tcp()
    clock: Clock = Clock()
    warmup: Duration = Duration(0)
    duration: Duration = Duration(0)
    replicates: int = 1
    workloads: dict[str, AnySpec]
    qjump: dict[str, QJumpSpec] = {}
    backends: tuple[str, ...] = ("guest", "host")
    compare: str | list[str] = ""
    schemes: dict[str, SchemeSpec] = {}
    arms: dict[str, ArmSpec]
    sweeps: dict[str, SweepSpec] = {}
    claims: dict[str, ClaimSpec] = {}
    published: Published = {}
    calibrated: dict[str, str] = {}
    figure: FigureSpec
    remarks: list[str] = []
