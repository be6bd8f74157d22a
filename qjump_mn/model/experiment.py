"""An experiment file: what is asked, of which network, with which arms, and what was published about it."""

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
from qjump_mn.programs.registry import AnySpec

EpochMode = Literal["rolling", "first-packet", "aligned"]


class QJumpSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Rate limits. A level's budget is factor x ``budget_packet`` bytes per epoch; a level without a factor
    is unlimited. Bytes are those of the wire, preamble and gap included: a frame costs its length as the
    kernel counts it and ``overhead``, at least ``mpu``.

    ``epoch`` is Eq. 2 of ``hosts`` and ``packet`` on this network unless it is given. So much later than they
    were charged frames may leave, ``slack``: without it, what the link model may need. ``priomap`` is the
    level of each socket priority from 0 to 15. What happens to the
    excess is for the arm's scheme to say; with "2015", the published module's rules, and "drop" what comes is
    charged, as the kernel counts it, epochs start with the first packet, and ``limit_packets`` has no effect.
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
    """One treatment: ``scheme`` names a file of schemes/.

    ``qjump`` names one of the experiment's limiters, for a scheme that limits; without it that is the first.
    ``window`` and ``link`` are in the place of the scheme's, ``tcp`` in that of the experiment's, if they are
    given. With ``sweep`` it stands for a series of arms, one for each value of that sweep.
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
    """A parameter that is varied: ``sets`` are the settings, such as those below ``workloads``, ``qjump``,
    ``schemes`` or ``link``, that take each of ``values`` in turn. Where an experiment has ``points`` instead,
    values are their names.

    ``label`` names the parameter with its unit, for the axis of the figure; values with a unit all have the
    same.
    """

    sets: list[str]
    values: list[int | float | str]
    label: str


class SizeSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How near a claim's number must come to the published one: by this ``factor`` at most, up or down, and
    ``because`` says why that is.

    ``published`` is that number, or a range, where it was published itself, such as a ratio; else it is what
    the experiment's published numbers make of it.
    """

    factor: float
    because: str
    published: float | tuple[float, float] | None = None


class ClaimSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What was published, as a predicate over the arms' measures; see ``qjump_mn.analysis.claims`` for its
    language.

    A ``gate`` must hold for the run to be believed: where it fails, the run is INVALID. ``shows`` is an
    expression printed beside it; with a ``size`` it is compared with what the experiment's published numbers
    make of it. Where they name a series instead of an arm, the claim is about each of its
    arms whose ``x``, the sweep's value, fulfils ``where``; of the numbers shown it is the largest that is
    printed.
    """

    statement: str
    source: str
    predicate: str
    shows: str = ""
    where: str = ""
    gate: bool = False
    size: SizeSpec | None = None


Published = dict[str, float | tuple[float, float]]
"""Published numbers by the measure that they are of, "arm.workload.measure"; two are a range."""


class PanelSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A panel of a figure: ``measures``, "workload.measure", against the sweep's value. ``bound`` names a
    constant that is drawn across it, or a measure of a series, "arm.workload.measure". ``title`` stands above
    it; panels with one ``column`` stand below each other; ``arms`` are those of the figure's that are in it,
    all by default.

    With ``saturates`` the figure marks, and says, from which value on more of it gains the first line less
    than 5 %. Values are relative to the same measure in another arm, or that of a series at the same x, seed
    by seed, where ``relative_to`` names one for their workload.
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
    """A sentence below the table of arms: ``text``, with the value of the expression ``of`` in the place of
    {value}.

    The expression is of the claims' language, over the medians of the replicates. Where it has no value,
    because an arm was not run, the sentence is left out.
    """

    of: str
    text: str


class FigureSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which figure shows the experiment, and which arms go into its panels; ``quantity`` names the axis of
    latencies. ``panels`` are what a drawing of a sweep has, one above the other, on an axis that is
    logarithmic with ``log_x``.

    ``table`` are the measures, "workload.measure", that the table of arms has; without it those are the
    latencies and the bulk goodput. ``sentences`` stand below that table.

    ``published`` names files of plots/published, one for each picture that was published, in the order in
    which ours are drawn: a run at their rate has their axes, and what is in the table [published] behind its
    data.
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
    """An experiment with one preset applied; times are on the clock of the network under test. Where the
    simulator comes first, a trial without a ``duration`` ends when all of its flows have.

    ``backends`` are those that can run it, the usual one first. ``compare`` is the arm, or are the arms,
    whose workloads meet each scheme that a user asks for. ``schemes`` are those of all arms, from their
    files, with what the experiment changes in them.
    """

    BESIDE: ClassVar[tuple[str, ...]] = ("also", "beside", "usual_preset")
    """What else its file may have, and presets."""
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
    figure: FigureSpec
    remarks: list[str] = []
