"""What the guest's image holds beside Debian's packages: /init and the agent, tc's plugins for our queueing
disciplines, the executor and our native programs."""

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
    """By their names relative to /. Raises MachineError with the compiler's words."""
    made = build.tc_plugins(tree, progress) | build.native_programs(tree, progress)
    made |= python_package(tree, _package() / "executor", _HOME)
    return made | {
        "init": Node.file(_package() / "guest/init.sh", 0o755),
        "usr/sbin/modprobe": Node.file(_MODPROBE, 0o755),
    }


def identities() -> dict[str, str]:
    """What stands for each part of this in the machine's identity, by name: what runs, not its prose."""
    found = {name: build.identity_of(recipe) for name, recipe in build.guest_programs().items()}
    scripts = [_package() / "guest/init.sh", *sorted((_package() / "executor").glob("*.py"))]
    found |= {str(path.relative_to(_package())): cache.hash_of_code(path) for path in scripts}
    return found | {"modprobe": cache.hash_of(_MODPROBE)}


def _package() -> Path:
    return Path(qjump_mn.__file__).parent
