"""Compile the simulator for this machine's Python in the toolbox, so that nobody needs Rust.

The module needs no C library symbol newer than 2.34, and Python's stable interface of 3.11, so
Debian 12 loads what Debian 13 compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from qjump_mn.toolbox import build, toolbox
from qjump_mn.toolbox.build import Recipe, folder

IDENTITY = "qjump_sim/identity"
"""The file of a release's wheel that has the identity of its sources."""

# Without a Python in the toolbox; PyO3 then leaves Python's symbols to the interpreter that loads
# the module.
_MODULE = """
export PYO3_NO_PYTHON=1 PYO3_BUILD_EXTENSION_MODULE=1
cargo build --quiet --locked --profile wheel --package qjump-sim-python
strip target/wheel/lib_native.so
mkdir out
cp -r python/src/qjump_sim out/
mv target/wheel/lib_native.so out/qjump_sim/_native.abi3.so
"""
_SOURCES = (
    "Cargo.toml",
    "Cargo.lock",
    "src/**/*.rs",
    "qjump_sim/*.py",
    "qjump_sim/*.pyi",
    "qjump_sim/py.typed",
)


def package(progress: Callable[[str], None] = lambda line: None) -> Path:
    """Return the folder from which Python imports `qjump_sim`, built now if there is none.

    Raises MachineError as the toolbox does, or with the compiler's output.
    """
    return build.built(toolbox(progress), "the simulator", recipe(), progress)


def installed() -> Path | None:
    """Return the folder from which this Python imports the wheel of a release; None if there is
    none, or if it was built from other sources."""
    try:
        folder = Path(str(distribution("qjump-sim").locate_file("")))
        identity = (folder / IDENTITY).read_text(encoding="utf-8")
    except (PackageNotFoundError, OSError):
        return None
    return folder if identity == build.identity_of(recipe()) else None


def recipe() -> Recipe:
    """Return how it is built."""
    return Recipe(folder("simulator"), _MODULE, _SOURCES, takes="about 2 minutes")
