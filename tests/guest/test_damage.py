"""Damage to what a guest starts from: the next run makes it again and has the right result, or says in a
sentence how to; doctor says it too.

The cache is a copy of what is in use, as far as these tests need it, and the toolbox is made again of the
session's own, which plays the mirror.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from qjump_mn import cache, cache_verification, diagnosis, guest, toolbox
from qjump_mn.cached_files import RECORD
from qjump_mn.errors import MachineError
from qjump_mn.guest import Image, Job, Result, Setup
from qjump_mn.toolbox import making, um
from qjump_mn.toolbox.processors import X86_64

pytestmark = [pytest.mark.guest, pytest.mark.slow, pytest.mark.fresh]

SETUP = Setup(entry="builtins:str", args={"answer": 42})
JOB = Job(script="import os\nprint(os.urandom(4).hex())", seed=5)
PROGRAM = "usr/bin/kmod"
BIG_BYTES = 20 << 20  # compilers' libraries: nothing is compiled here
PARTS = ("usr/bin usr/sbin usr/lib64 usr/lib/python3 usr/lib/python3.13 var/lib/dpkg/status").split()


def copied(source: Path, target: Path) -> None:
    """What of the toolbox runs a guest and writes its image."""

    def too_big(folder: str, names: list[str]) -> list[str]:
        paths = (Path(folder, name) for name in names)
        return [path.name for path in paths if path.is_file() and path.stat().st_size > BIG_BYTES]

    libraries = [
        f"{X86_64.libraries}/{path.name}"
        for path in (source / X86_64.libraries).iterdir()
        if not path.is_dir()
    ]
    for name in (*PARTS, *libraries):
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
        patch.setattr(making, "locked", made)
        patch.setattr(toolbox.Tree, "run", compiled)
        patch.setenv("QJUMP_MN_CACHE", str(folder))
        patch.delenv("QJUMP_MN_MACHINE", raising=False)
        toolbox.made(toolbox.NAME)
        for path in used:
            if path.parent.name != "toolbox":
                cache.artefact(path.parent.name, path.name, lambda target, path=path: filled(path, target))  # type: ignore[misc]
        yield folder
    shutil.rmtree(folder)


def filled(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    (target / RECORD).unlink(missing_ok=True)


def run(out: Path, said: list[str]) -> Result:
    """A small job as a backend runs it."""
    return guest.run(guest.prepare(said.append), SETUP, JOB, out)


@pytest.fixture(scope="module")
def right(private: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    said: list[str] = []
    result = run(tmp_path_factory.mktemp("right"), said)
    assert not said and not result.exit_code
    return result


def only(private: Path, pattern: str) -> Path:
    (path,) = private.glob(pattern)
    return path


def empty(path: Path) -> None:
    os.truncate(path, 0)


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def doctor(*, boots: bool = True) -> tuple[int, str]:
    """Its exit code and words; it boots a guest, or is taken at its word that one would."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        if not boots:
            patch.setattr(diagnosis, "_boot", lambda *_: (diagnosis.State.OK, ""))
        return diagnosis.report(Console(file=out, width=1000)), out.getvalue()


def same(one: Result, other: Result) -> bool:
    return one.sha256 == other.sha256 and one.virtual_s == other.virtual_s


@pytest.mark.parametrize(
    ("pattern", "damage", "how"),
    [(PROGRAM, Path.unlink, "is missing"), (f"{X86_64.libraries}/libc.so.6", empty, "is empty")],
    ids=["no program", "empty library"],
)
def test_a_damaged_toolbox_is_made_again(
    private: Path, right: Result, tmp_path: Path, pattern: str, damage: Callable[[Path], None], how: str
) -> None:
    path = only(private, f"toolbox/*/root/{pattern}")
    damage(path)
    name = path.relative_to(private / "toolbox").parts[1:]
    sentence = f"toolbox {path.parents[len(name) - 1]} is damaged, {'/'.join(name)} {how}"
    code, words = doctor()
    assert (
        code == 3 and f"missing  guest: {sentence}\n         as root run  qjump-mn machine build\n" in words
    )
    said: list[str] = []
    assert same(run(tmp_path, said), right)
    assert said[0] == f"{sentence}: it is made again"


def test_a_toolbox_that_cannot_be_made_again_is_one_sentence(
    private: Path, right: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(lock: object, root: Path, progress: Callable[[str], None]) -> None:
        raise MachineError("the machine must be built once by root")

    only(private, f"toolbox/*/root/{PROGRAM}").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(making, "locked", refused)
        said: list[str] = []
        with pytest.raises(MachineError, match="must be built once by root"):
            run(tmp_path, said)
        assert "is missing: it is made again" in said[0]
        code, words = doctor()
        assert code == 3 and "guest: the guest is not built yet" in words
    assert guest.prepare(said.append).sha256.items() <= right.sha256.items()


@pytest.mark.parametrize(("kind", "name"), [("image", "initrd"), ("um-kernel", "linux")])
def test_a_flipped_byte_is_found_before_it_boots(
    private: Path, right: Result, tmp_path: Path, kind: str, name: str
) -> None:
    path = only(private, f"{kind}/*/{name}")
    sentence = f"{kind} {path.parent} is damaged, {name} has other content: it is made again"
    flip(path, 1 << 20)
    said: list[str] = []
    assert same(run(tmp_path, said), right) and said[0] == sentence
    flip(path, 1 << 20)
    assert "as they were made" in doctor(boots=False)[1]  # no glance shows it
    code, words = doctor()
    assert code == 3 and path.is_file()
    damage = sentence.removesuffix(": it is made again")
    assert f"missing  guest: the guest is not built yet: {damage}\n" in words
    assert cache_verification.verify(said.append).damaged == 1
    assert f"damaged       {path.parent}: {name} has other content" in said
    assert guest.prepare(said.append).sha256.items() <= right.sha256.items()
    assert "missing" not in doctor(boots=False)[1]
    assert not cache_verification.verify(said.append).damaged
