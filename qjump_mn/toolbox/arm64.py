"""Build what only the machine file for arm64 hosts has: their simulator and the outer machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qjump_mn import cache, toolbox
from qjump_mn.toolbox import build, outer_machine, simulator
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox.build import Recipe

COMPILER = "arm64-compiler"
"""The lock of a tree of this machine's programs that compile for arm64."""

_MODULE = """
export PYO3_NO_PYTHON=1 PYO3_BUILD_EXTENSION_MODULE=1
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_BUILD_TARGET=aarch64-unknown-linux-gnu
cargo build --quiet --locked --profile wheel --package qjump-sim-python
module=target/aarch64-unknown-linux-gnu/wheel/lib_native.so
aarch64-linux-gnu-strip $module
mkdir out
cp -r python/src/qjump_sim out/
mv $module out/qjump_sim/_native.abi3.so
"""


def simulator_package(progress: Callable[[str], None] = lambda line: None) -> Path:
    """Return the folder from which Python on arm64 imports `qjump_sim`, built now if there is none.

    Raises MachineError as the toolbox does, or with the compiler's output.
    """
    return build.built(
        toolbox.made(COMPILER, progress), "the simulator for arm64", recipe(), progress
    )


def recipe() -> Recipe:
    """Return how the simulator is cross-compiled, from the same sources."""
    same = simulator.recipe()
    return Recipe(same.source, _MODULE, same.patterns, takes=same.takes)


def made_of() -> dict[str, str]:
    """Return a hash of each input that x86-64's machine does not have, by name."""
    compiler = cache.hash_of(locks.read(COMPILER).identity)
    own = {f"the lock {COMPILER}": compiler, "the simulator for arm64": cache.hash_of(_MODULE)}
    return own | outer_machine.made_of()
