"""A command that runs in the machine: `qjump-mn mn`, as plain data."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from qjump_mn.model import identity

NAME = "mn"
"""The name of a command's run, where an experiment's has the experiment's."""

DEADLINE_NS = 600_000_000_000
"""The usual deadline, on the machine's clock."""

MEMORY_MB = 1024
"""The machine's usual memory."""


class CommandTrial(NamedTuple):
    """One execution of a command."""

    seed: int

    @property
    def name(self) -> str:
        """Its folder below trials/, such as mn/1."""
        return f"{NAME}/{self.seed}"


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A command and all else that decides its results; times in ns on the machine's clock.

    ``argv`` starts with the program. ``folder_sha256`` is that of ``own/folder.tar``, what goes in;
    ``packages_sha256`` that of ``own/packages.lock``, the packages added to the machine, or "";
    ``typed_sha256`` that of ``own/typed``, what is typed in, or "". ``link``, ``switch`` and
    ``host`` are names of mininet-qos that stand for Mininet's own, or "". ``mininet_sha256`` is
    that of ``own/mininet.tar``, a Mininet that replaces the machine's, or "".
    """

    argv: tuple[str, ...]
    folder_sha256: str
    packages_sha256: str = ""
    typed_sha256: str = ""
    mininet_sha256: str = ""
    link: str = ""
    switch: str = ""
    host: str = ""
    seeds: tuple[int, ...] = (1,)
    deadline_ns: int = DEADLINE_NS
    memory_mb: int = MEMORY_MB

    def trials(self) -> tuple[CommandTrial, ...]:
        """Return the executions, one for each seed."""
        return tuple(CommandTrial(seed) for seed in self.seeds)

    @property
    def hash(self) -> str:
        """The SHA-256 of what decides each execution's result: all but the list of seeds."""
        return identity.sha256(msgspec.structs.replace(self, seeds=()))
