"""Artefacts that are damaged: what a glance finds and what only reading every byte does, what is said of it,
and that what is damaged is made again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qjump_mn import cache, cache_read_only, cache_verification, cached_files
from qjump_mn.cache_read_only import NotBuiltError
from qjump_mn.cached_files import RECORD
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import Tree
from qjump_mn.toolbox.tree import is_vital
from tests.guest import strangers

BIG = 9 << 20
"""Bytes of an artefact that is not hashed at a glance."""


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


def fill_big(folder: Path) -> None:
    fill(folder)
    with (folder / "memory").open("wb") as file:  # with a hole at its begin, in its middle and at its end
        for at in (1 << 20, 5 << 20):
            file.seek(at)
            file.write(b"data" * 1000)
        file.truncate(BIG)


def cut(path: Path) -> None:
    os.truncate(path, 3)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def flip(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(2)
        byte = file.read(1)[0]
        file.seek(2)
        file.write(bytes([byte ^ 1]))


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def forbid(path: Path) -> None:
    path.chmod(0o644)


def lead_elsewhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("bin/elsewhere")


def lead_as_far(path: Path) -> None:
    """Elsewhere, by a name of the same length."""
    path.unlink()
    path.symlink_to("bin/Program")


def become_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = [
    ("bin/program", Path.unlink, "bin/program is missing"),
    ("bin/program", cut, "bin/program is cut to 3 of 10 bytes"),
    ("bin/program", empty, "bin/program is empty"),
    ("bin/program", flip, "bin/program has other content"),
    ("bin/program", lengthen, "bin/program has 14 bytes, not 10"),
    ("bin/program", forbid, "bin/program has the mode 644, not 755"),
    ("bin/program", become_folder, "bin/program is not a file any more"),
    ("odd\n\\ name", flip, "odd\n\\ name has other content"),
    ("link", Path.unlink, "link is missing"),
    ("link", lead_elsewhere, "link leads to bin/elsewhere"),
    ("link", lead_as_far, "link leads to bin/Program"),
    ("empty", Path.rmdir, "empty is missing"),
    ("pipe", Path.unlink, "pipe is missing"),
    ("bin", shutil.rmtree, "bin is missing"),
    (RECORD, empty, ".files is damaged"),
    (RECORD, cut, ".files is damaged"),
    (RECORD, flip, ".files is damaged"),
    (RECORD, lengthen, ".files is damaged"),
]
each_damage = pytest.mark.parametrize(("name", "damage", "sentence"), DAMAGES)


@each_damage
def test_a_small_artefact_that_is_damaged_is_named_and_made_again(
    name: str, damage: Callable[[Path], None], sentence: str
) -> None:
    path = cache.artefact("kind", "hash", fill)
    damage(path / name)
    said: list[str] = []
    assert cache.find("kind", "hash") is None
    assert cache.damage("kind", "hash") == f"kind {path} is damaged, {sentence}"
    assert cache.artefact("kind", "hash", fill, progress=said.append) == path
    assert said == [f"kind {path} is damaged, {sentence}: it is made again"]
    assert cache.find("kind", "hash") == path and not list(cached_files.examine(path))
    assert {one.name for one in path.parent.iterdir()} == {"hash", "hash.lock"}


@each_damage
def test_verify_names_every_damage_and_removes_the_artefact(
    name: str, damage: Callable[[Path], None], sentence: str
) -> None:
    path, other = cache.artefact("kind", "hash", fill_big), cache.artefact("kind", "other", fill)
    damage(path / name)
    said: list[str] = []
    found = cache_verification.verify(said.append)
    assert (found.all, found.damaged, found.unchecked) == (2, 1, 0)
    assert said[0] == f"damaged       {path}: {sentence}"
    assert "removed: what needs it next makes it again" in said[-2]
    assert said[-1].startswith("kind          1 ok, 1 damaged")
    assert not path.exists() and other.is_dir()
    assert not cache_verification.verify(said.append).damaged


def test_a_glance_at_a_big_artefact_reads_no_content() -> None:
    path = cache.artefact("kind", "hash", fill_big)
    for name in ("memory", "bin/program"):
        flip(path / name)
    assert cache.find("kind", "hash") == path
    assert {damage.name for damage in cached_files.examine(path)} == {"memory", "bin/program"}
    os.truncate(path / "memory", BIG - 1)
    assert cache.damage("kind", "hash").endswith(f"memory is cut to {BIG - 1} of {BIG} bytes")


def test_holes_are_hashed_as_the_zeros_that_they_are(tmp_path: Path) -> None:
    path = cache.artefact("kind", "hash", fill_big)
    entry = cached_files.recorded(path, "memory")
    assert entry is not None and entry.sha256 == cache.hash_of_file(path / "memory")
    (path / "memory").write_bytes((path / "memory").read_bytes())  # without holes
    assert not list(cached_files.examine(path))


def test_of_an_artefact_of_many_files_a_glance_looks_at_the_vital_ones() -> None:
    path = cache.artefact("kind", "hash", fill, is_vital=lambda name: name.startswith("bin"))
    (path / "link").unlink()
    assert cache.find("kind", "hash") == path
    assert [str(damage) for damage in cached_files.examine(path)] == ["link is missing"]
    (path / "bin/program").unlink()
    assert cache.damage("kind", "hash").endswith("bin/program is missing")


def test_a_tree_is_looked_at_where_qemu_kernel_and_compilers_lie() -> None:
    vital = "usr/bin/qemu-system-x86_64 boot/vmlinuz-6.12 usr/lib/x86_64-linux-gnu/libc.so.6 usr/lib64/ld.so".split()
    assert all(is_vital(f"root/{name}") for name in (*vital, "var/lib/dpkg/status"))
    assert not any(map(is_vital, ("root/etc/passwd", "usr/bin/gcc", "root/usr/lib/modules/6.12/a.ko")))


def test_a_file_too_many_is_found_by_verify_and_bytecode_is_none() -> None:
    path = cache.artefact("kind", "hash", fill)
    (path / "bin/__pycache__").mkdir()
    (path / "bin/__pycache__/a.pyc").touch()
    assert not list(cached_files.examine(path))
    (path / "bin/more").touch()
    assert cache.find("kind", "hash") == path
    assert [str(damage) for damage in cached_files.examine(path)] == ["bin/more does not belong to it"]


def test_what_an_older_version_made_is_used_and_not_checked() -> None:
    path = cache.artefact("kind", "hash", fill)
    (path / RECORD).unlink()
    cut(path / "bin/program")
    said: list[str] = []
    assert cache.find("kind", "hash") == path
    assert tuple(cache_verification.verify(said.append)) == (1, 0, 1)
    assert said[0].startswith("kind          0 ok, 1 not checked")
    assert path.is_dir()


def test_many_damages_are_named_in_part(root: Path) -> None:
    path = cache.artefact("kind", "hash", fill)
    for name in ("link", "pipe", "odd\n\\ name", "bin/program"):
        (path / name).unlink()
    said: list[str] = []
    cache_verification.verify(said.append)
    assert said[3] == f"damaged       {path}: and 1 more files"


def test_the_environment_is_marked_for_it_is_what_verify_runs_in() -> None:
    path = cache.artefact("environment", "hash", fill)
    flip(path / "bin/program")
    said: list[str] = []
    assert cache_verification.verify(said.append).damaged == 1
    assert path.is_dir() and "run `./bootstrap`" in said[1]
    assert cache.find("environment", "hash") is None
    cache.artefact("environment", "hash", fill)
    assert not cache_verification.verify(said.append).damaged


def test_the_results_of_tests_are_no_artefacts(root: Path) -> None:
    (root / "tests/results").mkdir(parents=True)
    assert cache_verification.verify(print).all == 0


def test_the_command_ends_with_3_where_something_was_damaged_and_then_with_0() -> None:
    path = cache.artefact("kind", "hash", fill_big)
    flip(path / "memory")
    argv = [sys.executable, "-m", "qjump_mn.run", "machine", "verify"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    first, second = (
        subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60) for _ in range(2)
    )
    assert (first.returncode, second.returncode) == (3, 0), first.stderr + second.stderr
    assert f"damaged       {path}: memory has other content\n" in first.stdout
    assert first.stdout.endswith("1 of 1 artefacts are damaged: see above\n")
    assert second.stdout == "no file that was checked is damaged\n"


def test_two_at_once_make_it_again_once() -> None:
    path = cache.artefact("kind", "hash", fill)
    cut(path / "bin/program")
    started, release, built = threading.Event(), threading.Event(), []

    def slow(folder: Path) -> None:
        built.append(folder)
        fill(folder)
        started.set()
        release.wait(10)

    first = threading.Thread(target=cache.artefact, args=("kind", "hash", slow))
    first.start()
    started.wait(10)
    said: list[str] = []

    def note(line: str) -> None:
        said.append(line)
        release.set()

    assert cache.artefact("kind", "hash", slow, progress=note) == path
    first.join()
    assert len(built) == 1 and said == ["waiting for another qjump-mn that builds the same kind"]


# Builds until somebody says, by a file, that the other one waits.
BUILDS = """
import sys, time
from pathlib import Path
from qjump_mn import cache

