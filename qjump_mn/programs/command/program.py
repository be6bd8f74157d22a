"""command: run any command line on any hosts, and extract numbers from its output."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Trial
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration
from qjump_mn.programs.base import (
    LATENCIES,
    Flow,
    Program,
    Read,
    WorkloadPlan,
    WorkloadSpec,
    bounded,
    read_flows,
)
from qjump_mn.programs.command.numbers import Number
from qjump_mn.programs.launch import Launch, Phase
from qjump_mn.programs.text import transposed

Role = Literal["serve", "load", "measure"]

PHASE: dict[Role, Phase] = {"serve": "serve", "load": "load", "measure": "probe"}

PLACEHOLDERS = {
    "host": "the host on which it runs",
    "port": "the first of a hundred ports that are free for this workload",
    "seed": "the trial's seed",
    "duration_s": "the length of the measurement",
    "warmup_s": "the length of the warm-up",
    "load_s": "how long a load must go on, in whole seconds",
    "output": "a file that it may write instead of its standard output",
}
FLOW_PLACEHOLDERS = {
    "source": "the first host of its flow",
    "destination": "the second host of its flow",
    "address": "the second host's address",
}

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}|\{(\w+)\}")

_FOR_A_SHELL = re.compile(
    r"[0-9]*(\|\|?|&&?|;|>>?|<<?)(\S*)|\$\w+|\$\{\w+\}|\$\(.*|`.*|\*|~(/\S*)?", re.DOTALL
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)

UNITS_US = {"us": 1.0, "ms": 1e3}

PERCENTILES = {
    name: heading for name, heading in LATENCIES.items() if name not in ("sent", "received", "loss")
}
"""The measures of a latency. The loss is not among them: what a command lost is not known."""

COLUMNS = {
    "of": "string",
    "number": "string",
    "row": "int32",
    "value": "double",
    "latency_us": "double",
}
"""A row for each value of each number: its flow or host, the number's name, its position among the
values from 0, and the value. ``latency_us`` is null except for the number that is a latency."""


class Ready(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """What makes a serving command ready: a port such as "tcp:7000", a text in its output, or a
    file."""

    listens: str = ""
    says: str = ""
    exists: str = ""


class CommandPlan(
    WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="command"
):
    """``argv`` with its placeholders, run on each of ``hosts``, or once for each flow if there are
    no hosts.

    A command that serves runs at a flow's second host, any other at its first.
    """

    hosts: tuple[str, ...]
    argv: tuple[str, ...]
    role: Role
    ready: Ready | None
    good: tuple[int, ...]
    itself: bool
    most_ns: int
    numbers: dict[str, Number]
    latency: str

    @property
    def BACKGROUND(self) -> bool:
        """Depends on its role."""
        return self.role != "measure"

    @property
    def measures(self) -> Mapping[str, str]:
        statistics = {
            key: heading
            for name, number in self.numbers.items()
            for key, heading in number.headings(name).items()
        }
        return statistics | (PERCENTILES if self.latency else {})

    @property
    def copied(self) -> bool:
        """Assumed, as nobody knows."""
        return True

    @property
    def longest_ns(self) -> int:
        return self.most_ns if self.role == "measure" else 0

    def packets(self, trial: Trial) -> float:
        # An assumption: most loads are a bulk flow.
        network = trial.network
        fills = network.link.rate_bps / 8 / network.mtu_bytes
        return trial.length_ns / 1e9 * fills if self.role == "load" else 0.0

    def describe(self) -> str:
        hosts = f" on {', '.join(self.hosts)}" if self.hosts else ""
        return f"{shlex.join(self.argv)}{hosts}, to {self.role}"


class Command(WorkloadSpec, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="command"):
    """Run ``command`` on each of ``hosts`` or for each of ``flows``; it may contain this module's
    placeholders.

    ``role`` says when it starts: "serve" before everything else, "load" before the warm-up,
    "measure" with the measurement. A command that loads, or serves with ``ready``, runs until it is
    terminated; any other ends "itself". It may take ``longest`` if that exceeds the trial's
    duration. ``numbers`` are extracted from its output; ``latency`` names the one that is a
    latency.
    """

    command: str | list[str]
    role: Role
    hosts: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()
    ready: Ready | None = None
    good: tuple[int, ...] = (0,)
    ends: Literal["itself", "terminated"] | None = None
    longest: Duration = Duration(0)
    numbers: dict[str, Number] = msgspec.field(default_factory=dict)
    latency: str = ""

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        if bool(self.hosts) == bool(self.flows):
            raise UsageError(f"{where}: give either hosts or flows, to say where it runs")
        return read_flows(self.flows, where) if self.flows else []

    def check(self, where: str, network: Network) -> None:
        for host in self.hosts:
            if host not in network.hosts:
                raise UsageError(
                    f"{where}.hosts: topology {network.topology!r} has no host {host!r}"
                )
        if len(set(self.hosts)) < len(self.hosts):
            raise UsageError(f"{where}.hosts: a host is listed twice: list each once")
        bounded(f"{where}.longest", self.longest, 0, 3600 * 10**9, "at most 3600s")
        words = self._words(where)
        if not words:
            raise UsageError(f"{where}.command: the command is empty: give a command line")
        for word in words:
            self._check_placeholders(f"{where}.command", word)
        self._check_ready(f"{where}.ready")
        if self.role == "measure" and self.ends == "terminated":
            raise UsageError(
                f'{where}.ends: a command that measures ends the trial: use "itself", or '
                "leave ends out"
            )
        self._check_numbers(where)

    def remarks(self, where: str) -> list[str]:
        shell_words = for_a_shell(self.command)
        if not shell_words:
            return []
        return [
            f"{where}.command: no shell interprets {', '.join(shell_words)}: the program gets the "
            "text as it is; to use a shell, write sh -c '...'"
        ]

    def _words(self, where: str) -> list[str]:
        if not isinstance(self.command, str):
            return self.command
        try:
            return shlex.split(self.command)
        except ValueError as error:
            raise UsageError(
                f"{where}.command: {self.command!r} is not a command line: {error}"
            ) from None

    def _check_placeholders(self, where: str, text: str) -> None:
        placeholders = {**PLACEHOLDERS, **FLOW_PLACEHOLDERS}
        for _, name in _PLACEHOLDER.findall(text):
            if name in FLOW_PLACEHOLDERS and not self.flows:
                raise UsageError(
                    f"{where}: {{{name}}} needs a flow, but hosts are given: give flows instead"
                )
            if name and name not in placeholders:
                raise UsageError(
                    f"{where}: there is no placeholder {{{name}}}: use "
                    f"{', '.join(map('{{{}}}'.format, placeholders))}, "
                    f"or write {{{{{name}}}}} for the text {{{name}}}"
                )
            if name == "source" and self.role == "serve":
                raise UsageError(
                    f"{where}: {{source}} is not available to a command that serves: it serves all "
                    "flows of its host"
                )

    def _check_ready(self, where: str) -> None:
        if self.ready is None:
            return
        if self.role != "serve":
            raise UsageError(
                f'{where}: ready needs role = "serve": change the role, or leave ready out'
            )
        conditions = [
            text for text in (self.ready.listens, self.ready.says, self.ready.exists) if text
        ]
        if len(conditions) != 1:
            raise UsageError(f"{where}: give exactly one of listens, says and exists")
        self._check_placeholders(where, conditions[0])
        if self.ready.listens and not re.fullmatch(
            r"(tcp|udp):(\d{1,5}|\{port\})", self.ready.listens
        ):
            raise UsageError(
                f"{where}.listens: {self.ready.listens!r} is not a port: write, for example, "
                "'tcp:7000'"
            )

    def _check_numbers(self, where: str) -> None:
        measures = set(PERCENTILES if self.latency else ())
        for name, number in self.numbers.items():
            location = f"{where}.numbers.{name}"
            number.check(location)
            if duplicates := measures & set(number.headings(name)):
                raise UsageError(
                    f"{location}: there is another measure {min(duplicates)!r}: rename the number"
                )
            measures |= set(number.headings(name))
        if not self.latency:
            return
        if self.latency not in self.numbers:
            raise UsageError(
                f"{where}.latency: there is no number {self.latency!r}: use one of numbers"
            )
        if self.numbers[self.latency].unit not in UNITS_US:
            raise UsageError(
                f"{where}.numbers.{self.latency}.unit: a latency needs the unit us or ms"
            )

    def planned(
        self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int
    ) -> CommandPlan:
        runs_on = self.role == "load" or (self.role == "serve" and self.ready is not None)
        ends = self.ends or ("terminated" if runs_on else "itself")
        return CommandPlan(
            **common,
            hosts=self.hosts,
            argv=tuple(self._words(f"workloads.{common['name']}")),
            role=self.role,
            ready=self.ready,
            good=self.good,
            itself=ends == "itself",
            most_ns=max(duration_ns, int(self.longest)),
            numbers=self.numbers,
            latency=self.latency,
        )


def for_a_shell(command: str | list[str]) -> list[str]:
    """Words that only a shell would interpret; in a text, those without quotes."""
    try:
        words = shlex.split(command, posix=False) if isinstance(command, str) else command
    except ValueError:  # an apostrophe after a backslash
        return []
    first = [word for word in words[:1] if _ASSIGNMENT.fullmatch(word)]
    return list(dict.fromkeys([*first, *filter(_FOR_A_SHELL.fullmatch, words)]))


class Process(NamedTuple):
    """One process of a workload. ``of`` is its flow or host in file names; ``output`` is the file
    that contains its numbers."""

    of: str
    host: str
    values: dict[str, str]
    argv: tuple[str, ...]
    stdout: str
    output: str


def processes(plan: CommandPlan, trial: Trial) -> Iterator[Process]:
    """One process on each host, or for each flow; a command that serves runs once for each
    destination."""
    if plan.hosts:
        yield from (_process(plan, trial, host, host, {}) for host in plan.hosts)
        return
    addresses = trial.network.addresses
    if plan.role == "serve":
        for destination in dict.fromkeys(destination for _, destination in plan.flows):
            ends = {"destination": destination, "address": addresses[destination]}
            yield _process(plan, trial, destination, destination, ends)
        return
    for source, destination in plan.flows:
        ends = {"source": source, "destination": destination, "address": addresses[destination]}
        yield _process(plan, trial, f"{source}-{destination}", source, ends)


def _process(plan: CommandPlan, trial: Trial, of: str, host: str, ends: dict[str, str]) -> Process:
    values = ends | {
        "host": host,
        "port": str(plan.port),
        "seed": str(trial.seed),
        "duration_s": f"{trial.duration_ns / 1e9:g}",
        "warmup_s": f"{trial.warmup_ns / 1e9:g}",
        "load_s": f"{trial.background_ns / 1e9:g}",
        "output": f"{plan.name}-{of}.output",
    }
    stdout = f"{plan.name}-{of}.command.txt"
    writes_file = any(
        name == "output" for word in plan.argv for _, name in _PLACEHOLDER.findall(word)
    )
    argv = tuple(filled(word, values) for word in plan.argv)
    return Process(of, host, values, argv, stdout, values["output"] if writes_file else stdout)


def filled(text: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders in ``text`` by their values; {{name}} stands for the text {name}."""
    return _PLACEHOLDER.sub(lambda match: f"{{{match[1]}}}" if match[1] else values[match[2]], text)


