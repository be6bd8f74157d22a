"""The machine's half that runs on the host, for arm64: Debian's QEMU of the same version, and the simulator
compiled for it here. The guest's half, firmware, kernel and initramfs, is the same bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from qjump_mn import cache, toolbox
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import build, simulator
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox.build import Recipe
from qjump_mn.toolbox.tree import Tree

LOCK = "arm64"
"""The lock of Debian's packages for arm64."""

COMPILER = "arm64-compiler"
"""The lock of a tree of this machine's programs that compile for arm64."""

_SAME_SOURCES = ("qemu-system-x86", "qemu-system-data", "seabios")
"""What decides a result, and must be of the toolbox's versions: QEMU, and firmware for the guest."""

_MODULE = """
export PYO3_NO_PYTHON=1 PYO3_BUILD_EXTENSION_MODULE=1
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
cargo build --quiet --locked --profile wheel --package qjump-sim-python --target aarch64-unknown-linux-gnu
module=target/aarch64-unknown-linux-gnu/wheel/lib_native.so
aarch64-linux-gnu-strip $module
mkdir out
cp -r python/src/qjump_sim out/
mv $module out/qjump_sim/_native.abi3.so
"""


def tree(progress: Callable[[str], None] = lambda line: None) -> Tree:
    """Debian's packages for arm64, unpacked. Raises MachineError as the toolbox does, and as :func:`check`
    does."""
    check()
    return toolbox.made(LOCK, progress)


def check() -> None:
    """Raise MachineError where the lock has another version than the toolbox's of what decides results."""
    ours, theirs = (_versions(name) for name in (LOCK, toolbox.NAME))
    for name in _SAME_SOURCES:
        if ours.get(name) != theirs.get(name):
            raise MachineError(
                f"the lock {LOCK!r} has {name} {ours.get(name)}, {toolbox.NAME!r} has {theirs.get(name)}: "
                f"run `qjump-mn machine lock {toolbox.NAME} {LOCK}`"
            )


def packages() -> list[str]:
    """Debian's packages for arm64, as a machine file names them."""
    return [f"{one.package.name}:{LOCK}={one.package.version}" for one in locks.read(LOCK).have]


def simulator_package(progress: Callable[[str], None] = lambda line: None) -> Path:
    """The folder from which Python on arm64 imports `qjump_sim`, from the cache or built now. Raises
    MachineError as the toolbox does, and with the compiler's words."""
    return build.built(toolbox.made(COMPILER, progress), "the simulator for arm64", recipe(), progress)


def recipe() -> Recipe:
    """How the simulator is built, of the same sources."""
    same = simulator.recipe()
    return Recipe(same.source, _MODULE, same.patterns, takes=same.takes)


def made_of() -> dict[str, str]:
    """The hashes of what this half is made of, beside the machine's own sources."""
    found = {f"the lock {name}": cache.hash_of(locks.read(name).identity) for name in (LOCK, COMPILER)}
    return {**found, "the simulator for arm64": cache.hash_of(_MODULE)}


def _versions(lock: str) -> dict[str, str]:
    """The version of each package's source, for one that is only compiled again (+b1) is of the same."""
    return {
        name: re.sub(r"\+b\d+$", "", version) for name, version in locks.versions(locks.read(lock)).items()
    }
