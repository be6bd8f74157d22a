"""Damage to what a guest starts from: a run that it stops names it, `machine verify` removes it,
and the next run builds it again and has the right result.

The cache is a copy of what is in use, as far as these tests need it, and the toolbox is built again
from the session's own, which plays the mirror.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from qjump_mn import cache, guest, toolbox
from qjump_mn.cache import holds, sums, verification
from qjump_mn.errors import MachineError
from qjump_mn.guest import Image, Job, Result, Setup
from qjump_mn.toolbox import make_tree, um
from qjump_mn.toolbox.processors import X86_64

pytestmark = [pytest.mark.guest, pytest.mark.slow, pytest.mark.fresh]

SETUP = Setup(entry="builtins:str", args={"answer": 42})
JOB = Job(script="import os\nprint(os.urandom(4).hex())", seed=5)
PROGRAM = "usr/bin/kmod"
BIG_BYTES = 20 << 20  # compilers' libraries: nothing is compiled here
PARTS = "usr/bin usr/sbin usr/lib64 usr/lib/python3 usr/lib/python3.13 var/lib/dpkg/status".split()


def copied(source: Path, target: Path) -> None:
    """What of the toolbox runs a guest and writes its image."""

    def too_big(folder: str, names: list[str]) -> list[str]:
        paths = (Path(folder, name) for name in names)
        return [path.name for path in paths if path.is_file() and path.stat().st_size > BIG_BYTES]

    libraries = [path for path in (source / X86_64.libraries).iterdir() if not path.is_dir()]
    for name in (*PARTS, *(str(path.relative_to(source)) for path in libraries)):
        path = source / name
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target / name, symlinks=True, ignore=too_big)
        elif path.is_symlink() or path.stat().st_size <= BIG_BYTES:
            shutil.copy2(path, target / name, follow_symlinks=False)
    for path in source.iterdir():
        if path.is_symlink():
            shutil.copy2(path, target / path.name, follow_symlinks=False)


@pytest.fixture(scope="module")
def used(image: Image) -> list[Path]:
    """What the image of packages is made of, in the session's cache."""
    if toolbox.found() is None:
        pytest.skip("the toolbox is not built")
    found: list[Path] = []
    artefact = cache.artefact
    with pytest.MonkeyPatch.context() as patch:

        def noted(kind: str, *arguments: object, **options: object) -> Path:
            found.append(artefact(kind, *arguments, **options))  # type: ignore[arg-type]
            return found[-1]

        patch.setattr(cache, "artefact", noted)
        guest.prepare(print, of_packages=True)
    return found


@pytest.fixture(scope="module")
def private(used: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache with all of that."""
    tree = toolbox.found()
    assert tree is not None

    def made(lock: object, root: Path, progress: Callable[[str], None]) -> None:
        copied(tree.root, root)

    def compiled(self: toolbox.Tree, argv: object, target: Path) -> str:
        """Linux as a program, which takes minutes."""
        (target / "source").mkdir()
        shutil.copy2(kernel, target / "source/linux")
        return ""

    folder, kernel = tmp_path_factory.mktemp("cache"), um.kernel()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make_tree, "locked", made)
        patch.setattr(toolbox.Tree, "run", compiled)
        patch.setenv("QJUMP_MN_CACHE", str(folder))
        patch.delenv("QJUMP_MN_MACHINE", raising=False)
        toolbox.made(toolbox.NAME)
        for path in used:
            if path.parent.name != "toolbox":
                cache.artefact(path.parent.name, path.name, partial(filled, path))
        yield folder
    shutil.rmtree(folder)


def filled(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    (target / sums.NAME).unlink(missing_ok=True)


def run(out: Path) -> Result:
    """A small job as a backend runs it."""
    return guest.run(guest.prepare(), SETUP, JOB, out)


@pytest.fixture(scope="module")
def right(private: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    result = run(tmp_path_factory.mktemp("right"))
    assert not result.exit_code
    return result


def empty(path: Path) -> None:
    os.truncate(path, 0)


def flip(path: Path) -> None:
    path.chmod(0o755)
    data = bytearray(path.read_bytes())
    data[1 << 12] ^= 1
    path.write_bytes(data)


def verified(private: Path) -> list[str]:
    """What `machine verify` says when no process uses the cache."""
    said: list[str] = []
    for path in private.glob("*/*"):
        holds.release(path)
    verification.verify(said.append)
    return said


@pytest.mark.parametrize(
    ("pattern", "damage", "how"),
    [
        (f"toolbox/*/root/{PROGRAM}", Path.unlink, "is missing"),
        (f"toolbox/*/root/{X86_64.libraries}/libc.so.6", empty, "has other content"),
        ("image/*/initrd", flip, "has other content"),
        ("um-kernel/*/linux", flip, "has other content"),
    ],
)
def test_verify_removes_a_damaged_part_and_the_next_run_builds_it(
    private: Path,
    right: Result,
    tmp_path: Path,
    pattern: str,
    damage: Callable[[Path], None],
    how: str,
) -> None:
    (path,) = private.glob(pattern)
    damage(path)
    kind, key, *name = path.relative_to(private).parts
    said = verified(private)
    assert f"damaged       {private / kind / key}: {'/'.join(name)} {how}" in said
    assert not (private / kind / key).exists()
    result = run(tmp_path)
    assert (result.sha256, result.virtual_s) == (right.sha256, right.virtual_s)
    assert not any("damaged" in line for line in verified(private))


@pytest.mark.parametrize("pattern", ["image/*/initrd", "um-kernel/*/linux"])
def test_run_that_ends_on_a_damaged_file_names_it(
    private: Path, right: Result, tmp_path: Path, pattern: str
) -> None:
    (path,) = private.glob(pattern)
    os.truncate(path, 1 << 20)
    with pytest.raises(MachineError, match=f"^{path} is damaged: {cache.VERIFY}$"):
        run(tmp_path / "first")
    assert any("1 damaged" in line for line in verified(private))
    assert run(tmp_path / "second").sha256 == right.sha256
