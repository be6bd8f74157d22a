"""Steps: what is done to set a network up, to treat it, to measure and to read it back, as plain data in the
one order there is.

``qjump_mn.steps.compile`` makes them, ``qjump_mn.steps.shell`` prints them, ``executor.trial`` carries them
out. A ``node`` is the name of a host, or "" for the machine itself, where the switches are. Paths are
relative to the folder of the trial. Times are in s.
"""

from __future__ import annotations

import msgspec

MACHINE = ""

OWNER = "external_ids:owner=qjump-mn"
"""What all rows of ours in Open vSwitch's database have: bridges, QoS and queues. They outlive a harness that
is killed, and the machine's next boot."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="step"):
    """One thing that is done."""


class Switch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A learning switch on Open vSwitch's kernel datapath; ``dpid`` is its number in hexadecimal."""

    name: str
    dpid: str


class End(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An end of a cable."""

    node: str
    device: str
    mac: str


class Cable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A veth pair, which ``line`` of ``ip -batch`` makes (Mininet has no option for queues: its issue 976),
    each end where its node is; an end at a switch becomes its next port."""

    ends: tuple[End, End]
    line: str


class Topology(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="topology"):
    """A network of Mininet. A host is a network namespace, which ``ip netns`` knows by its name."""

    hosts: tuple[str, ...]
    switches: tuple[Switch, ...]
    cables: tuple[Cable, ...]


class Settings(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="settings"):
    """Settings of a node's kernel by sysctl's names, but for those that it does not have. Where they are to
    be ``restored``, it must have them, and they are as before when the block of steps has ended."""

    values: dict[str, str]
    node: str = MACHINE
    restored: bool = False


class ReadSettings(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="read_settings"):
    """Settings of a node's kernel are kept in the file ``output``, as sysctl prints them."""

    keys: tuple[str, ...]
    node: str = MACHINE
    output: str


class Offloads(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="offloads"):
    """Interfaces of a node no longer cut and join packets: their tso, gso and gro are off. With ``on``, tso
    and gso are on until the block of steps has ended."""

    devices: tuple[str, ...]
    node: str = MACHINE
    on: bool = False


class Announce(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="announce"):
    """A host sends a packet to the broadcast ``address``, so that every switch hears where it is."""

    node: str
    address: str


class Run(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="run"):
    """A command that must succeed; else ``refusal`` is the sentence, in front of its last words.

    ``undo`` takes back what it did, when the block of steps that it is one of has ended. What ``saves``
    prints beforehand is then the standard input of ``undo``.
    """

    argv: tuple[str, ...]
    node: str = MACHINE
    stdin: str = ""
    undo: Run | None = None
    saves: tuple[str, ...] = ()
    refusal: str = ""
    deadline_s: float = 120.0


class Read(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="read"):
    """A command whose output is kept in the file ``output``; the trial's facts say when it was read."""

    argv: tuple[str, ...]
    node: str = MACHINE
    output: str
    deadline_s: float = 120.0


class Start(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="start"):
    """A program is started in the folder ``raw``, where its standard output is the file ``output``, by which
    other steps name it.

    ``shown`` is its name in messages. It ends by ``itself``, with an exit status that is ``good``, or is
    ended by a step :class:`Stop`.
    """

    argv: tuple[str, ...]
    node: str
    output: str
    shown: str
    itself: bool = True
    good: tuple[int, ...] = (0,)


class Wait(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="wait"):
    """Wait until ``argv`` succeeds on ``node``, in the folder ``raw``, at most ``deadline_s``; ``lacks`` says
    what is not the case before.

    With ``program``, the output of one that was started, its end is the end of waiting too, and an error.
    """

    argv: tuple[str, ...]
    node: str = MACHINE
    program: str = ""
    lacks: str
    deadline_s: float


class Finish(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="finish"):
    """Wait until a program has ended by itself, at most ``deadline_s`` after it was started."""

    program: str
    deadline_s: float


class Stop(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="stop"):
    """Send SIGTERM to a program, and wait for its end, at most ``deadline_s``."""

    program: str
    deadline_s: float


class Mark(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="mark"):
    """Remember this instant as ``name``."""

    name: str


class Sleep(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="sleep"):
    """Sleep until ``after_s`` have passed since the instant ``mark``; since now without one."""

    after_s: float
    mark: str = ""


class Measure(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="measure"):
    """The measurement begins: from here on it is noted how busy the processor is, and, ``every_s``, how late
    it comes to whom it is due; without ``every_s``, where nothing can be late, the latter is not."""

    every_s: float | None = None


class Measured(Step, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="measured"):
    """The measurement ends."""


AnyStep = (
    Topology | Settings | ReadSettings | Offloads | Announce | Run | Read | Start | Wait | Finish | Stop
    | Mark | Sleep | Measure | Measured
)  # fmt: skip
Steps = tuple[AnyStep, ...]

LOAD, MEASUREMENT = "load", "measurement"
"""The instants that the facts of a trial are told by: when what disturbs was started, and when the
measurement began."""


def decode(plain: object) -> Steps:
    """Steps from what JSON has of them; raise msgspec.ValidationError for anything else."""
    return msgspec.convert(plain, Steps)
