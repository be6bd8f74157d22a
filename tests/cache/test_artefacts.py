"""Artefacts appear whole or not at all, are built once, stay while they are used, and say in one
sentence why they cannot be built."""

from __future__ import annotations

import gc
import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from qjump_mn import cache
from qjump_mn.cache import holds
from qjump_mn.cli import doctor
from qjump_mn.errors import MachineError
from tests.guest import strangers
from tests.support.screen import Screen


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("QJUMP_MN_CACHE", str(folder))
    return folder


def write(folder: Path) -> None:
    (folder / "file").write_text("content")


def unused(kind: str, inputs_hash: str) -> Path:
    """An artefact that no process uses any more."""
    path = cache.artefact(kind, inputs_hash, write)
    holds.release(path)
    return path


def test_built_once_and_then_found(root: Path) -> None:
    path = cache.artefact("kind", "hash", write)
    assert path == root / "kind/hash"

    def fail(folder: Path) -> None:
        raise AssertionError("built twice")

    assert cache.artefact("kind", "hash", fail) == path == cache.find("kind", "hash")
    assert cache.find("kind", "other") is None


def test_a_build_that_raises_leaves_nothing(root: Path) -> None:
    def fail(folder: Path) -> None:
        write(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.artefact("kind", "hash", fail)
    assert [path.name for path in (root / "kind").iterdir()] == ["hash.lock"]
    assert cache.artefact("kind", "hash", write).is_dir()


def test_two_at_once_build_once_and_the_second_says_that_it_waits() -> None:
    started, release, built, said = threading.Event(), threading.Event(), [], []

    def slow(folder: Path) -> None:
        built.append(folder)
        started.set()
        release.wait(10)

    def note(line: str) -> None:
        said.append(line)
        release.set()

    first = threading.Thread(target=cache.artefact, args=("kind", "hash", slow))
    first.start()
    started.wait(10)
    cache.artefact("kind", "hash", slow, progress=note)
    first.join()
    assert len(built) == 1
    assert said == ["waiting for another qjump-mn that builds the same kind"]


def test_a_killed_build_is_swept_and_built_again(root: Path) -> None:
    code = "import time; from qjump_mn import cache; cache.artefact('kind', 'hash', lambda folder: ((folder / 'half').touch(), time.sleep(60)))"
    builder = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    until = time.monotonic() + 20
    while not list(root.glob("kind/hash.tmp-*/half")) and time.monotonic() < until:
        time.sleep(0.01)
    assert cache.entries() == []
    cache.sweep()
    assert list(root.glob("kind/hash.tmp-*/half"))  # it lives
    builder.send_signal(signal.SIGKILL)
    builder.wait()
    cache.artefact("kind", "hash", write)
    assert [path.name for path in sorted((root / "kind").iterdir())] == ["hash", "hash.lock"]


def test_everybody_may_read_what_the_owner_may(root: Path) -> None:
    def private(folder: Path) -> None:
        (folder / "sub").mkdir(mode=0o700)
        write(folder / "sub")
        (folder / "sub/file").chmod(0o600)
        (folder / "program").touch(mode=0o700)

    old = os.umask(0o077)
    try:
        path = cache.artefact("kind", "hash", private)
    finally:
        os.umask(old)
    modes = {
        name: (path / name).stat().st_mode & 0o777 for name in (".", "sub", "sub/file", "program")
    }
    assert modes == {".": 0o555, "sub": 0o755, "sub/file": 0o644, "program": 0o755}


def test_entries_prune_and_remove() -> None:
    for number in range(4):
        os.utime(unused("kind", str(number)), (number, number))
    unused("other", "kept")
    assert [entry.hash for entry in cache.prune("kind", 2)] == ["0", "1"]
    assert sorted(entry.hash for entry in cache.entries()) == ["2", "3", "kept"]
    for entry in cache.entries():
        assert entry.size_bytes > 0
        cache.remove(entry.path)
    assert cache.entries() == []


def test_prune_leaves_what_a_process_uses() -> None:
    for number in range(3):
        os.utime(unused("kind", str(number)), (number, number))
    cache.artefact("kind", "0", write)
    assert [entry.hash for entry in cache.prune("kind", 0)] == ["1", "2"]


def test_owner_without_root_can_remove_a_read_only_folder(tmp_path: Path) -> None:
    code = """
import os
from pathlib import Path
from qjump_mn import cache
from qjump_mn.cache import holds
path = cache.artefact("kind", "hash", lambda folder: (folder / "file").touch())
holds.release(path)
assert path.stat().st_mode & 0o777 == 0o555
cache.remove(path)
print([path.name for path in Path(os.environ["QJUMP_MN_CACHE"], "kind").iterdir()])
"""
    with strangers.made() as someone:
        moved = f"import os; os.environ['QJUMP_MN_CACHE'] = {str(someone.home / 'cache')!r}\n"
        assert someone.run(moved + code, b"") == "['hash.lock']\n"


def test_root_that_every_user_may_write_is_not_used(root: Path) -> None:
    cache.artefact("kind", "hash", write)
    root.chmod(0o777)
    assert cache.find("kind", "hash") is None
    with pytest.raises(
        MachineError, match=rf"{root} \(every user may write there\); set QJUMP_MN_CACHE"
    ):
        cache.artefact("kind", "hash", write)
    root.chmod(0o755)
    assert cache.find("kind", "hash") == root / "kind/hash"


def test_read_only_builds_nothing(root: Path) -> None:
    path = cache.artefact("kind", "hash", write)
    with cache.read_only():
        with pytest.raises(cache.NotBuiltError, match=r"^the image is missing$"):
            cache.artefact("image", "hash", write)
        assert cache.artefact("kind", "hash", write) == path
    assert not (root / "image").exists()
    assert cache.artefact("image", "hash", write).is_dir()


def test_the_shared_root_is_used_by_those_who_may_not_write_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = cache.artefact("kind", "hash", write)
    monkeypatch.delenv("QJUMP_MN_CACHE")
    monkeypatch.setattr(cache, "SHARED", root)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    really = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: not Path(path).is_relative_to(root) and really(path, mode)
    )
    assert cache.artefact("kind", "hash", write) == shared
    assert cache.artefact("kind", "new", write) == tmp_path / "home/qjump-mn/kind/new"


