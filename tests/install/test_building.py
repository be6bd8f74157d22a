"""The first build: image and simulator in parallel, and when it runs as root."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from qjump_mn import guest, toolbox
from qjump_mn.backends import building
from qjump_mn.cli import machine
from qjump_mn.errors import MachineError
from qjump_mn.install import environment
from qjump_mn.toolbox import machines, make_tree


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> threading.Barrier:
    """A machine on which nothing is built, and on which image and simulator wait for each other."""
    both = threading.Barrier(2, timeout=20)
    monkeypatch.setattr(machines, "reference", lambda progress: None)
    monkeypatch.setattr(toolbox, "toolbox", lambda progress: progress("the toolbox"))
    monkeypatch.setattr(guest, "prepare", lambda progress: (both.wait(), "the image")[1])
    monkeypatch.setattr(machines, "simulator_package", lambda progress: (both.wait(), Path("x"))[1])
    return both


def test_image_and_simulator_are_built_in_parallel(built: threading.Barrier) -> None:
    lines: list[str] = []
    assert building.build(lines.append) == "the image"  # type: ignore[comparison-overlap]
    assert lines == ["the toolbox"] and not built.broken


def test_failed_compilation_of_simulator_is_an_error(
    built: threading.Barrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(progress: object) -> Path:
        built.wait()
        raise MachineError("in the toolbox, `cargo` failed")

    monkeypatch.setattr(machines, "simulator_package", fails)
    with pytest.raises(MachineError, match="`cargo` failed"):
        building.build(print)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ordinary user's checkout whose bootstrap writes down how it was called; the file."""
    calls = tmp_path / "calls"
    script = tmp_path / "bootstrap"
    script.write_text(f"#!/bin/sh\necho \"$*\" >>'{calls}'\n[ ! -e '{tmp_path}/refused' ]\n")
    script.chmod(0o755)
    monkeypatch.setattr(environment, "CHECKOUT", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(make_tree, "refusal", lambda: "")
    return calls


def test_root_builds_the_toolbox_by_sudo(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trees = iter([None, "root's tree"])
    monkeypatch.setattr(toolbox, "found", lambda: next(trees))
    monkeypatch.setenv(make_tree.SUDO, "1")
    assert toolbox.toolbox() == "root's tree"  # type: ignore[comparison-overlap]
    assert user.read_text() == "--by-sudo machine build\n"
    (user.parent / "refused").touch()
    with pytest.raises(MachineError, match="root could not build the virtual machine"):
        make_tree.by_sudo("--newest")
    assert user.read_text().endswith("--by-sudo machine build --newest\n")


def test_machine_build_by_ordinary_user_runs_as_root(
    user: Path, built: threading.Barrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QJUMP_MN_CACHE", str(user.parent / "cache"))
    monkeypatch.setenv(make_tree.SUDO, "1")
    monkeypatch.setattr(toolbox, "toolbox", lambda progress: make_tree.by_sudo())
    monkeypatch.setattr(
        guest, "prepare", lambda progress: (built.wait(), SimpleNamespace(differences=[]))[1]
    )
    machine.build()
    assert user.read_text() == "--by-sudo machine build\n"
    machine.build(newest=True)
    assert user.read_text().splitlines()[1:] == [
        f"--by-sudo machine build{words}" for words in (" --newest", "")
    ]


def test_sudo_is_not_called_without_bootstrap(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(make_tree.SUDO, raising=False)
    assert not make_tree.by_sudo() and not user.exists()
    with pytest.raises(
        MachineError, match=r"must be built once by root: run  .*/bootstrap  as root or as a"
    ):
        make_tree._check()
