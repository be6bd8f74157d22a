"""A command that runs in the machine: `qjump-mn mn`, as plain data."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model import identity, words
from qjump_mn.model.plan import MAX_TRIALS

NAME = "mn"
"""The name of a command's run, where an experiment's has the experiment's."""

DEADLINE_NS = 600_000_000_000
"""The usual deadline, on the machine's clock."""

MEMORY_MB = 1024
"""The machine's usual memory."""

MAX_SEED = 2**31 - 1
MAX_WORDS = 10_000
"""The most words of a command."""
MAX_DEADLINE_NS = 86_400_000_000_000
MAX_MEMORY_MB = 1 << 16

_SHA256 = re.compile(r"[0-9a-f]{64}")


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
    ``typed_sha256`` that of ``own/typed``, what is typed in, or ""; ``mininet_sha256`` that of
    ``own/mininet.tar``, a Mininet that replaces the machine's, or "". ``link`` is mininet-qos's
    name of the links that stand for Mininet's TCLink, or "".
    """

    argv: tuple[str, ...]
    folder_sha256: str
    packages_sha256: str = ""
    typed_sha256: str = ""
    mininet_sha256: str = ""
    link: str = ""
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

    def check(self, where: str) -> None:
        """Raise :class:`UsageError` that begins with ``where`` for what no run of a command has.

        The command may be a stranger's.
        """
        if not 0 < len(self.argv) <= MAX_WORDS:
            raise UsageError(f"{where}: a command has 1 to {MAX_WORDS} words, not {len(self.argv)}")
        words.check(words.COMMAND, where, *self.argv)
        words.check(words.WORD, where, *filter(None, [self.link]))
        self._check_seeds(where)
        for name in (name for name in self.__struct_fields__ if name.endswith("_sha256")):
            value = getattr(self, name)
            if not _SHA256.fullmatch(value) and (value or name == "folder_sha256"):
                raise UsageError(f"{where}: {name} is no SHA-256 in hexadecimal")
        for name, most in (("deadline_ns", MAX_DEADLINE_NS), ("memory_mb", MAX_MEMORY_MB)):
            if not 0 < (value := getattr(self, name)) <= most:
                raise UsageError(f"{where}: {name} is {value}: use 1 to {most}")

    def _check_seeds(self, where: str) -> None:
        """Raise :class:`UsageError` for seeds that are too many, equal or out of range."""
        if not 0 < len(self.seeds) <= MAX_TRIALS:
            raise UsageError(f"{where}: {len(self.seeds)} seeds: use 1 to {MAX_TRIALS}")
        if len({*self.seeds}) < len(self.seeds):
            raise UsageError(f"{where}: a seed is there twice: name each once")
        for seed in self.seeds:
            if not 0 <= seed <= MAX_SEED:
                raise UsageError(f"{where}: seed {seed} is out of range: use 0 to {MAX_SEED}")
