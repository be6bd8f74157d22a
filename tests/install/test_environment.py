"""The Python environment: found whichever Python is called, made whole or not at all, and linked to
a command."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from qjump_mn.cache import sums
from qjump_mn.errors import MachineError
from qjump_mn.install import environment
from tests.support import checkouts
from tests.support.processes import execute

Call = Callable[..., subprocess.CompletedProcess[str]]
UNKNOWN_USER = 12345


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has nothing installed."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / "bin" / "python")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return checkouts.copy(tmp_path / "a check-out")


def call(
    python: str, checkout: Path, cache: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    kept = {"PATH": "/usr/bin:/bin", "HOME": str(cache), "QJUMP_MN_CACHE": str(cache)}
    argv = [python, "-m", "qjump_mn.run", *arguments]
    return execute(argv, cwd=checkout, env={**kept, **variables}, timeout=60)


def test_bare_python_enters_the_environment(bare: str, checkout: Path, tmp_path: Path) -> None:
    done = call(
        bare, checkout, checkouts.warm_cache(tmp_path / "cache"), "fig3a", "--out", "two words"
    )
    assert done.returncode == 0, done.stderr
    told = checkouts.said(done.stdout)
    assert told["argv"] == ["fig3a", "--out", "two words"]
    assert Path(str(told["prefix"])).samefile(sys.prefix)
    assert told["path"][0] == str(checkout)
    assert "" not in told["path"]


@pytest.mark.parametrize(
    "variables", [{}, {"PYTHONOPTIMIZE": "2"}, {"PYTHONINSPECT": "1"}], ids=str
)
@pytest.mark.parametrize("is_bare", [True, False])
def test_the_analysis_goes_on_in_the_environment_too(
    bare: str, tmp_path: Path, is_bare: bool, variables: dict[str, str]
) -> None:
    cache = checkouts.warm_cache(tmp_path / "cache")
    kept = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(cache),
        "QJUMP_MN_CACHE": str(cache),
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    argv = [bare if is_bare else sys.executable, "-m", "qjump_mn.analysis", str(tmp_path)]
    done = execute(argv, cwd=environment.CHECKOUT, env=kept)
    assert (done.returncode, done.stderr.partition(" is no run")[0]) == (2, f"qjump-mn: {tmp_path}")
    assert done.stderr.count("\n") == 1


def test_callers_pythonpath_stays_outside(bare: str, checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit('the wrong one')")
    done = call(bare, checkout, checkouts.warm_cache(tmp_path / "cache"), PYTHONPATH=str(tmp_path))
    assert str(tmp_path) not in checkouts.said(done.stdout)["path"]


def test_finding_it_imports_standard_library_only(checkout: Path, tmp_path: Path) -> None:
    done = call(sys.executable, checkout, checkouts.warm_cache(tmp_path / "cache"))
    loaded = {name.partition(".")[0] for name in checkouts.said(done.stdout)["modules"]}
    assert loaded.isdisjoint(environment.PACKAGES)


def test_bare_python_says_what_to_run(bare: str, checkout: Path, tmp_path: Path) -> None:
    done = call(bare, checkout, tmp_path / "cache", "fig3a")
    assert done.returncode == 3
    assert (
        done.stderr == f"qjump-mn: the Python environment of {checkout} is not there yet: run  "
        f"'{checkout}/bootstrap'\n"
    )


def test_python_with_all_packages_needs_no_environment(checkout: Path, tmp_path: Path) -> None:
    done = call(sys.executable, checkout, tmp_path / "cache")
    assert Path(str(checkouts.said(done.stdout)["prefix"])).samefile(sys.prefix)


def test_environment_without_python_is_none(bare: str, checkout: Path, tmp_path: Path) -> None:
    python = _broken_environment(tmp_path / "cache") / "bin" / "python"
    python.symlink_to(tmp_path / "uninstalled")
    assert call(bare, checkout, tmp_path / "cache").returncode == 3


def test_broken_environment_is_entered_once(bare: str, checkout: Path, tmp_path: Path) -> None:
    python = _broken_environment(tmp_path / "cache") / "bin" / "python"
    # Another prefix, so not the environment that it claims to be.
    python.write_text(f'#!/bin/sh\nexec {bare} "$@"\n')
    python.chmod(0o755)
    done = call(bare, checkout, tmp_path / "cache")
    assert done.returncode == 3
    assert "does not work: remove it and run" in done.stderr


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """An environment in a cache of its own, with a copy of msgspec; the other packages are
    links."""
    folder = tmp_path / "small" / "environment" / environment._key(sys.version_info[1])
    venv.create(folder, with_pip=False, symlinks=True)
    below = f"lib/python3.{sys.version_info[1]}/site-packages"
    for path in (Path(sys.prefix) / below).iterdir():
        if path.name == "msgspec":
            shutil.copytree(path, folder / below / path.name)
        else:
            (folder / below / path.name).symlink_to(path)
    sums.write(folder)
    return folder


@pytest.mark.parametrize(
    "words", [("qjump_mn.run", "list"), ("qjump_mn.analysis", "none")], ids=" ".join
)
@pytest.mark.parametrize(
    ("file", "is_cut", "sentence"),
    [
        ("_utils.py", False,
         "_utils.py is missing: remove that folder and run  {checkout}/bootstrap"),
        ("structs.py", True, "structs.py has other content: remove that folder and run  "),
        ("_core*.so", True,
         ".so has other content: remove that folder and run  {checkout}/bootstrap"),
    ],
)  # fmt: skip
def test_a_damaged_environment_is_one_sentence(
    bare: str, small: Path, words: tuple[str, ...], file: str, is_cut: bool, sentence: str
) -> None:
    (path,) = small.glob(f"lib/*/site-packages/msgspec/{file}")
    if is_cut:
        os.truncate(path, 9)
    else:
        path.unlink()
    for cached in path.parent.glob("__pycache__/*"):
        cached.unlink()
    variables = {"PATH": "/usr/bin:/bin", "QJUMP_MN_CACHE": str(small.parents[1])}
    done = execute([bare, "-m", *words], cwd=environment.CHECKOUT, env=variables)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1), done.stderr
    said = sentence.format(checkout=environment.CHECKOUT)
    assert f"environment {small} is damaged, " in done.stderr and said in done.stderr


def test_an_error_of_our_own_is_not_a_damaged_environment(bare: str, small: Path) -> None:
    code = "from qjump_mn.install import environment\nwith environment.intact(): import qjump_mn.nosuch"
    python = [str(small / "bin/python"), "-c", code]
    done = execute(python, cwd=environment.CHECKOUT)
    assert done.returncode == 1 and "No module named 'qjump_mn.nosuch'" in done.stderr


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_user_without_a_home_is_asked_for_a_cache() -> None:
    """As in a container, with a user id that the user database does not have; the checkout is this
    user's."""
    code = "from qjump_mn import cache; print(cache.roots()); cache.writable_root()"
    with tempfile.TemporaryDirectory() as folder:
        checkout = checkouts.copy(Path(folder, "checkout"))
        for path in (Path(folder), checkout, *checkout.rglob("*")):
            os.chown(path, UNKNOWN_USER, UNKNOWN_USER)
        for home in ({}, {"HOME": ""}, {"HOME": "here", "XDG_CACHE_HOME": "here"}):
            done = execute(
                [os.path.realpath(sys.executable), "-c", code],
                cwd=checkout,
                env=home,
                user=UNKNOWN_USER,
                group=UNKNOWN_USER,
                extra_groups=[],
            )
            assert (
                "/nonexistent/.cache/qjump-mn (permission denied); set QJUMP_MN_CACHE to"
                in done.stderr
            )
        assert not {"~", "here"} & set(os.listdir(checkout))


