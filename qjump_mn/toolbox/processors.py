"""Name the processors of hosts: the guest needs x86-64 or QEMU, the simulator is compiled for
each."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from qjump_mn.errors import UsageError


@dataclass(frozen=True)
class Processor:
    """A host's processor: its name for the kernel (`uname -m`) and for Debian; and, in trees for
    it, the loader and the folder of libraries."""

    name: str
    debian: str
    loader: str
    libraries: str


X86_64 = Processor("x86_64", "amd64", "usr/lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu")
AARCH64 = Processor(
    "aarch64", "arm64", "usr/lib/ld-linux-aarch64.so.1", "usr/lib/aarch64-linux-gnu"
)
ALL = (X86_64, AARCH64)


def here() -> str:
    """Return the name of this host's processor, which may be an unsupported one."""
    return platform.machine()


def named(word: str) -> Processor:
    """Return the processor with the kernel's or Debian's name. Raises UsageError for an unsupported
    one."""
    for one in ALL:
        if word in (one.name, one.debian):
            return one
    raise UsageError(
        f"there is no machine for {word!r} hosts: there are {X86_64.name} and {AARCH64.debian}"
    )


def of_tree(root: Path) -> Processor:
    """Return the processor of a tree's programs, by its loader; x86-64 if there is none."""
    return next((one for one in ALL if (root / one.loader).exists()), X86_64)
