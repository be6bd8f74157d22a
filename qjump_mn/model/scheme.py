"""The types of a scheme file, and of the scheme that it resolves to."""

from __future__ import annotations

import re
from typing import ClassVar, Literal

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model import words
from qjump_mn.model.topology import LinkChange
from qjump_mn.model.units import Size

Limiter = Literal["delay", "drop", "2015", "tbf", "edt"]
KEEP_BUDGETS: tuple[Limiter, ...] = ("delay", "edt")
"""Limiters that charge at most one budget in any window of one epoch: a packet waits until it fits.
"""
Setting = int | float | str | bool | list[int | str]
Dashes = Literal["solid", "dashed", "dotted", "dashdot", "long", "short"]

MARKERS = "ov^<>sDd8pP*hHXx+"
"""The markers of matplotlib that have an area."""


class Look(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How every figure draws a scheme: its colour, and for prints without colour, its dashes and
    marker (a letter of matplotlib).
    """

    colour: str
    marker: str
    dashes: Dashes = "solid"

    def check(self, where: str) -> None:
        """Raise :class:`UsageError` for an unknown colour or marker."""
        if not re.fullmatch("#[0-9A-Fa-f]{6}", self.colour):
            raise UsageError(
                f"{where}.colour: {self.colour!r} is not a colour: write it as in '#AA3377'"
            )
        if len(self.marker) != 1 or self.marker not in MARKERS:
            raise UsageError(
                f"{where}.marker: {self.marker!r} is not a marker: use one of {' '.join(MARKERS)}"
            )


class Simulated(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The scheme in the simulator: ``like`` names a scheme of the simulator, the other keys change
    it.

    Times have a unit ("200us"), bytes are plain numbers, packets are "65pkt", and "buffer" is the
    buffer of the topology's ports. A queue or transport of another ``kind`` has its own defaults
    (docs/simulator-api.md). ``host_queue`` is the queue of the hosts' links, ``pause`` is flow
    control, and ``shared_buffer`` a buffer that each switch's ports share, with dynamic thresholds.
    ``flowlet_gap`` replaces ``routing``: packets that follow each other within it take one path,
    and after a longer pause the least loaded. With ``congestion`` "custom" in ``transport``,
    ``law`` there is the name of a file in a folder schemes/: a congestion law in WebAssembly.
    Levels are those of 802.1Q. The arm's limiter replaces the scheme's own.
    """

    like: str
    queue: dict[str, Setting] = {}
    host_queue: dict[str, Setting] = {}
    pause: dict[str, Setting] = {}
    shared_buffer: dict[str, Setting] = {}
    transport: dict[str, Setting] = {}
    routing: Literal["spray", "per-flow", "adaptive"] | None = None
    flowlet_gap: str | None = None


class SchemeSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A scheme file.

    ``levels`` marks every workload with its level. Switches and hosts serve levels in strict
    priority, or as ``switch_port`` and ``host`` say; a frame's priority is its level.

    ``limiter`` makes hosts limit their levels to the experiment's rates: "delay" by sch_qjump,
    "2015" by sch_qjump2015, "drop" likewise but with levels without a factor unlimited, "tbf" by
    prio and tbf, "edt" by prio, fq and the departure times of qjump-edt. ``window`` caps the socket
    buffers of background workloads. ``congestion_control`` and ``ecn`` are TCP's, on every host.
    ``link`` changes every link.

    ``module`` is the name of a C file in a folder schemes/: a kernel module with a congestion
    control or a qdisc, for the guest only. ``module_parameters`` are what it gets when it is
    loaded, such as "gain={gain}".

    ``host`` and ``switch_port`` are tc lines, without the word tc, for every host's interface and
    every switch port. {dev} is the interface, {parent} the parent class. ``vlan`` are tc lines for
    every host's VLAN device, for a qdisc that must be the root; the device then has a queue for
    each level.

    {rate} (bit/s), {buffer}, {frame} (a full frame, bytes) and {mtu} are those of the link. Any
    other field is an expression (:mod:`qjump_mn.model.expression`) of these names and of
    ``parameters``, such as {0.07 * buffer}; its value is rounded. A line with {level} in an
    expression is repeated for each level.

    ``simulator`` is the scheme in the simulator. A scheme with ``only_simulated`` has nothing else.
    """

    WORDS: ClassVar[words.Kinds] = words.OF_SCHEMES

    label: str
    about: str
    look: Look
    levels: bool = False
    limiter: Limiter | None = None
    window: Size | None = None
    congestion_control: str | None = None
    ecn: bool | None = None
    link: LinkChange = LinkChange()
    parameters: dict[str, float] = {}
    host: tuple[str, ...] = ()
    switch_port: tuple[str, ...] = ()
    vlan: tuple[str, ...] = ()
    module: str | None = None
    module_parameters: str = ""
    simulator: Simulated | None = None
    only_simulated: bool = False


class Module(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A kernel module: the name of its C file, and what is in it."""

    file: str
    source: str

    @property
    def path(self) -> str:
        """Where the guest has it, compiled."""
        return f"/usr/lib/qjump-mn/{self.file.removesuffix('.c')}.ko"

    def check(self, where: str) -> None:
        """Raise :class:`UsageError` that begins with ``where`` for a name or a text that cannot be
        compiled; the plan may come from a stranger's manifest."""
        words.check(words.MODULE, f"{where}: module", self.file)
        words.check(words.SOURCE, f"{where}: {self.file}", self.source)


class Law(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A law of congestion control for the simulator: the name of its file, and WebAssembly, as text
    or, of a .wasm, in hexadecimal digits.
    """

    file: str
    code: str

    @classmethod
    def of(cls, file: str, content: bytes) -> Law:
        """Return the law in a file. Raise UnicodeDecodeError for a text that is not in UTF-8."""
        return cls(file=file, code=content.hex() if _is_binary(file) else content.decode("utf-8"))

    @property
    def content(self) -> bytes:
        """What the file had. Raises ValueError for what are no hexadecimal digits."""
        return bytes.fromhex(self.code) if _is_binary(self.file) else self.code.encode()


def _is_binary(law_file: str) -> bool:
    return law_file.endswith(".wasm")


class SchemePlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rest of a scheme when levels, limits, windows and links are resolved. Its tc lines still
    have {dev} and {parent}.
    """

    NOT_RUN: ClassVar = ("name", "only_simulated")

    name: str
    congestion_control: str | None = None
    ecn: bool | None = None
    host: tuple[str, ...] = ()
    switch_port: tuple[str, ...] = ()
    trunk_port: tuple[str, ...] = ()
    vlan: tuple[str, ...] = ()
    module: Module | None = None
    module_parameters: tuple[str, ...] = ()
    simulator: Simulated | None = None
    law: Law | None = None
    only_simulated: bool = False


class Presented(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How tables and figures present a scheme."""

    label: str
    about: str
    look: Look
