"""The processors of hosts. The guest needs an x86-64, which elsewhere QEMU is; the simulator is
built for each of these."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from qjump_mn.errors import UsageError


@dataclass(frozen=True)
class Processor:
    """A host's processor: as the kernel calls it (`uname -m`) and as Debian does; in a tree of
    programs for it, what starts every program, and the folder of what they load."""

    name: str
    debian: str
    loader: str
    libraries: str


X86_64 = Processor("x86_64", "amd64", "usr/lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu")
AARCH64 = Processor("aarch64", "arm64", "usr/lib/ld-linux-aarch64.so.1", "usr/lib/aarch64-linux-gnu")
ALL = (X86_64, AARCH64)


def here() -> str:
    """The name of this host's processor, which may be none of ours."""
    return platform.machine()


def named(word: str) -> Processor:
    """The processor with that name, the kernel's or Debian's. Raises UsageError if it is none of
    ours."""
    for one in ALL:
        if word in (one.name, one.debian):
            return one
    raise UsageError(f"there is no machine for {word!r} hosts: there are {X86_64.name} and {AARCH64.debian}")


def of_tree(root: Path) -> Processor:
    """For which processor the programs of a tree are: that of its loader, x86-64 if it has none."""
    return next((one for one in ALL if (root / one.loader).exists()), X86_64)
