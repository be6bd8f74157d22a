"""One build of barrier for all its tests."""

from __future__ import annotations

import pytest

from qjump_mn.toolbox import Tree, build
from tests.guest import trees
from tests.native.barrier.barrier import Program


@pytest.fixture(scope="session")
def tree() -> Tree:
    return trees.toolbox()


@pytest.fixture(scope="session")
def program(tree: Tree) -> Program:
    return Program(
        tree.program(str(build.native_program(tree, "barrier", print) / "usr/bin/barrier"))
    )