def _broken_environment(cache: Path) -> Path:
    folder = cache / "environment" / environment._key(sys.version_info[1])
    (folder / "bin").mkdir(parents=True)
    return folder


def test_old_python_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
    with pytest.raises(SystemExit) as ended:
        environment.ensure()
    assert ended.value.code == 3
    assert "qjump-mn needs 3.11 or newer" in capsys.readouterr().err


@pytest.mark.parametrize("minor", range(8, 11))
@pytest.mark.parametrize(
    "words", [("qjump_mn.run", "list"), ("qjump_mn.analysis", "results/last")], ids=" ".join
)
def test_an_old_python_that_is_here_says_that_sentence(minor: int, words: tuple[str, ...]) -> None:
    argv = [checkouts.installed_python(minor), "-m", *words]
    done = execute(argv, cwd=environment.CHECKOUT)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"qjump-mn: this is Python 3.{minor}.")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "name",
    (
        "__init__ install/environment process/interrupts process/processes run "
        "process/variables install/launcher analysis/__init__ analysis/__main__"
    ).split(),
)
def test_an_old_python_can_read_what_comes_before_the_sentence(name: str) -> None:
    source = (environment.CHECKOUT / "qjump_mn" / f"{name}.py").read_text()
    ast.parse(source, feature_version=(3, 8))


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_leaves_nothing_of_its_own_in_a_users_checkout(bare: str, tmp_path: Path) -> None:
    checkout = checkouts.copy(tmp_path / "theirs")
    for path in (checkout, *checkout.rglob("*")):
        os.chown(path, 65534, 65534)
    assert call(bare, checkout, checkouts.warm_cache(tmp_path / "cache")).returncode == 0
    folders = [path for path in checkout.rglob("*") if path.is_dir()]
    assert {path.stat().st_uid for path in folders} == {
        65534
    }  # so that the user can remove what lies in them


