"""Collect our own files for the guest: /init, the executor with its agent, tc's plugins, native
programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import qjump_mn
from qjump_mn import cache
from qjump_mn.toolbox import build
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.image import python_package
from qjump_mn.toolbox.tree import Tree

_HOME = "opt/qjump-mn"

# All that modules would hold is in the guest's kernel.
_MODPROBE = b"#!/bin/sh\nexit 0\n"


def nodes(tree: Tree, progress: Callable[[str], None] = lambda line: None) -> dict[str, Node]:
    """Return them by names relative to /. Raises MachineError with the compiler's output."""
    made = build.tc_plugins(tree, progress) | build.native_programs(tree, progress)
    made |= python_package(tree, _package() / "executor", _HOME)
    return made | {
        "init": Node.file(_package() / "guest/init.sh", 0o755),
        "usr/sbin/modprobe": Node.file(_MODPROBE, 0o755),
    }


def identities() -> dict[str, str]:
    """Return the hash of each part for the machine's identity, by name, without the sources'
    prose."""
    found = {name: build.identity_of(recipe) for name, recipe in build.guest_programs().items()}
    scripts = [_package() / "guest/init.sh", *sorted((_package() / "executor").glob("*.py"))]
    found |= {str(path.relative_to(_package())): cache.hash_of_code(path) for path in scripts}
    return found | {"modprobe": cache.hash_of(_MODPROBE)}


def _package() -> Path:
    return Path(qjump_mn.__file__).parent
