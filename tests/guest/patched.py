"""Trees with kmod-patches/series in them, for the tests of what it writes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qjump_mn.toolbox import Tree
from tests.guest import series_sources, trees

SOURCES = Path(__file__).resolve().parents[2] / "kmod-patches"
AUTHOR = "A U Thor <author@example.org>"


@pytest.fixture(scope="session")
def tools() -> Tree:
    return trees.needed(series_sources.tools)


@pytest.fixture(scope="session")
def source(tools: Tree) -> Path:
    return trees.needed(series_sources.kernel)


@pytest.fixture(scope="session")
def tc_source() -> Path:
    return trees.needed(series_sources.iproute2)


def written(tree: Path, folder: Path) -> list[Path]:
    argv = [sys.executable, str(SOURCES / "series"), str(tree), str(folder), "--author", AUTHOR]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return [Path(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="session")
def patches(source: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The letter and the patches for the kernel."""
    return written(source, tmp_path_factory.mktemp("kernel") / "out")


@pytest.fixture(scope="session")
def tc_patches(tc_source: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return written(tc_source, tmp_path_factory.mktemp("iproute2") / "out")


def applied(patches: list[Path], tree: Path) -> None:
    """Apply them as a maintainer does, but for the commits."""
    for path in patches[1:]:
        argv = ["git", "apply", "--whitespace=error", str(path)]
        done = subprocess.run(argv, cwd=tree, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), path.name


@pytest.fixture(scope="session")
def tc(
    tools: Tree, tc_source: Path, tc_patches: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of tc built with the series in it, and `said`, the compiler's words."""
    folder = tmp_path_factory.mktemp("tc")
    shutil.copytree(tc_source, folder / "source", symlinks=True)
    applied(tc_patches, folder / "source")
    script = """cd source
CC=gcc-14 ./configure >/dev/null
make CC=gcc-14 HOSTCC=gcc-14 CCOPTS='-O2 -Wall' SUBDIRS='lib tc' 2>&1
strip tc/tc
"""
    (folder / "said").write_text(tools.run(["sh", "-e", "-c", script], folder))
    return folder
