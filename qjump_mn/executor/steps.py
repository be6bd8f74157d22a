"""The steps of a trial as plain data: set a network up, apply an arm, measure, and read it back.

``qjump_mn.steps.compile`` creates steps, ``qjump_mn.steps.script`` prints them, and
``executor.trial`` carries them out, in order. A ``node`` is the name of a host, or "" for the
machine itself, where the switches are. Paths are relative to the folder of the trial. Times are in
s.
"""

from __future__ import annotations

import msgspec

MACHINE = ""

OWNER = "external_ids:owner=qjump-mn"
"""The mark of our rows in Open vSwitch's database: bridges, QoS and queues.

Rows outlive a run that is killed, and even a reboot.
"""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="step"):
    """The base class of steps."""


class Switch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A learning switch on Open vSwitch's kernel datapath, numbered ``dpid`` (hexadecimal)."""

    name: str
    dpid: str


class End(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One end of a cable."""

    node: str
    device: str
    mac: str


class Cable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A veth pair, created by ``line`` of ``ip -batch`` with each end at its node.

    Mininet has no option for queues (its issue 976). An end at a switch becomes its next port.
    """

    ends: tuple[End, End]
    line: str


class Topology(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="topology"):
    """Create a network with Mininet. A host is a network namespace that ``ip netns`` knows."""

    hosts: tuple[str, ...]
    switches: tuple[Switch, ...]
    cables: tuple[Cable, ...]


class Settings(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="settings"):
    """Set kernel settings of a node, by sysctl's names; ones that the kernel lacks are skipped.

    With ``restored`` the kernel must have them, and they are restored at the end of the block of
    steps.
    """

    values: dict[str, str]
    node: str = MACHINE
    restored: bool = False


class ReadSettings(
    Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="read_settings"
):
    """Save a node's kernel settings in the file ``output``, as sysctl prints them."""

    keys: tuple[str, ...]
    node: str = MACHINE
    output: str


class Offloads(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="offloads"):
    """Turn off tso, gso and gro of interfaces, so that they neither split nor merge packets.

    With ``on``, turn on tso and gso until the end of the block of steps.
    """

    devices: tuple[str, ...]
    node: str = MACHINE
    on: bool = False


class Announce(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="announce"):
    """Send a packet from a host to the broadcast ``address``: every switch learns its port."""

    node: str
    address: str


class Run(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="run"):
    """Run a command that must succeed; if not, ``refusal`` begins the error message.

    ``undo`` runs at the end of the block of steps. ``saves`` is a command that runs before;
    its output is the standard input of ``undo``.
    """

    argv: tuple[str, ...]
    node: str = MACHINE
    stdin: str = ""
    undo: Run | None = None
    saves: tuple[str, ...] = ()
    refusal: str = ""
    deadline_s: float = 120.0


class Read(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="read"):
    """Save a command's output in the file ``output``; the trial's facts record when it was read."""

    argv: tuple[str, ...]
    node: str = MACHINE
    output: str
    deadline_s: float = 120.0


class Start(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="start"):
    """Start a program in the folder ``raw``, with its standard output in the file ``output``.

    Other steps refer to the program by ``output``; messages call it ``shown``. It ends by
    ``itself``, with one of the ``good`` exit statuses, or a step :class:`Stop` ends it.
    """

    argv: tuple[str, ...]
    node: str
    output: str
    shown: str
    itself: bool = True
    good: tuple[int, ...] = (0,)


class Wait(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="wait"):
    """Wait at most ``deadline_s`` until the command ``argv`` succeeds, in the folder ``raw``.

    ``lacks`` describes what is missing until then. ``program`` is the output of a started program:
    its end is an error.
    """

    argv: tuple[str, ...]
    node: str = MACHINE
    program: str = ""
    lacks: str
    deadline_s: float


class Finish(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="finish"):
    """Wait until a program ends by itself, at most ``deadline_s`` after its start."""

    program: str
    deadline_s: float


class Stop(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="stop"):
    """Send SIGTERM to a program, and wait at most ``deadline_s`` for its end."""

    program: str
    deadline_s: float


class Mark(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="mark"):
    """Record this instant as ``name``."""

    name: str


class Sleep(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="sleep"):
    """Sleep until ``after_s`` after the instant ``mark``, or after now if there is no mark."""

    after_s: float
    mark: str = ""


class Measure(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="measure"):
    """Begin the measurement, and record the processor's utilisation from here on.

    With ``every_s``, also record how late a thread wakes up at this interval; on a clock that
    stands still while code runs, nothing can be late.
    """

    every_s: float | None = None


class Measured(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="measured"):
    """End the measurement."""


AnyStep = (
    Topology | Settings | ReadSettings | Offloads | Announce | Run | Read | Start | Wait | Finish
    | Stop | Mark | Sleep | Measure | Measured
)  # fmt: skip
Steps = tuple[AnyStep, ...]

LOAD, MEASUREMENT = "load", "measurement"
"""Instants that a trial's facts refer to: the start of the load, and of the measurement."""


def decode(plain: object) -> Steps:
    """Convert decoded JSON to steps; raise msgspec.ValidationError if it does not fit."""
    return msgspec.convert(plain, Steps)
