"""Compile the simulator to WebAssembly, from the same sources and the same locked crates.

simulator/web/module.rs is all that the module has besides the simulator. It is not a crate, because
a crate would need a lock of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from qjump_mn import toolbox
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import Tree, build
from qjump_mn.toolbox.build import Recipe, folder

COMPILER = "wasm-compiler"
"""The lock of a tree with the compiler of the toolbox, and WebAssembly's standard library."""

_TARGET = "wasm32-unknown-unknown"
_MODULE = f"""
cargo build --quiet --locked --release --lib --target {_TARGET}
built=target/{_TARGET}/release
mkdir out
rustc --edition 2021 -D warnings -C opt-level=3 -C codegen-units=1 -C strip=symbols \\
  --target {_TARGET} -C linker=wasm-ld --crate-type cdylib \\
  -L dependency=$built/deps -L dependency=target/release/deps \\
  --extern qjump_sim=$built/libqjump_sim.rlib \\
  --extern serde=$(ls $built/deps/libserde-*.rlib) \\
  --extern serde_json=$(ls $built/deps/libserde_json-*.rlib) \\
  -o out/simulator.wasm web/module.rs
"""
_SOURCES = ("Cargo.toml", "Cargo.lock", "src/**/*.rs", "web/*.rs")


def module(progress: Callable[[str], None] = lambda line: None) -> Path:
    """Return the module's file, built now if there is none.

    Raises MachineError as the toolbox does, or with the compiler's output.
    """
    recipe = Recipe(folder("simulator"), _MODULE, _SOURCES, takes="about a minute")
    built = build.built(_compiler(progress), "the simulator for WebAssembly", recipe, progress)
    return built / "simulator.wasm"


def _compiler(progress: Callable[[str], None]) -> Tree:
    try:
        return toolbox.made(COMPILER, progress)
    except MachineError as error:
        if os.geteuid():
            raise MachineError(
                "the compiler for WebAssembly is not in the cache: run this command once as root"
            ) from error
        raise
