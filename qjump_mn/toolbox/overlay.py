"""What an image of the guest holds beside Debian's packages: /init and the agent, kernel modules with tc's
plugins, and, unless it is bare, the executor and our native programs.

A bare image is for tests of the kernel. It holds nothing else of ours, so that a change of anything else does
not run them again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import qjump_mn
from qjump_mn.toolbox import build
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.image import python_package
from qjump_mn.toolbox.tree import Tree

MODULE_FOLDERS = ("kmod-patches", "kmod-clock")
"""The folders of the checkout with kernel modules: every image has them all."""

_HOME = "opt/qjump-mn"


def nodes(
    tree: Tree, kernel: Tree, *, bare: bool, progress: Callable[[str], None] = lambda line: None
) -> dict[str, Node]:
    """By their names relative to /; `kernel` is the tree that the image's kernel comes from. Raises
    MachineError with the compiler's words."""
    made = build.tc_plugins(tree, progress)
    for folder in MODULE_FOLDERS:
        made |= build.kernel_modules(kernel, folder, progress)
    if not bare:
        made |= build.native_programs(tree, progress)
        made |= python_package(tree, _package() / "executor", _HOME)
    return made | first_programs()


def first_programs() -> dict[str, Node]:
    """/init, and the agent, which it starts: all that a script needs."""
    return {
        "init": Node.file(_package() / "guest/init.sh", 0o755),
        f"{_HOME}/executor/agent.py": Node.file(_package() / "executor/agent.py"),
    }


def _package() -> Path:
    return Path(qjump_mn.__file__).parent
