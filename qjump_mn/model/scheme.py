"""A scheme: what hosts and switches do so that one program's traffic does not disturb another's; each is a
file of schemes/."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Literal

import msgspec

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.links import registry
from qjump_mn.model import expression, words
from qjump_mn.model.expression import Kind, Path, UndefinedError, UnknownNameError
from qjump_mn.model.topology import Link, LinkChange, Network
from qjump_mn.model.units import Size

Limiter = Literal["delay", "drop", "2015", "tbf", "edt"]
KEEP_BUDGETS: tuple[Limiter, ...] = ("delay", "edt")
"""Limiters of which no window of an epoch has more than a budget, where they charge it: a packet waits until
it fits."""
Setting = int | float | str | bool | list[int | str]
Dashes = Literal["solid", "dashed", "dotted", "dashdot", "long", "short"]

FILLED_LATER = ("dev", "parent")
"""Fields of a tc line that differ from interface to interface."""

LEVEL = "level"
"""The name that makes a tc line one for each level."""

_FIELD = re.compile(r"\{([^{}]*)\}")


MARKERS = "ov^<>sDd8pP*hHXx+"
"""Of matplotlib, those with a body of their own."""


class Look(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a scheme is drawn, on every figure: told apart by its colour, and without colours by dashes and
    marker (matplotlib's letter)."""

    colour: str
    marker: str
    dashes: Dashes = "solid"

    def check(self, where: str) -> None:
        """Raise :class:`UsageError` for what cannot be drawn."""
        if not re.fullmatch("#[0-9A-Fa-f]{6}", self.colour):
            raise UsageError(f"{where}.colour: {self.colour!r} is no colour: write it as in '#AA3377'")
        if len(self.marker) != 1 or self.marker not in MARKERS:
            raise UsageError(f"{where}.marker: {self.marker!r} is no marker: known are {' '.join(MARKERS)}")