waits = Path(sys.argv[1])

def slow(folder):
    while not waits.exists():
        time.sleep(0.01)
    (folder / "made").touch()
    print("made")

cache.artefact("kind", "hash", slow, progress=lambda line: print(line, flush=True))
"""


def test_two_processes_at_once_make_it_again_once(root: Path, tmp_path: Path) -> None:
    path, waits = cache.artefact("kind", "hash", fill), tmp_path / "waits"
    cut(path / "bin/program")
    argv = [sys.executable, "-c", BUILDS, str(waits)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    both = [
        subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True, bufsize=1)
        for _ in range(2)
    ]
    said: list[str] = []
    heard = threading.Event()

    def listen(process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if line.startswith("waiting for another"):
                heard.set()

    threads = [threading.Thread(target=listen, args=(process,)) for process in both]
    for thread in threads:
        thread.start()
    assert heard.wait(60), said
    waits.touch()
    assert [process.wait(60) for process in both] == [0, 0]
    for thread in threads:
        thread.join()
    told = [line for line in said if "is damaged" not in line]  # as one of them saw it, or both
    assert told == ["waiting for another qjump-mn that builds the same kind\n", "made\n"]
    assert cache.find("kind", "hash") == path


def test_what_was_made_anew_meanwhile_is_not_removed() -> None:
    path = cache.artefact("kind", "hash", fill)
    folder = os.open(path, os.O_RDONLY)
    try:
        cut(path / "bin/program")
        cache.artefact("kind", "hash", fill)
        assert not cache.remove_damaged(path, folder) and cache.find("kind", "hash") == path
        shutil.rmtree(path)
        assert not cache.remove_damaged(path, folder)
    finally:
        os.close(folder)


def test_the_hash_of_a_file_is_compared_with_the_record(tmp_path: Path) -> None:
    path = cache.artefact("kind", "hash", fill_big)
    whole = cache.hash_of_file(path / "memory")
    assert cache.checked_hash(path / "memory") == whole
    flip(path / "memory")
    with pytest.raises(cache.DamagedError, match=r"hash is damaged, memory has other content$"):
        cache.checked_hash(path / "memory")
    assert not path.exists()
    assert cache.checked_hash(cache.artefact("kind", "hash", fill_big) / "memory") == whole
    (tmp_path / "file").write_text("of nobody")
    assert cache.checked_hash(tmp_path / "file") == cache.hash_of_file(tmp_path / "file")


def test_read_only_nothing_is_built_or_removed(root: Path) -> None:
    path, other = cache.artefact("kind", "hash", fill_big), cache.artefact("kind", "other", fill)
    flip(path / "memory")
    cut(other / "bin/program")
    with cache_read_only.enabled():
        with pytest.raises(NotBuiltError, match=r"hash is damaged, memory has other content$"):
            cache.checked_hash(path / "memory")
        with pytest.raises(NotBuiltError, match=r"other is damaged, bin/program is cut to"):
            cache.artefact("kind", "other", fill)
        with pytest.raises(NotBuiltError, match=r"^the image is missing$"):
            cache.artefact("image", "hash", fill)
        assert cache.artefact("kind", "hash", fill_big) == path  # no glance finds the damage
    assert other.is_dir() and not (root / "image").exists()
    assert cache.artefact("image", "hash", fill).is_dir()


def test_a_hash_is_taken_again_of_what_another_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    path = cache.artefact("kind", "hash", fill_big)
    whole = cache.hash_of_file(path / "memory")
    hashes = iter(["of the damaged file", whole])
    monkeypatch.setattr(cache, "hash_of_file", lambda path: next(hashes))
    assert cache.checked_hash(path / "memory") == whole and path.is_dir()


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache that everybody can read and that is ours."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("QJUMP_MN_CACHE", folder)
        yield Path(folder)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_another_user_is_told_what_root_must_remove(shared: Path) -> None:
    path = cache.artefact("kind", "hash", fill_big)
    flip(path / "memory")
    code = (
        "from pathlib import Path; from qjump_mn import cache, cache_verification\n"
        f"path = Path({str(path)!r})\n"
        "cache_verification.verify(print)\n"
        "try: cache.checked_hash(path / 'memory')\n"
        "except cache.MachineError as error: print(type(error).__name__, error)\n"
    )
    with strangers.made() as someone:
        said = someone.run(code, b"").splitlines()
    by_root = "root must remove it, by `qjump-mn machine verify`"
    assert said[:2] == [
        f"damaged       {path}: memory has other content",
        f"              {path} belongs to another user: {by_root}",
    ]
    assert said[-1] == f"MachineError kind {path} is damaged, memory has other content: {by_root}"
    assert path.is_dir()


def test_a_damaged_one_of_another_user_is_named_and_made_at_home(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = cache.artefact("kind", "hash", fill)
    cut(path / "bin/program")
    monkeypatch.delenv("QJUMP_MN_CACHE")
    monkeypatch.setattr(cache, "SHARED", root)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    really = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: not Path(path).is_relative_to(root) and really(path, mode)
    )
    said: list[str] = []
    made = cache.artefact("kind", "hash", fill, progress=said.append)
    assert made == tmp_path / "home/qjump-mn/kind/hash" == cache.find("kind", "hash")
    by_root = "root must remove it, by `qjump-mn machine verify`"
    assert said == [f"kind {path} is damaged, bin/program is cut to 3 of 10 bytes: {by_root}"]


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
def test_a_program_of_a_tree_that_does_not_start_is_one_sentence(
    tmp_path: Path, damage: Callable[[Path], None], sentence: str
) -> None:
    tree(tmp_path)
    damage(tmp_path / "usr/lib64/ld-linux-x86-64.so.2")
    with pytest.raises(MachineError, match=rf"{sentence}.*: run `qjump-mn machine verify`$"):
        Tree(tmp_path).output("usr/bin/program")


def test_a_file_of_the_cache_that_is_gone_is_one_sentence(root: Path, tmp_path: Path) -> None:
    path = cache.artefact("kind", "hash", fill)
    sentence = r"bin/none cannot be used \(no such file .*machine verify`$"
    with pytest.raises(MachineError, match=sentence), cache.sentences():
        (path / "bin/none").read_text()
    with pytest.raises(FileNotFoundError), cache.sentences():
        (tmp_path / "none").read_text()
