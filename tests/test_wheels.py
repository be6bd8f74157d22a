"""What the environment is made of: wheels in one file, and those that are none; an index. The wheels are small
ones of ours, but where an environment is made."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Callable
from pathlib import Path

import pip
import pytest

from qjump_mn.errors import MachineError
from qjump_mn.install import environment, installation, wheels
from tests import checkouts

PIP = "pip-26.3-py3-none-any.whl"
THIS = f"cp3{sys.version_info[1]}"
PROCESSOR = os.uname().machine
COMPILED = f"numpy-2.4.6-{THIS}-{THIS}-manylinux_2_27_{PROCESSOR}.manylinux_2_28_{PROCESSOR}.whl"
CONTENTS = {PIP: b"pip", COMPILED: b"numpy", "rich-15.0.0-py3-none-any.whl": b"rich"}


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock that has these wheels' hashes."""
    path = tmp_path / "requirements.lock"
    lines = [f"{name}==1" for name in ("numpy", "rich")]
    hashes = [f"    --hash=sha256:{hashlib.sha256(content).hexdigest()}" for content in CONTENTS.values()]
    path.write_text("\n".join([*lines, "pip==26.3 \\", " \\\n".join(hashes)]) + "\n")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "had").mkdir()
    for name, content in CONTENTS.items():
        (tmp_path / "had" / name).write_bytes(content)
    wheels.write(tmp_path / "had", tmp_path / "wheels.tar")
    return tmp_path / "wheels.tar"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user of the tests told pip does not count in them."""
    for name in [name for name in os.environ if name.startswith("PIP_") or name == wheels.VARIABLE]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


def test_a_wheels_file_is_unpacked_to_what_it_was_made_of(file: Path, lock: Path, tmp_path: Path) -> None:
    wheels.unpack(file, tmp_path / "unpacked", lock)
    assert {path.name: path.read_bytes() for path in (tmp_path / "unpacked").iterdir()} == CONTENTS


def test_the_same_wheels_are_the_same_file(file: Path, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    for name, content in reversed(CONTENTS.items()):
        (tmp_path / "again" / name).write_bytes(content)
        (tmp_path / "again" / name).chmod(0o600)
    (tmp_path / "again/pip.log").touch()
    wheels.write(tmp_path / "again", tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == file.read_bytes()


def archive(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as made:
        for member in members:
            made.addfile(member, io.BytesIO(b""))
    return path


def link(name: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    return member


@pytest.mark.parametrize(
    "member",
    [
        tarfile.TarInfo(f"../{PIP}"),
        tarfile.TarInfo(f"/{PIP}"),
        tarfile.TarInfo(f"below/{PIP}"),
        tarfile.TarInfo("setup.py"),
        link(PIP, tarfile.SYMTYPE),
        link(PIP, tarfile.LNKTYPE),
        link(PIP, tarfile.DIRTYPE),
        link(PIP, tarfile.FIFOTYPE),
    ],
)
def test_a_member_that_must_not_be_is_refused(member: tarfile.TarInfo, lock: Path, tmp_path: Path) -> None:
    path = archive(tmp_path / "odd", member)
    (tmp_path / "below").mkdir()
    with pytest.raises(MachineError, match=f"odd: '{member.name}' has no place in a wheels file"):
        wheels.unpack(path, tmp_path / "below/unpacked", lock)
    assert not list(tmp_path.rglob(PIP))


def test_a_wheel_that_is_there_twice_is_refused(lock: Path, tmp_path: Path) -> None:
    path = archive(tmp_path / "twice", tarfile.TarInfo(PIP), tarfile.TarInfo(PIP))
    with pytest.raises(MachineError, match="has no place"):
        wheels.unpack(path, tmp_path / "unpacked", lock)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda data: b"a text\n" * 100, "is no wheels file"),
        (lambda data: b"", "is no wheels file"),
        (lambda data: data[:600], "is no whole wheels file|is damaged"),
        (
            lambda data: data.replace(b"rich", b"Rich").replace(b"Rich-", b"rich-"),
            r"rich-15\S+ is damaged, or",
        ),
        (lambda data: data[:10] + b"x" + data[11:], "is no wheels file"),
    ],
)
def test_a_file_that_is_none_or_is_damaged_is_refused(
    damage: Callable[[bytes], bytes], sentence: str, file: Path, lock: Path, tmp_path: Path
) -> None:
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(MachineError, match=sentence):
        wheels.unpack(file, tmp_path / "unpacked", lock)


def test_a_file_that_is_not_there_is_named(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(wheels.VARIABLE, "/nowhere/wheels")
    with pytest.raises(MachineError, match=r"^/nowhere/wheels cannot be read: no such file or directory$"):
        wheels.taken(tmp_path / "unpacked", lock, tmp_path, print)


def test_wheels_of_another_python_are_told_of(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    path = archive(tmp_path / "qjump-mn-wheels-old.tar", tarfile.TarInfo(COMPILED.replace(THIS, "cp310")))
    said: list[str] = []
    assert wheels.taken(tmp_path / "unpacked", lock, checkout, said.append) is None
    here = f"Python 3.{sys.version_info[1]} on {PROCESSOR}"
    assert said == [f"{path} is for Python 3.10 on {PROCESSOR}, not for {here}; it is not taken"]
    monkeypatch.setenv(wheels.VARIABLE, str(path))
    with pytest.raises(MachineError, match=f"not for {here}: write one with  qjump-mn machine wheels FILE"):
        wheels.taken(tmp_path / "unpacked", lock, checkout, print)


@pytest.mark.parametrize("where", ["named", "checkout", "checkout/.."])
def test_the_file_is_taken_where_it_is_looked_for(
    where: str, file: Path, lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    if where == "named":
        monkeypatch.setenv(wheels.VARIABLE, str(file))
    else:
        file = file.rename(tmp_path / where / "qjump-mn-wheels-1.tar").resolve()
    taken = wheels.taken(tmp_path / "unpacked", lock, checkout, print)
    assert taken is not None and taken.samefile(file) and len(list((tmp_path / "unpacked").iterdir())) == 3


def test_the_lock_names_the_pip_that_is_asked_for() -> None:
    assert wheels.pip_of(environment.LOCK).startswith("pip-")


@pytest.mark.slow
def test_an_environment_is_made_of_a_wheels_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(checkouts.small_lock())
    monkeypatch.undo()  # here the real index is asked
    (tmp_path / "had").mkdir()
    installation.gather(tmp_path / "had", lock)
    wheels.write(tmp_path / "had", tmp_path / "wheels.tar")
    monkeypatch.setattr(environment, "LOCK", lock)
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9")
    monkeypatch.setenv(wheels.VARIABLE, str(tmp_path / "wheels.tar"))
    made = environment.build()
    listed = [str(made / "bin/python"), "-I", "-m", "pip", "list", "--format=freeze"]
    packages = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    assert [line.partition("=")[0] for line in packages.splitlines()] == ["msgspec", "pip"]
    assert not (made / "downloads").exists()

    for path in (tmp_path / "had").glob("msgspec-*"):
        path.unlink()
    wheels.write(tmp_path / "had", tmp_path / "wheels.tar")
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "empty"))
    with pytest.raises(MachineError, match=r"wheels\.tar has no wheel of msgspec for this Python: write one"):
        environment.build()


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python of its own that has no pip."""
    venv.create(tmp_path / "bare", symlinks=False, with_pip=False)
    return tmp_path / "bare/bin/python3"


def test_a_python_without_any_pip_is_one_sentence(bare: Path) -> None:
    with pytest.raises(
        MachineError, match=r"has neither ensurepip nor pip: install Debian's python3-venv, or w"
    ):
        installation._pip_of(str(bare))


@pytest.mark.slow
@pytest.mark.parametrize("has_ensurepip", [True, False])
def test_an_environment_is_made_of_the_index(
    has_ensurepip: bool, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    if not has_ensurepip:
        monkeypatch.setattr(installation, "find_spec", lambda name: None)
        monkeypatch.setattr(sys, "executable", str(bare))
        theirs = next(bare.parents[1].glob("lib/python3*/site-packages"))
        shutil.copytree(Path(pip.__file__).parent, theirs / "pip")
    lock = tmp_path / "requirements.lock"
    lock.write_text(checkouts.small_lock())
    (tmp_path / "made").mkdir()
    installation.fill(tmp_path / "made", lock, tmp_path, print)
    packages = tmp_path.glob("made/lib/python3*/site-packages/*.dist-info")
    names = sorted(path.name.partition("-")[0] for path in packages)
    assert [name for name in names if name != "setuptools"] == ["msgspec", "pip"]  # Python 3.11's venv has it
