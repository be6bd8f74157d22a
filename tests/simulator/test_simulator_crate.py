"""The simulator's own tests, and its Python package as a user of this project gets it: both built
in the toolbox."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from qjump_mn.toolbox import Tree, build, simulator
from qjump_mn.toolbox.build import Recipe
from tests.guest import trees
from tests.support import facts
from tests.support.processes import execute

pytestmark = pytest.mark.guest

SOURCE = build.folder("simulator")
# With checks for overflow, and in a third of the time: what is released is linked as a whole for
# each of seven test programs. That it yields the same is for the Python package's tests, which find
# the outcomes pinned here in the released code.
_OWN_TESTS = "cargo test --quiet --locked\nmkdir out"


@pytest.fixture(scope="module")
def tree() -> Tree:
    return trees.toolbox()


def test_the_crates_own_tests_pass(tree: Tree, tmp_path: Path) -> None:
    recipe = Recipe(SOURCE, _OWN_TESTS)
    facts.established(
        "crate",
        facts.key_of(tree, recipe),
        lambda: build.compiled(tree, recipe, tmp_path / "tested"),
    )


def test_the_python_package_passes_its_tests(tree: Tree) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(simulator.package(print)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_ADDOPTS": "",
    }
    argv = [
        sys.executable,
        *"-m pytest -q -p no:cacheprovider".split(),
        str(SOURCE / "python" / "tests"),
    ]
    done = execute(argv, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout and "skipped" not in done.stdout


def test_the_module_is_loaded_by_debian_12(tree: Tree) -> None:
    # The oldest distribution that the project runs on has a C library of 2.36; the toolbox, which
    # compiles, has 2.41.
    module = simulator.package(print) / "qjump_sim" / "_native.abi3.so"
    symbols = execute(tree.program("usr/bin/objdump", "-T", str(module)), check=True).stdout
    versions = {
        tuple(map(int, word.strip("()").removeprefix("GLIBC_").split(".")))
        for word in symbols.split()
        if "GLIBC_" in word
    }
    assert (2, 2, 5) in versions
    assert max(versions) <= (2, 36)
