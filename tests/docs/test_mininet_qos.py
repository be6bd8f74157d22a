"""mininet-qos, the package for Mininet's users: its wheel on every Python there is, its commands
beside the harness's own, its file for mn."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bench import mininet_qos as bench
from qjump_mn.links import commands
from tests.guest import trees
from tests.support import checkouts
from tests.support.processes import execute

SOURCES = sorted((bench.PACKAGE / "src").rglob("*.py"))
TESTS = bench.PACKAGE / "tests"
OLDEST, NEWEST = 9, 14
MININET = "usr/lib/python3/dist-packages"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bench.wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def debians_mininet() -> str:
    """A folder of Python's that has Debian's Mininet."""
    return str(trees.toolbox().root / MININET)


@pytest.mark.slow
@pytest.mark.parametrize("minor", range(OLDEST, NEWEST + 1))
def test_every_python_installs_the_wheel_and_passes_its_tests(
    minor: int, wheel: Path, tmp_path: Path, debians_mininet: str
) -> None:
    subprocess.run(
        [checkouts.installed_python(minor), "-m", "venv", tmp_path / "env"],
        check=True,
        capture_output=True,
    )
    inside = [str(tmp_path / "env/bin/python"), "-I"]
    pip = [
        *inside,
        *"-m pip --disable-pip-version-check --quiet install --no-index".split(),
        str(wheel),
    ]
    subprocess.run(pip, check=True, capture_output=True)
    tests = [*inside, "-W", "error", "-m", "unittest", "discover", "-s", str(TESTS)]
    done = execute(tests, cwd=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "OK"), done.stderr
    code = (
        f"import sys; sys.path.append({debians_mininet!r}); import mininet_qos\n"
        "print(*(getattr(mininet_qos, name).__name__ for name in mininet_qos.__all__))"
    )
    done = execute([*inside, "-c", code])
    assert done.stdout.split() == importlib.import_module("mininet_qos").__all__, done.stderr


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_sources_are_of_the_oldest_python(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, OLDEST))


def test_the_wheel_has_the_package_its_licence_and_its_versions(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.endswith((".py", ".typed"))}
        assert names == {str(path.relative_to(bench.PACKAGE / "src")) for path in SOURCES} | {
            "mininet_qos/py.typed"
        }
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        (licence,) = (name for name in archive.namelist() if name.endswith("/licenses/LICENSE"))
        described = archive.read(metadata).decode()
        assert archive.read(licence) == (bench.ROOT / "LICENSE").read_bytes()
    assert f"Requires-Python: >=3.{OLDEST}\n" in described
    assert "Requires-Dist" not in described


def test_the_harness_has_no_other_commands() -> None:
    """One file tells how a pair, a VLAN, a link and a switch's queues are made."""
    assert (
        Path(str(commands.__file__)).resolve()
        == (bench.PACKAGE / "src/mininet_qos/commands.py").resolve()
    )
    words = (
        *"numtxqueues egress-qos-map type=linux-htb vlan_prio".split(),
        "action mirred",
        "tso off",
    )
    for source in sorted((bench.ROOT / "qjump_mn").rglob("*.py")):
        if source != bench.ROOT / "qjump_mn/links/commands.py":
            assert [word for word in words if word in source.read_text()] == [], source


def test_mn_gets_hosts_links_and_switches_and_nothing_that_is_its_own(debians_mininet: str) -> None:
    code = (
        f"import sys; sys.path.append({debians_mininet!r})\n"
        "from mininet.link import Link\nLINKS = {'default': Link}\nnames = {}\n"
        "path = sys.argv[1]\nexec(compile(open(path).read(), path, 'exec'), names, names)\n"
        "print(*sorted(name for name in names if not name.startswith('__')))\n"
        "print(*names['hosts'], *names['switches'], *names['LINKS'])"
    )
    path = execute(
        [sys.executable, "-m", "mininet_qos"],
        env={**os.environ, "PYTHONPATH": str(bench.PACKAGE / "src")},
        check=True,
    ).stdout.strip()
    done = execute(
        [sys.executable, "-c", code, path],
        env={**os.environ, "PYTHONPATH": str(bench.PACKAGE / "src")},
    )
    assert done.stdout.splitlines() == [
        "LINKS hosts links mininet mininet_qos switches",
        "qjvlan qjprio default qjwire qjtbf qjtc",
    ], done.stderr
