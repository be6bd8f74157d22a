"""Mirrors that hang: silent, slow or broken servers of our own, with real sockets and a shorter
patience."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from qjump_mn.errors import MachineError
from qjump_mn.toolbox import download, machines, packages
from qjump_mn.toolbox.lock import Lock, Locked, Package

Answer = Callable[[socket.socket], None]
HEAD = b"HTTP/1.0 200 OK\r\nContent-Length: 5000\r\n\r\n"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "SILENT_S", 0.3)


@contextlib.contextmanager
def served(answer: Answer) -> Iterator[str]:
    """The address of a server that does this with each connection."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=100))
        ended = threading.Event()

        def converse(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                connection.recv(10_000)
                answer(connection)

        def serve() -> None:
            with contextlib.suppress(OSError):
                while not ended.is_set():
                    threading.Thread(
                        target=converse, args=(listening.accept()[0],), daemon=True
                    ).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)


def silent(connection: socket.socket) -> None:
    connection.recv(1)  # until the other side is tired of it


def stuck(connection: socket.socket) -> None:
    connection.sendall(HEAD + bytes(100))
    connection.recv(1)


def trickling(connection: socket.socket) -> None:
    connection.sendall(HEAD)
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def broken(connection: socket.socket) -> None:
    connection.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")


def cut(connection: socket.socket) -> None:
    connection.sendall(HEAD + bytes(100))


def got(address: str) -> bytes:
    return b"".join(download.chunks(address, 5000))


@pytest.mark.parametrize("answer", [silent, stuck, trickling])
def test_who_keeps_us_waiting_is_given_up(answer: Answer) -> None:
    with served(answer) as address, pytest.raises(download.FetchError) as raised:
        got(address)
    assert raised.value.was_silent and not raised.value.is_final


@pytest.mark.parametrize(
    ("address", "is_final"),
    [
        ("http://127.0.0.1:9/file", False),
        ("http://nowhere.invalid/file", True),
        ("file:///nowhere/file", True),
        ("http://[::1/file", True),
        ("no address", True),
    ],
)
def test_who_is_not_there_is_no_silent_one(address: str, is_final: bool) -> None:
    with pytest.raises(download.FetchError) as raised:
        got(address)
    assert not raised.value.was_silent
    # A name service that does not answer may answer later.
    assert raised.value.is_final == is_final or "name resolution" in str(raised.value)


def test_an_answer_that_is_none_is_told() -> None:
    with served(broken) as address, pytest.raises(download.FetchError):
        got(address)


def lock_of(number: int) -> Lock:
    one = Locked(Package("p", "1", "all"), 5000, "0" * 64, "debian/pool/main/p_1_all.deb")
    have = tuple(
        replace(one, path=f"debian/pool/main/p{index}_1_all.deb") for index in range(number)
    )
    return Lock("tiny", "sid", "extract", "20261123T120000Z", ("p",), have)


@pytest.mark.parametrize("answer", [silent, stuck, trickling])
def test_a_mirror_and_an_archive_that_hang_are_waited_for_once_and_not_with_every_package(
    answer: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, said, asked = lock_of(400), list[str](), list[int]()

    def counting(connection: socket.socket) -> None:
        asked.append(1)
        answer(connection)

    with served(counting) as mirror, served(counting) as archive:
        monkeypatch.setenv("QJUMP_MN_MIRROR", f"{mirror}/debian")
        monkeypatch.setenv("QJUMP_MN_ARCHIVE", archive)
        with pytest.raises(packages.GoneError, match=r"^400 of 400 packages "):
            packages.gather(lock, tmp_path / "had", said.append)
    # Not with every package, of which each would be asked for four times.
    assert 0 < len(asked) < 400
    hosts = [address.removeprefix("http://") for address in (mirror, archive)]
    assert said[1:] == [f"{host} does not answer, and is not asked any more" for host in hosts]


def test_mirror_that_cuts_short_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[None] = []

    def counted(connection: socket.socket) -> None:
        asked.append(None)
        cut(connection)

    monkeypatch.setattr(packages, "_PAUSES_S", (0.0, 0.0, 0.0, 0.0))
    with served(counted) as mirror:
        monkeypatch.setenv("QJUMP_MN_MIRROR", f"{mirror}/debian")
        monkeypatch.setenv("QJUMP_MN_ARCHIVE", "")
        with pytest.raises(packages.GoneError, match=r"^3 of 3 packages "):
            packages.gather(lock_of(3), tmp_path / "had", print)
    assert len(asked) == 12


def test_an_answer_from_time_to_time_keeps_a_slow_host() -> None:
    silence, address = download.Silence(), "http://slow.example/debian"
    for _ in range(3):
        for _ in range(download.AT_ONCE - 1):
            assert not silence.note(address, was_silent=True)
        assert not silence.note(address, was_silent=False) and not silence.keeps(address)
    ended = [silence.note(address, was_silent=True) for _ in range(download.AT_ONCE + 1)]
    assert ended.count(True) == 1 and silence.keeps(address)
    assert not silence.keeps("http://other.example/debian")


@pytest.mark.parametrize("answer", [silent, stuck, trickling, broken])
def test_a_machine_whose_place_hangs_is_one_sentence(
    answer: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    with (
        served(answer) as address,
        pytest.raises(MachineError, match=rf"^{address}/m can(not| not) be had: "),
    ):
        machines.taken(f"{address}/m")
    assert machines.found() is None and not list((tmp_path / "cache").rglob("*.tmp-*"))
