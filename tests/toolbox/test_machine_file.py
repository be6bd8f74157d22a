"""The machine as one file: written, unpacked, and files that are none. Its parts are small ones of
ours, but for the toolbox's own Python, which compresses it."""

from __future__ import annotations

import io
import lzma
import os
import random
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from qjump_mn import cache, toolbox
from qjump_mn.cli import machine
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import Tree, arm64, machine_file, machines, processors
from qjump_mn.toolbox.lock import Lock
from qjump_mn.toolbox.machine_file import FACTS, Facts


@pytest.fixture(scope="module")
def tree() -> Tree:
    found = toolbox.found()
    if found is None:
        pytest.skip("the toolbox is not built")
    return found


@pytest.fixture
def parts(tmp_path: Path) -> dict[str, Path]:
    """Members and their files."""
    found = {}
    for name, mode in (("kernel", 0o600), ("initrd", 0o644), ("simulator/native_x86_64", 0o711)):
        path = tmp_path / "parts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random.Random(name).randbytes(5000))
        path.chmod(mode)
        found[name] = path
    return found


def facts_of(parts: dict[str, Path]) -> Facts:
    files = {name: cache.hash_of_file(path) for name, path in parts.items()}
    return Facts(packages=["a=1"], packages_sha256="f", release="7.3.4", files=files)


@pytest.fixture
def written(tree: Tree, parts: dict[str, Path], tmp_path: Path) -> Path:
    path = tmp_path / "machine.tar.xz"
    machine_file.write(parts, facts_of(parts), tree, path)
    return path


def test_a_machine_is_kernel_initramfs_and_simulator(tmp_path: Path) -> None:
    (tmp_path / "module.py").touch()
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/module.pyc").touch()
    found = machine_file.parts(tmp_path / "linux", tmp_path / "cpio", tmp_path)
    assert found == {
        "kernel": tmp_path / "linux",
        "initrd": tmp_path / "cpio",
        "simulator/module.py": tmp_path / "module.py",
    }
    lock = Lock("mn", "trixie", "added", "20260101T000000Z", ("frr",), ())
    more = machine_file.parts(
        tmp_path / "linux",
        tmp_path / "cpio",
        tmp_path,
        packages={lock: tmp_path / "archive"},
        outer=tmp_path / "around",
    ).items()
    assert dict(more - found.items()) == {
        machine_file.packages_of(lock): tmp_path / "archive",
        "outer/kernel": tmp_path / "around/kernel",
        "outer/initrd": tmp_path / "around/initrd",
    }