class Simulated(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the simulator does for a scheme: ``like`` names one of its own, the others what is otherwise, in
    its words.

    Times are written with their unit ("200us"), bytes are plain numbers, packets are "65pkt", and "buffer" is
    what a port of the topology holds. A queue or transport of another ``kind`` has its own
    defaults for what is left out here (docs/simulator-api.md).
    ``host_queue`` is that of the hosts' own links, ``pause`` flow control. Levels are 802.1Q's. The arm's
    limiter takes the place of the scheme's own.
    """

    like: str
    queue: dict[str, Setting] = {}
    host_queue: dict[str, Setting] = {}
    pause: dict[str, Setting] = {}
    transport: dict[str, Setting] = {}
    routing: Literal["spray", "per-flow"] | None = None


class SchemeSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A scheme file.

    ``levels`` marks every workload with its level, which switches and hosts serve in strict priority, or as
    ``switch_port`` and ``host`` have it, where a frame's priority is its level.
    ``limiter`` makes hosts limit their levels by the experiment's rates: sch_qjump ("delay"), sch_qjump2015
    ("2015", and "drop" where levels without a factor are unlimited), prio and "tbf", or prio, fq and
    qjump-edt's departure times ("edt"). ``window`` caps the socket buffers of background workloads.
    ``congestion_control`` and ``ecn`` are TCP's, on every host. ``link`` changes every link. ``host`` and
    ``switch_port`` are tc lines for every host's interface and every switch port, each
    without the word tc: {dev} is the interface, {parent} the class below which they belong. ``vlan`` are
    those for every host's VLAN device, above its wire, which then has a queue for each level: for what must
    be root of its interface. {rate} (bit/s),
    {buffer}, {frame} (bytes; a full one) and {mtu} are the link's. Any other field is a number, which is
    rounded: an expression (:mod:`qjump_mn.model.expression`) with these names and those of ``parameters``,
    such as {0.07 * buffer}. A line with {level} in an expression is one for each level.

    ``simulator`` is what the simulator does instead; a scheme that is
    ``only_simulated`` has nothing else.
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
    simulator: Simulated | None = None
    only_simulated: bool = False


class SchemePlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What of a scheme is left to do when levels, limits, windows and links are resolved; tc lines with {dev}
    and {parent} in them."""

    NOT_RUN: ClassVar = ("name", "only_simulated")

    name: str
    congestion_control: str | None = None
    ecn: bool | None = None
    host: tuple[str, ...] = ()
    switch_port: tuple[str, ...] = ()
    trunk_port: tuple[str, ...] = ()
    vlan: tuple[str, ...] = ()
    simulator: Simulated | None = None
    only_simulated: bool = False


class Presented(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What tables and figures tell of a scheme."""

    label: str
    about: str
    look: Look


def resolve_scheme(where: str, name: str, spec: SchemeSpec, network: Network) -> SchemePlan:
    """Check ``spec`` for links of ``network`` and fill in its numbers; raise :class:`UsageError` that begins
    with ``where``."""
    _check(where, spec, network)

    def filled(key: str, lines: tuple[str, ...], link: Link) -> tuple[str, ...]:
        values = {**_of_link(link), **spec.parameters}
        return tuple(
            _filled(f"{where}: {key}", line, {**values, **level}) for line in lines for level in _levels(line)
        )

    return SchemePlan(
        name=name,
        congestion_control=spec.congestion_control,
        ecn=spec.ecn,
        host=filled("host", spec.host, network.link),
        switch_port=filled("switch_port", spec.switch_port, network.link),
        trunk_port=filled("switch_port", spec.switch_port, network.trunk),
        vlan=filled("vlan", spec.vlan, network.link),
        simulator=spec.simulator,
        only_simulated=spec.only_simulated,
    )


def _check(where: str, spec: SchemeSpec, network: Network) -> None:
    if spec.limiter and not spec.levels:
        raise UsageError(f"{where}: a limiter without levels limits nothing but level 0: set levels = true")
    spec.look.check(f"{where}: look")
    if spec.limiter and spec.host:
        raise UsageError(
            f"{where}: host: the limiter stands where these lines would put their queues: leave one of them "
            "out"
        )
    if spec.switch_port and not registry.of(network.model).has_port_queues:
        raise UsageError(
            f"{where}: switch_port: only ports of links of model wire have a place for queues, not of model "
            f"{network.model}"
        )
    if network.link.pfc and (spec.limiter or spec.host or spec.switch_port):
        raise UsageError(
            f"{where}: pfc pauses levels of the links' own queues: leave limiter, host and switch_port out"
        )
    if spec.only_simulated and spec.simulator is None:
        raise UsageError(f"{where}: only_simulated: it has no table [simulator]")
    unused = [key for key in ("host", "switch_port", "vlan", "parameters") if getattr(spec, key)]
    if spec.only_simulated and unused:
        raise UsageError(
            f"{where}: only_simulated: the simulator has no use for {', '.join(unused)}: leave it out"
        )
    for parameter in spec.parameters:
        if parameter in (*_of_link(network.link), LEVEL, *FILLED_LATER):
            raise UsageError(f"{where}: parameters.{parameter}: take another name: it is the link's")


def _levels(line: str) -> list[dict[str, float]]:
    """What ``line`` is filled in with beside the same for all: nothing, or each level from the most urgent
    on."""
    if not any(re.search(rf"\b{LEVEL}\b", field) for field in _FIELD.findall(line)):
        return [{}]
    return [{LEVEL: level} for level in reversed(theory.LEVELS)]


def _of_link(link: Link) -> dict[str, float]:
    return {
        "rate": link.rate_bps,
        "buffer": link.buffer_bytes,
        "frame": theory.frame_bytes(link.mtu_bytes),
        "mtu": link.mtu_bytes,
    }


def _filled(where: str, line: str, values: Mapping[str, float]) -> str:
    """``line`` with a number for every {expression}; {dev} and {parent} stay."""
    verb, _, rest = line.partition(" ")
    if verb not in ("qdisc", "class", "filter") or "{dev}" not in rest:
        raise UsageError(
            f"{where}: {line!r} is no line for tc: write it without 'tc', such as 'qdisc add dev {{dev}} "
            f"parent {{parent}} …'"
        )

    if "{" in (left := _FIELD.sub("", line)) or "}" in left:
        raise UsageError(f"{where}: {line!r} has a brace without its other one")

    def filled(field: re.Match[str]) -> str:
        text = field[1].strip()
        if text in FILLED_LATER:
            return "{" + text + "}"
        return str(_number(f"{where}: {field[0]}", text, values))

    return _FIELD.sub(filled, line)


def _number(where: str, text: str, values: Mapping[str, float]) -> int:
    """The value of an expression over ``values``, rounded."""

    def kind_of(path: Path) -> Kind:
        if path[0] in FILLED_LATER and len(path) == 1:
            raise UnknownNameError(f"is for a field of its own: write {{{path[0]}}}")
        if ".".join(path) not in values:
            raise UnknownNameError(f"is not known: known are {', '.join(values)}")
        return "number"

    parsed = expression.parse(text, where)
    parsed.check("number", kind_of)
    try:
        return round(parsed.value(lambda path: float(values[path[0]])))
    except UndefinedError:
        why = "it divides by zero or is too large: change it, or the parameters"
        raise UsageError(f"{where}: {why}") from None