def test_manual_page_is_where_man_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "share/man/man1/qjump-mn.1"
    for name in ("one", "two"):
        (tmp_path / name / "docs").mkdir(parents=True)
        (tmp_path / name / "qjump_mn/install").mkdir(parents=True)
        (tmp_path / name / "qjump_mn/install/launcher.py").write_text("")
        (tmp_path / name / "docs/qjump-mn.1").write_text(name)
        monkeypatch.setattr(environment, "CHECKOUT", tmp_path / name)
        environment.link(tmp_path / "bin/qjump-mn")
        assert page.read_text() == name
    page.unlink()
    page.write_text("somebody's")
    monkeypatch.setattr(environment, "CHECKOUT", tmp_path / "one")
    environment.link(tmp_path / "bin/qjump-mn")
    assert page.read_text() == "somebody's" and len(list(page.parent.iterdir())) == 1


@pytest.mark.parametrize("kind", ["file", "link", "dangling", "folder"])
def test_another_command_stays(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launcher, theirs = tmp_path / "qjump-mn", tmp_path / "theirs"
    if kind == "file":
        launcher.write_text("#!/bin/sh\n")
    elif kind == "folder":
        launcher.mkdir()
    else:
        launcher.symlink_to(theirs)
        if kind == "link":
            theirs.write_text("theirs")
    before = sorted(tmp_path.iterdir())
    environment.link(launcher)
    assert "is another program and stays" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
    assert launcher.is_symlink() == (kind in ("link", "dangling"))


@pytest.mark.slow
def test_a_package_with_another_hash_is_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"{checkouts.locked('pip')}msgspec==0.18.6 --hash=sha256:{'0' * 64}\n")
    monkeypatch.setattr(environment, "LOCK", lock)
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MachineError, match="the Python environment could not be made") as error:
        environment.build()
    folder = tmp_path / "cache" / "environment"
    assert (
        "THESE PACKAGES DO NOT MATCH THE HASHES"
        in (log := folder / f"{environment._key(sys.version_info[1])}.log").read_text()
    )
    assert str(log) in str(error.value)
    assert not [path for path in folder.iterdir() if path.is_dir()]
