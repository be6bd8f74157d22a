"""Damaged artefacts: what SHA256SUMS finds, what `machine verify` says and does, and what users of
a damaged artefact are told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qjump_mn import cache
from qjump_mn.cache import holds, sums, verification
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import Tree
from tests.guest import strangers
from tests.support.processes import cli


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("QJUMP_MN_CACHE", str(folder))
    return folder


def fill(folder: Path) -> None:
    """Everything that an artefact may hold."""
    (folder / "bin").mkdir()
    (folder / "bin/program").write_text("#!/bin/sh\n")
    (folder / "bin/program").chmod(0o755)
    (folder / "odd\n\\ name").write_text("odd\n")
    (folder / "link").symlink_to("bin/program")
    (folder / "empty").mkdir()
    os.mkfifo(folder / "pipe")


def made(kind: str = "kind", inputs_hash: str = "hash") -> Path:
    """An artefact that no process uses any more."""
    path = cache.artefact(kind, inputs_hash, fill)
    holds.release(path)
    return path


def cut(path: Path) -> None:
    os.truncate(path, 3)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[2] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def forbid(path: Path) -> None:
    path.chmod(0o644)


def become_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("name", "damage", "sentence"),
    [
        ("bin/program", Path.unlink, "bin/program is missing"),
        ("bin/program", flip, "bin/program has other content"),
        ("bin/program", lengthen, "bin/program has other content"),
        ("bin/program", become_folder, "bin/program cannot be read: is a directory"),
        ("odd\n\\ name", flip, "odd\n\\ name has other content"),
        ("bin", shutil.rmtree, "bin/program is missing"),
        (sums.NAME, empty, "SHA256SUMS is damaged"),
        (sums.NAME, lengthen, "SHA256SUMS is damaged"),
    ],
)
def test_verify_names_the_damage_and_removes_the_artefact(
    name: str, damage: Callable[[Path], None], sentence: str
) -> None:
    path, other = made(), made(inputs_hash="other")
    damage(path / name)
    said: list[str] = []
    assert verification.verify(said.append) == (2, 1, 0)
    assert said[0] == f"damaged       {path}: {sentence}"
    assert said[1] == "              removed: what needs it next builds it again"
    assert said[2].startswith("kind          1 ok, 1 damaged")
    assert not path.exists() and other.is_dir()
    assert not verification.verify(said.append).damaged
    assert made() == path and not list(sums.damages(path))


def test_coreutils_check_the_same_list() -> None:
    path = made()
    argv = ["sha256sum", "--check", "--strict", "--quiet", sums.NAME]
    assert subprocess.run(argv, cwd=path, capture_output=True).returncode == 0
    assert len((path / sums.NAME).read_text().splitlines()) == 2
    flip(path / "odd\n\\ name")
    assert subprocess.run(argv, cwd=path, capture_output=True).returncode == 1


def test_artefact_without_sums_is_used_and_not_checked() -> None:
    path = made()
    digest = cache.recorded_hash(path / "bin/program")
    (path / sums.NAME).unlink()
    assert cache.find("kind", "hash") == path
    assert cache.recorded_hash(path / "bin/program") == digest
    said: list[str] = []
    assert verification.verify(said.append) == (1, 0, 1)
    assert said[0].startswith("kind          0 ok, 1 without SHA256SUMS")
    assert path.is_dir()


def test_verify_names_only_some_of_many_damages() -> None:
    def fill_many(folder: Path) -> None:
        for number in range(5):
            (folder / str(number)).touch()

    path = cache.artefact("kind", "hash", fill_many)
    for number in range(5):
        (path / str(number)).unlink()
    said: list[str] = []
    verification.verify(said.append)
    assert said[2:4] == [
        f"damaged       {path}: 2 is missing",
        f"damaged       {path}: and 2 more files",
    ]


def test_verify_leaves_the_environment_that_it_runs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = made("environment"), made("environment", "other")
    for each in (path, other):
        flip(each / "bin/program")
    monkeypatch.setattr(sys, "prefix", str(path))
    said: list[str] = []
    assert verification.verify(said.append).damaged == 2
    assert path.is_dir() and not other.exists()
    assert "              remove that folder and run `./bootstrap` in the checkout" in said


def test_verify_leaves_a_damaged_artefact_that_a_run_uses() -> None:
    path = cache.artefact("kind", "hash", fill)
    flip(path / "bin/program")
    said: list[str] = []
    assert verification.verify(said.append).damaged == 1
    assert path.is_dir() and f"              {path} stays: a run uses it" in said[1]


def test_results_of_tests_are_not_artefacts(root: Path) -> None:
    (root / "tests/results").mkdir(parents=True)
    assert verification.verify(print).all == 0


def test_command_ends_with_3_after_damage_and_then_with_0() -> None:
    path = made()
    flip(path / "bin/program")
    first, second = (cli("machine", "verify") for _ in range(2))
    assert (first.returncode, second.returncode) == (3, 0), first.stderr + second.stderr
    assert f"damaged       {path}: bin/program has other content\n" in first.stdout
    assert first.stdout.endswith("1 of 1 artefacts are damaged: see above\n")
    assert second.stdout == "no file that was checked is damaged\n"


def test_recorded_hash_is_that_of_the_sums(tmp_path: Path) -> None:
    path = made()
    digest = cache.hash_of_file(path / "bin/program")
    assert cache.recorded_hash(path / "bin/program") == digest
    cache.check(path / "bin/program")
    flip(path / "bin/program")
    assert cache.recorded_hash(path / "bin/program") == digest
    with pytest.raises(
        MachineError, match=r"bin/program is damaged: run `qjump-mn machine verify`$"
    ):
        cache.check(path / "bin/program")
    (path / "bin/program").unlink()
    with pytest.raises(
        MachineError, match=r"bin/program cannot be used .*: run `qjump-mn machine verify`$"
    ):
        cache.check(path / "bin/program")
    cut(path / sums.NAME)
    with pytest.raises(MachineError, match=r"hash is damaged: run `qjump-mn machine verify`$"):
        cache.recorded_hash(path / "bin/program")
    (tmp_path / "file").write_text("in no artefact")
    assert cache.recorded_hash(tmp_path / "file") == cache.hash_of_file(tmp_path / "file")


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache that everybody can read and that is ours."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("QJUMP_MN_CACHE", folder)
        yield Path(folder)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_verify_by_another_user_says_what_root_must_remove(shared: Path) -> None:
    path = made()
    flip(path / "bin/program")
    code = "from qjump_mn.cache import verification\nverification.verify(print)"
    with strangers.made() as someone:
        said = someone.run(code, b"").splitlines()
    assert said[:2] == [
        f"damaged       {path}: bin/program has other content",
        f"              {path} belongs to another user: remove it as root",
    ]
    assert path.is_dir()


def tree(folder: Path) -> None:
    """A tree with a loader of ours, which is no more than a shell."""
    for name in ("usr/lib64/ld-linux-x86-64.so.2", "usr/bin/program"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\necho $# $1; echo no library >&2; exit 127\n")
        path.chmod(0o755)


def make_unstartable(path: Path) -> None:
    path.write_bytes(b"\0" * 100)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda path: None, r"usr/bin/program does not run \(no library\)"),
        (Path.unlink, r"usr/bin/program cannot be started \(no such file or directory\)"),
        (forbid, r"usr/bin/program cannot be started \(permission denied\)"),
        (make_unstartable, r"usr/bin/program cannot be started \(exec format error\)"),
        (cut, r"usr/bin/program (cannot be started|does not run) "),
    ],
)
def test_program_of_a_tree_that_does_not_start_is_one_sentence(
    tmp_path: Path, damage: Callable[[Path], None], sentence: str
) -> None:
    tree(tmp_path)
    damage(tmp_path / "usr/lib64/ld-linux-x86-64.so.2")
    with pytest.raises(MachineError, match=rf"{sentence}.*: run `qjump-mn machine verify`$"):
        Tree(tmp_path).output("usr/bin/program")


def test_missing_file_of_the_cache_is_one_sentence(tmp_path: Path) -> None:
    path = made()
    sentence = r"bin/none cannot be used \(no such file .*machine verify`$"
    with pytest.raises(MachineError, match=sentence), cache.sentences():
        (path / "bin/none").read_text()
    with pytest.raises(FileNotFoundError), cache.sentences():
        (tmp_path / "none").read_text()
