"""Trees of Debian packages, for tests: where no mirror can be reached they cannot be made, and what needs
them is skipped with that reason.

What is built in them is another matter: a module that does not compile is a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from qjump_mn import toolbox
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import Tree

Made = TypeVar("Made")


def needed(make: Callable[[Callable[[str], None]], Made]) -> Made:
    """The tree, or the folder, that `make` makes or finds."""
    try:
        return make(print)
    except MachineError as error:
        pytest.skip(str(error))


def kernel_tree(suite: str | None) -> Tree:
    """The tree with another kernel that is locked, or with the guest's own."""
    return needed(
        lambda progress: toolbox.made(f"kernel-{suite}", progress) if suite else toolbox.toolbox(progress)
    )
