"""Trees of Debian packages, for tests: where no mirror can be reached they cannot be made, and what
needs them is skipped with that reason.

What is built in them is another matter: a module that does not compile is a failure.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from qjump_mn import toolbox as product
from qjump_mn.errors import MachineError
from qjump_mn.guest import outer
from qjump_mn.toolbox import Tree
from tests.guest.vm import machine

Made = TypeVar("Made")


def needed(make: Callable[[Callable[[str], None]], Made]) -> Made:
    """The tree, or the folder, that `make` makes or finds."""
    try:
        return make(print)
    except MachineError as error:
        pytest.skip(str(error))


def toolbox() -> Tree:
    """The toolbox, which has the compilers and the programs of the guest."""
    return needed(product.toolbox)


def kernel_tree(name: str) -> Tree:
    """The tree with one of Debian's kernels, such as 6.12, and what modules for it are built
    with."""
    return needed(lambda progress: product.made(f"kernel-{name}", progress))


def qemu() -> Tree:
    """The tree with QEMU for x86-64."""
    return needed(lambda progress: product.made(machine.QEMU, progress))


def qemu_program(folder: Path, options: str = "") -> Path:
    """A program in a folder that is made here, with the name by which guest/outer.py looks for
    QEMU: it starts that of the lock, and has these options of the shell's behind all others."""
    tree = qemu()
    shared = tree.root / "usr/share"
    argv = tree.program(
        "usr/bin/qemu-system-x86_64", "-L", f"{shared}/qemu", "-L", f"{shared}/seabios"
    )
    program = folder / outer.QEMU
    folder.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(argv)} "$@" {options}\n')
    program.chmod(0o755)
    return program
