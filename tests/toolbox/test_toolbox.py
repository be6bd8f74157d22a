"""Trees of locked packages: what a lock says, and where its packages are had from.

The mirror is one of ours, on this machine; it has packages that dpkg-deb makes here.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from qjump_mn.errors import MachineError, UsageError
from qjump_mn.toolbox import Tree, make_tree, packages, processors, sources
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox.lock import Lock, Locked, Package
from qjump_mn.toolbox.processors import Processor

NAMES = ("first", "second", "third")
TIME = "20261123T120000Z"
POOL = "pool/main"


def made(folder: Path, name: str, version: str = "1.0") -> Locked:
    """A package in the pool of a mirror, as a lock has it."""
    source = folder.parent / f"source-{name}-{version}"
    (source / "DEBIAN").mkdir(parents=True)
    fields = {"Package": name, "Version": version, "Architecture": "all", "Maintainer": "a <a@b.c>"}
    text = "".join(
        f"{key}: {value}\n" for key, value in {**fields, "Description": "a package"}.items()
    )
    (source / "DEBIAN/control").write_text(text)
    path = folder / "debian" / POOL / f"{name}_{version}_all.deb"
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", str(source), str(path)],
        check=True,
        capture_output=True,
    )
    data = path.read_bytes()
    place = f"debian/{POOL}/{path.name}"
    return Locked(Package(name, version, "all"), len(data), hashlib.sha256(data).hexdigest(), place)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a web server that is the only mirror, and, below `archive`, the archive of old
    packages."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setenv(
            "QJUMP_MN_MIRROR", f"deb {address}/debian sid main\n{address}/debian-security"
        )
        monkeypatch.setenv("QJUMP_MN_ARCHIVE", f"{address}/archive")
        yield folder
        server.shutdown()


@pytest.fixture
def lock(served: Path) -> Lock:
    have = tuple(made(served, name) for name in NAMES)
    return Lock("tiny", "sid", "extract", TIME, NAMES, have)


def gathered(lock: Lock, folder: Path) -> tuple[list[str], list[str]]:
    """The files that come, and what is said."""
    said: list[str] = []
    packages.gather(lock, folder, said.append)
    return sorted(path.name for path in folder.iterdir()), said


def moved_to_archive(served: Path, one: Locked, time: str = TIME) -> None:
    target = served / "archive" / one.archive / time / one.in_archive
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(served / one.path, target)


def test_every_lock_of_the_checkout_can_be_read_and_written_again() -> None:
    for name in locks.names():
        lock = locks.read(name)
        assert lock.have and lock.ask and lock.suite, name
        assert lock.text == locks.path_of(name).read_text()
        wanted = {re.split("[/:]", ask)[0] for ask in lock.ask}
        assert wanted <= {one.package.name for one in lock.have}
        assert {one.archive for one in lock.have} <= {"debian", "debian-security"}


def test_a_lock_says_its_architecture_where_it_is_another() -> None:
    lock = locks.read("toolbox")
    assert lock.architecture == "amd64" and "architecture" not in lock.text
    assert "\narchitecture arm64\n" in replace(lock, architecture="arm64").text


@pytest.mark.parametrize(
    ("processor", "sentence"),
    [
        ("x86_64", "^$"),
        ("aarch64",
         "^this host is aarch64, and .* on x86_64 only: .* export --for arm64 FILE`, then set "
         "QJUMP"),
        ("riscv64", "^the machine runs on x86_64 and aarch64 hosts; this one is riscv64$"),
    ],
)  # fmt: skip
def test_where_nothing_is_built_it_is_said_what_to_do(
    processor: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processors, "here", lambda: processor)
    assert re.match(sentence, make_tree.refusal())


def test_a_processor_has_the_kernels_name_and_debians() -> None:
    for one in processors.ALL:
        assert processors.named(one.name) == processors.named(one.debian) == one
    with pytest.raises(UsageError, match="no machine for 'mips' hosts: there are x86_64 and arm64"):
        processors.named("mips")


@pytest.mark.parametrize("processor", processors.ALL)
def test_program_starts_by_its_trees_loader(processor: Processor, tmp_path: Path) -> None:
    assert Tree(tmp_path).processor is processors.X86_64
    (tmp_path / processor.loader).parent.mkdir(parents=True)
    (tmp_path / processor.loader).touch()
    loader, *_, libraries, program, argument = Tree(tmp_path).program("usr/bin/true", "x")
    assert loader == str(tmp_path / processor.loader) and libraries == str(
        tmp_path / processor.libraries
    )
    assert (program, argument) == (str(tmp_path / "usr/bin/true"), "x")


@pytest.mark.parametrize(
    "line",
    [
        "want dash",
        "have dash 1 amd64",
        f"have dash 1 amd64 x {'0' * 64} debian/pool/dash.deb",
        f"have dash 1 amd64 5 {'0' * 63} debian/pool/dash.deb",
        f"have dash 1 amd64 5 {'0' * 64} /etc/dash.deb",
        f"have dash 1 amd64 5 {'0' * 64} debian/../../dash.deb",
    ],
)
def test_broken_line_is_named(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "FOLDER", tmp_path)
    (tmp_path / "odd.lock").write_text(f"suite sid\n{line}\n")
    with pytest.raises(MachineError, match=r"odd\.lock:2: this is no line of a lock: "):
        locks.read("odd")


def test_packages_come_from_the_mirror_with_apts_list(lock: Lock, tmp_path: Path) -> None:
    files, said = gathered(lock, tmp_path / "had")
    assert files == ["Packages", "Release", *(f"{name}_1.0_all.deb" for name in NAMES)]
    assert said == ["getting 3 packages as they are locked, 0 MB"]
    text = (tmp_path / "had/Packages").read_text()
    for one in lock.have:
        name = one.package.name
        assert f"Package: {name}\n" in text and f"Filename: ./{name}_1.0_all.deb\n" in text
        assert f"Size: {one.size_bytes}\nSHA256: {one.sha256}\n" in text


def test_archive_has_what_left_the_mirror(lock: Lock, served: Path, tmp_path: Path) -> None:
    moved_to_archive(served, lock.have[1])
    files, said = gathered(lock, tmp_path / "had")
    assert len(files) == 5 and said[1:] == ["1 of them from the archive of old packages"]
    archive = os.environ["QJUMP_MN_ARCHIVE"]
    mirror = archive.replace("archive", "debian")
    assert packages.gather(lock, tmp_path / "again", said.append) == (
        f"3 packages from {mirror}, {mirror}-security, 1 of them from the archive {archive}"
    )


def test_a_package_that_is_nowhere_is_named(lock: Lock, served: Path, tmp_path: Path) -> None:
    moved_to_archive(served, lock.have[1], "20250101T000000Z")
    with pytest.raises(
        packages.GoneError, match=r"^1 of 3 packages .* 'tiny' .* such as second 1\.0$"
    ):
        gathered(lock, tmp_path / "had")


def test_newer_version_does_not_replace_the_locked_one(
    lock: Lock, served: Path, tmp_path: Path
) -> None:
    (served / lock.have[0].path).unlink()
    made(served, "first", "1.1")
    with pytest.raises(packages.GoneError, match=r"such as first 1\.0"):
        gathered(lock, tmp_path / "had")


@pytest.mark.parametrize("damage", ["flipped", "cut", "longer"])
def test_a_damaged_file_is_not_taken(lock: Lock, served: Path, tmp_path: Path, damage: str) -> None:
    one = lock.have[2]
    path = served / one.path
    whole = path.read_bytes()
    path.write_bytes(
        {"flipped": whole[:-1] + b"?", "cut": whole[:-1], "longer": b"?" + whole}[damage]
    )
    with pytest.raises(packages.GoneError, match=r"such as third 1\.0"):
        gathered(lock, tmp_path / "had")
    target = served / "archive/debian" / TIME / one.in_archive
    target.parent.mkdir(parents=True)
    target.write_bytes(whole)
    assert gathered(lock, tmp_path / "again")[1][1:] == [
        "1 of them from the archive of old packages"
    ]


def test_without_a_mirror_all_of_them_are_nowhere(
    lock: Lock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QJUMP_MN_MIRROR", "http://127.0.0.1:9/debian")
    monkeypatch.setenv("QJUMP_MN_ARCHIVE", "")
    with pytest.raises(packages.GoneError, match=r"^3 of 3 packages "):
        gathered(lock, tmp_path / "had")


def test_folder_is_a_mirror(
    lock: Lock, served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QJUMP_MN_MIRROR", f"deb [trusted=yes] file://{served}/debian sid main")
    assert len(gathered(lock, tmp_path / "had")[0]) == 5


def test_a_source_package_is_found_at_the_mirror_and_unpacked(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By apt, as `machine lock` does it: a list of sources names the archive and its hash."""
    pool = served / "debian/pool/main/t/tiny"
    pool.mkdir(parents=True)
    (tmp_path / "tiny-1.0").mkdir()
    (tmp_path / "tiny-1.0/README").write_text("tiny\n")
    archive = pool / "tiny_1.0.orig.tar.xz"
    subprocess.run(["tar", "-cJf", str(archive), "-C", str(tmp_path), "tiny-1.0"], check=True)
    (pool / "tiny_1.0-1.dsc").write_text("Source: tiny\n")
    files = [
        (hashlib.sha256(path.read_bytes()).hexdigest(), path) for path in sorted(pool.iterdir())
    ]
    listed = "".join(f" {sha256} {path.stat().st_size} {path.name}\n" for sha256, path in files)
    stanza = f"Package: tiny\nBinary: tiny\nVersion: 1.0-1\nDirectory: pool/main/t/tiny\nChecksums-Sha256:\n{listed}"
    (served / "debian/Sources").write_text(f"{stanza}\n")
    release = hashlib.sha256((served / "debian/Sources").read_bytes()).hexdigest()
    size = (served / "debian/Sources").stat().st_size
    (served / "debian/Release").write_text(f"Codename: sid\nSHA256:\n {release} {size} Sources\n")
    mirror = re.sub(
        r"deb (\S+) sid main\n.*", r"deb [trusted=yes] \1 ./", os.environ["QJUMP_MN_MIRROR"]
    )
    asked = Lock("tiny", "sid", sources.VARIANT, "", ("tiny",), ())
    with monkeypatch.context() as patch:
        patch.setenv("QJUMP_MN_MIRROR", mirror)
        lock = sources.newest(asked, TIME)
    (one,) = lock.have
    assert (one.package, one.sha256) == (Package("tiny", "1.0-1", "source"), files[1][0])
    assert one.path == "debian/pool/main/t/tiny/tiny_1.0.orig.tar.xz"
    monkeypatch.setattr(locks, "FOLDER", tmp_path)
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "tiny.lock").write_text(lock.text)
    assert (sources.unpacked("tiny") / "README").read_text() == "tiny\n"