def test_a_machine_file_is_unpacked_to_what_it_was_made_of(
    written: Path, parts: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "unpacked"
    assert machine_file.unpack(written, folder) == facts_of(parts)
    for name, path in parts.items():
        assert (folder / name).read_bytes() == path.read_bytes()
        assert bool((folder / name).stat().st_mode & 0o100) == name.endswith("x86_64")


def test_the_same_parts_are_the_same_file(
    written: Path, tree: Tree, parts: dict[str, Path], tmp_path: Path
) -> None:
    again = {name: tmp_path / "again" / path.name for name, path in reversed(parts.items())}
    (tmp_path / "again").mkdir()
    for name, path in again.items():
        path.write_bytes(parts[name].read_bytes())
        path.chmod(0o755 if name.endswith("x86_64") else 0o640)
    machine_file.write(again, facts_of(again), tree, tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == written.read_bytes()


def archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with lzma.open(path, "wb") as file, tarfile.open(fileobj=file, mode="w|") as made:
        for member, content in members:
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return path


def facts_member(**files: str) -> tuple[tarfile.TarInfo, bytes]:
    facts = Facts(packages=[], packages_sha256="", release="", files=files)
    return tarfile.TarInfo(FACTS), msgspec.json.encode(facts)


def link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize(
    ("member", "sentence"),
    [
        (tarfile.TarInfo("../escaped"), "'../escaped' has no place in a machine file"),
        (tarfile.TarInfo("/escaped"), "'/escaped' has no place"),
        (tarfile.TarInfo("tree/../../escaped"), "'tree/../../escaped' has no place"),
        (link("tree", "/etc", tarfile.SYMTYPE), "'tree' has no place"),
        (link("kernel", "/etc/passwd", tarfile.LNKTYPE), "'kernel' has no place"),
        (link("kernel", "", tarfile.FIFOTYPE), "'kernel' has no place"),
        (tarfile.TarInfo("unheard"), "machine.json does not tell of 'unheard'"),
    ],
)
def test_forbidden_member_is_refused(
    member: tarfile.TarInfo, sentence: str, tmp_path: Path
) -> None:
    path = archive(tmp_path / "odd", facts_member(kernel="0"), (member, b""))
    with pytest.raises(MachineError, match=sentence):
        machine_file.unpack(path, tmp_path / "below/unpacked")
    assert not list(tmp_path.rglob("escaped"))


def test_a_file_that_is_no_machine_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a text\n")
    with pytest.raises(MachineError, match="text is no whole machine file"):
        machine_file.unpack(tmp_path / "text", tmp_path / "unpacked")
    with pytest.raises(MachineError, match="is no machine file: it is empty"):
        machine_file.unpack(archive(tmp_path / "none"), tmp_path / "unpacked")
    with pytest.raises(MachineError, match=r"it does not begin with machine\.json"):
        machine_file.unpack(
            archive(tmp_path / "other", (tarfile.TarInfo("kernel"), b"")), tmp_path / "unpacked"
        )


def test_members_that_are_missing_or_others_are_named(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "short", facts_member(kernel="0", initrd="0"), (tarfile.TarInfo("initrd"), b"")
    )
    with pytest.raises(MachineError, match="short: initrd is damaged"):
        machine_file.unpack(path, tmp_path / "unpacked")


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.fixture
def reference(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file is the reference machine, and nothing is in the cache."""
    monkeypatch.setattr(machines, "LOCK", tmp_path / "machine.lock")
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    other = tmp_path / "other.tar.xz"
    other.write_bytes(b"another machine")
    machines.name_reference({"x86_64": written, "aarch64": other}, "image")
    monkeypatch.setattr(processors, "here", lambda: "x86_64")
    return written


def test_the_reference_is_taken_from_the_file_that_is_named(
    reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert machines.found() is None and machines.reference() is None and not machines.is_at_hand()
    monkeypatch.setenv(machines.VARIABLE, str(reference))
    assert machines.is_at_hand()
    said: list[str] = []
    folder = machines.reference(said.append)
    assert folder is not None and said == [f"takes the machine from {reference}"]
    assert (folder / "kernel").stat().st_size == 5000 and machines.facts(folder).release == "7.3.4"
    monkeypatch.delenv(machines.VARIABLE)
    assert machines.found() == machines.reference() == folder and machines.is_at_hand()
    status = CliRunner().invoke(machine.app, []).stdout.splitlines()
    assert status[-2:] == [
        f"here       the reference, in {folder}",
        f"           from the file {reference}",
    ]
    assert any("its sources are the reference's" in line for line in status)


def test_file_for_other_hosts_is_refused(reference: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = str(reference.with_name("other.tar.xz"))
    with pytest.raises(
        MachineError, match=r"other\.tar\.xz is the machine for aarch64 hosts, .* is x86_64$"
    ):
        machines.taken(other)
    monkeypatch.setattr(processors, "here", lambda: "aarch64")
    with pytest.raises(
        MachineError, match=r"machine\.tar\.xz is the machine for x86_64 hosts, .* is aarch64$"
    ):
        machines.taken(str(reference))
    with pytest.raises(MachineError, match="is no whole machine file"):
        machines.taken(other)
    monkeypatch.setattr(processors, "here", lambda: "riscv64")
    assert machines.found() is None
    with pytest.raises(
        MachineError, match="is the machine for x86_64 hosts, and this one is riscv64"
    ):
        machines.taken(str(reference))


def test_of_files_beside_the_checkout_the_one_for_this_host_is_taken(
    reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = str(reference.with_name("other.tar.xz"))
    monkeypatch.setattr(machines, "_beside", lambda: iter([other]))
    said: list[str] = []
    assert machines.given(said.append) is None
    assert said[-1] == f"{other} is the machine for aarch64 hosts, and this one is x86_64"
    monkeypatch.setattr(machines, "_beside", lambda: iter([other, str(reference)]))
    said.clear()
    assert machines.given(said.append) == machines.found() is not None
    assert not any("aarch64" in line for line in said)


def test_arm64_parts_count_there_only(reference: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, theirs = machines.read(), arm64.made_of()
    assert lock.files["aarch64"].made_of == theirs and not lock.files["x86_64"].made_of
    changed = {**theirs, "the lock arm64": "another"}
    monkeypatch.setattr(arm64, "made_of", lambda: changed)
    assert machines.differences(lock) == []
    monkeypatch.setattr(processors, "here", lambda: "aarch64")
    assert machines.differences(lock) == ["the lock arm64"]


def test_an_address_is_a_place_too(reference: Path) -> None:
    assert machines.taken(f"file://{reference}") == machines.found()


def test_places_of_the_lock_are_tried_in_turn(
    reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "_beside", lambda: iter(()))
    places = ("file:///nowhere/machine", f"file://{reference}")
    lock = machines.read()
    files = {**lock.files, "x86_64": replace(lock.files["x86_64"], places=places)}
    machines.LOCK.write_bytes(msgspec.json.encode(replace(lock, files=files)))
    said: list[str] = []
    assert machines.reference(said.append) == machines.found() is not None
    assert f"takes the machine from {places[1]}" in said


@pytest.mark.parametrize("damage", [cut, flipped, lambda data: data + b"?"])
def test_any_other_file_is_refused(reference: Path, damage: Callable[[bytes], bytes]) -> None:
    reference.write_bytes(damage(reference.read_bytes()))
    for place in (str(reference), f"file://{reference}"):
        with pytest.raises(
            MachineError, match=r"is not the machine of this checkout: its SHA-256 is "
        ):
            machines.taken(place)
    assert machines.found() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize(
    ("needs", "sentence"), [(300 << 20, " of the 300 MiB that it needs"), (0, "")]
)
def test_a_disk_without_room_for_it_is_one_sentence(
    needs: int, sentence: str, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found out before, or while it is unpacked."""
    monkeypatch.setattr(machines, "_NEEDS_BYTES", needs)
    with small_disk(tmp_path / "cache", "8k") as folder:
        with pytest.raises(
            MachineError, match=rf"^no room for the machine: {folder} has 0 MiB{sentence};"
        ):
            machines.taken(str(reference))
        assert not list(folder.glob("machine/*.tmp-*")) and machines.found() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize("size_bytes", [20_000, 2_000_000])
def test_a_disk_on_which_it_cannot_be_written_is_one_sentence(
    size_bytes: int, tree: Tree, parts: dict[str, Path], tmp_path: Path
) -> None:
    """What is compressed fits into the pipe to the compressor, or not."""
    parts["kernel"].write_bytes(random.Random(1).randbytes(size_bytes))
    sentence = rf"^{tmp_path}/small/m cannot be written: .*No space left on device$"
    with (
        small_disk(tmp_path / "small", "8k") as folder,
        pytest.raises(MachineError, match=sentence),
    ):
        machine_file.write(parts, facts_of(parts), tree, folder / "m")


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tiny", str(folder)], check=True
    )
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_file_that_is_not_there_is_named(reference: Path) -> None:
    for place in ("/nowhere/machine", "file:///nowhere/machine"):
        with pytest.raises(
            MachineError, match=r"^(file://)?/nowhere/machine can(not| not) be (read|had): "
        ):
            machines.taken(place)


def test_other_sources_are_another_machine(
    reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.taken(str(reference))
    lock = machines.read()
    name = "Linux"
    assert name in lock.made_of and not machines.differences(lock)
    changed = {**machines.made_of(), name: "0" * 64}
    monkeypatch.setattr(machines, "made_of", lambda: changed)
    assert machines.differences(lock) == [name]
    assert machines.found() is None and machines.given() is None


def test_the_reference_machine_is_made_of_this_checkout() -> None:
    lock = machines.read()
    assert machines.differences(lock) == []
    assert lock.files["aarch64"].made_of == arm64.made_of()
    assert lock.files.keys() == {one.name for one in processors.ALL}
    assert all(file.size_bytes < 100 << 20 for file in lock.files.values())