def test_folders_of_processes_are_no_artefacts(root: Path) -> None:
    cache.artefact("kind", "hash", write)
    (root / cache.SCRATCH / "0").mkdir(parents=True)
    assert [entry.kind for entry in cache.entries()] == ["kind"]


def test_clean_goes_on_behind_what_is_somebody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, ours = (unused("kind", name) for name in ("theirs", "ours"))
    os.utime(theirs, (1, 1))  # it comes first
    really = cache.remove

    def remove(path: Path) -> None:
        if path == theirs:
            raise MachineError(f"{theirs} belongs to another user: remove it as root")
        really(path)

    monkeypatch.setattr(cache, "remove", remove)
    out = Screen(400)
    doctor.clean(out, everything=True)
    assert f"{theirs} belongs to another user" in out.text and theirs.exists() and not ours.exists()


HOLD = """
import sys
from pathlib import Path
from qjump_mn import cache
found = cache.find("image", sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_clean_leaves_what_a_run_uses() -> None:
    artefact, other = (unused("image", name) for name in ("0" * 32, "1" * 32))
    out = Screen(400)
    argv = [sys.executable, "-c", HOLD, artefact.name]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout and run.stdout.readline() == "held\n"
        doctor.clean(out, everything=True)
        assert f"{artefact} stays: a run uses it; remove it when the run has ended\n" in out.text
        assert artefact.is_dir() and not other.exists()
        run.kill()
    doctor.clean(out, everything=True)
    assert not artefact.exists()


def test_no_folder_to_write_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QJUMP_MN_CACHE", "/proc/cache")
    with pytest.raises(MachineError, match="no folder for built files: /proc/cache"):
        cache.artefact("kind", "hash", write)


def test_no_room_is_one_sentence_before_anything_is_built() -> None:
    with pytest.raises(
        MachineError, match=r"no room for the kind: .* of the 1073741824 MiB that it needs"
    ):
        cache.artefact("kind", "hash", write, needs_bytes=1 << 50)


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "tiny"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "tiny", str(folder)],
        capture_output=True,
    ).returncode:
        pytest.skip("mounting needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_fills_up_is_one_sentence(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tiny))

    def big(folder: Path) -> None:
        (folder / "big").write_bytes(bytes(1 << 20))

    with pytest.raises(MachineError, match=r"no room for the kind: .* has 0 MiB"):
        cache.artefact("kind", "hash", big)
    assert not list(tiny.glob("kind/*.tmp-*"))


def test_several_threads_take_hashes_of_code_at_once() -> None:
    """While garbage is collected others go on: there Python 3.11's parser takes one for another."""

    def wait(*_: object) -> None:
        time.sleep(0.0005)

    gc.callbacks.append(wait)
    try:
        with ThreadPoolExecutor(4) as pool:
            hashes = list(pool.map(cache.hash_of_code, 20 * [Path(cache.__file__)]))
    finally:
        gc.callbacks.remove(wait)
    assert len(hashes) == 20 and len(set(hashes)) == 1


def test_code_has_the_same_hash_under_every_python(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(
        "import os  # so\n\n\ndef name(a, *, b=None) -> int:\n    return (f'{a!r:>4}', [], b)\n"
    )
    assert cache.hash_of_code(tmp_path / "code.py") == "41f63a2a7270a8b0545e5e5543b8bf98"
    (tmp_path / "same.py").write_text(
        "import os\ndef name(a, *, b=None)->int: return f'{a!r:>4}', [], b\n"
    )
    assert cache.hash_of_code(tmp_path / "same.py") == "41f63a2a7270a8b0545e5e5543b8bf98"


def test_a_relative_home_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QJUMP_MN_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.roots() == [cache.SHARED, tmp_path / ".cache/qjump-mn"]
    own = Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache/qjump-mn")
    for home in ("relative", "~", ""):
        monkeypatch.setenv("HOME", home)
        assert cache.roots() == [cache.SHARED, own]