def launches(plan: CommandPlan, trial: Trial) -> Iterator[Launch]:
    """The processes, each ready when its plan says so."""
    is_background = plan.role == "load" or plan.ready is not None
    longest_ns = trial.background_ns if is_background else plan.most_ns
    for process in processes(plan, trial):
        ready = plan.ready or Ready()
        protocol, _, port = filled(ready.listens, process.values).partition(":")
        yield Launch(
            PHASE[plan.role],
            process.host,
            process.argv,
            process.stdout,
            listens=("udp" if protocol == "udp" else "tcp", int(port)) if port else None,
            says=filled(ready.says, process.values) or None,
            exists=filled(ready.exists, process.values) or None,
            itself=plan.itself,
            longest_s=longest_ns / 1e9 if plan.itself else 0.0,
            good=plan.good,
            unknown=True,
        )


def columns(plan: CommandPlan, trial: Trial, read: Read) -> dict[str, Sequence[Any]]:
    """Every value of every number, in the order of the processes and of their output."""
    rows: list[tuple[str, str, int, float, float | None]] = []
    for process in processes(plan, trial) if plan.numbers else ():
        text = read(process.output)
        for name, number in plan.numbers.items():
            scale = UNITS_US[number.unit] if name == plan.latency else None
            rows += [
                (process.of, name, row, value, None if scale is None else value * scale)
                for row, value in enumerate(number.read(name, text))
            ]
    return transposed(rows, COLUMNS)


PROGRAM = Program(
    spec=Command,
    plan=CommandPlan,
    columns=COLUMNS,
    launches=launches,
    table=columns,
    measures="qjump_mn.programs.command.measures:MEASURES",
)
