"""The package as pip installs it: all that the checkout's machine is made of, and no checkout."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from qjump_mn import toolbox
from qjump_mn.errors import MachineError
from qjump_mn.install import environment
from qjump_mn.toolbox import checkout, machines, make_tree
from tests.support.processes import execute

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet")
LEFT_BY_BUILDS = ("simulator/target/debug/left.rs", "native/app-util/left.o")
DESCRIBE = """
import json
from qjump_mn.install import environment
environment.ensure()
import qjump_mn
from qjump_mn.report.figures import published, style
from qjump_mn.toolbox import machines
style.sheet()
published.read("fig3a")
print(json.dumps([qjump_mn.__file__, machines.made_of()]))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where pip installed a wheel, of a checkout in which somebody built by hand."""
    folder = tmp_path_factory.mktemp("wheel")
    checkout.copy(folder / "checkout")
    for name in LEFT_BY_BUILDS:
        path = folder / "checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("left\n")
    options = ["--no-deps", "--no-build-isolation", "--target", str(folder / "site")]
    execute([*PIP, "install", *options, str(folder / "checkout")], check=True)
    return folder / "site"


def python(site: Path, *words: str) -> str:
    """What Python prints with the package, and nothing of the checkout."""
    variables = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(site)}
    return execute([sys.executable, "-P", *words], cwd="/", env=variables, check=True).stdout


def test_an_installed_package_makes_the_same_machine(site: Path) -> None:
    path, made_of = json.loads(python(site, "-c", DESCRIBE))
    assert Path(path).is_relative_to(site)
    assert made_of == machines.made_of()


def test_an_installed_package_plans_an_experiment(site: Path) -> None:
    text = python(site, "-m", "qjump_mn.run", "run", "fig3a", "--dry-run")
    assert "qdisc add dev" in text


def test_a_wheel_has_nothing_that_builds_left(site: Path) -> None:
    names = {path.name for path in (site / "qjump_mn").rglob("*")}
    assert {"libqjau.c", "sch_qjump.c"} <= names
    assert not [name for name in names if name.startswith("left")]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A package without a checkout, an empty cache, and the current folder."""
    monkeypatch.setattr(environment, "LOCK", tmp_path / "requirements.lock")
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_installed_package_takes_machine_from_current_folder(installed: Path) -> None:
    assert not machines.is_at_hand()
    (installed / "qjump-mn-machine.tar.xz").touch()
    assert list(machines._beside()) == ["qjump-mn-machine.tar.xz"]
    assert machines.is_at_hand()


def test_a_removed_current_folder_has_no_machine(installed: Path) -> None:
    installed.rmdir()
    assert list(machines._beside()) == []


def test_an_installed_package_says_how_to_get_the_machine(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_tree, "refusal", lambda: "")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(MachineError) as error:
        toolbox.made(toolbox.NAME)
    sentence = str(error.value)
    assert "put the release's file qjump-mn-machine.tar.xz into this folder" in sentence
    assert f"{sys.executable} -m qjump_mn.run machine build" in sentence
    assert "bootstrap" not in sentence
