"""memload against a server that misbehaves: nothing is lost from the log, nothing is waited for in
vain, every failure is told."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.native.memload import misbehaving
from tests.native.memload.misbehaving import GET, SET, Request, Server, reply, well
from tests.support.native_programs import WAIT_S, Log, Program, free_port

MS = 10**6
SMALL = f"--keys 3 --value-bytes 16 --linger {60_000 * MS}".split()
OPEN = [*SMALL, *f"--rate 1000 --duration {50 * MS}".split()]


def schedule(log: Log) -> list[int]:
    return [row["due_ns"] - log.end["from_ns"] for row in log.rows]


def test_what_is_sent_is_what_is_logged(memload: Program) -> None:
    with Server(3, well) as server:
        log = memload.log("--server", server.address, *OPEN, "--get-fraction", "0.5")
    stored, asked = server.requests[:3], server.requests[3:]
    assert [(request.opcode, request.key, request.value) for request in stored] == [
        (SET, b"k" * 56 + b"%08x" % i, b"v" * 16) for i in range(3)
    ]
    assert [request.opcode for request in asked] == [row["op"] for row in log.rows]
    assert {request.key for request in asked} == {request.key for request in stored}
    assert {request.value for request in asked if request.opcode == SET} == {b"v" * 16}


def test_late_answers_hold_nothing_back(memload: Program) -> None:
    """The server answers no request before the last one is due: each request still counts from when
    it was due."""
    with Server(3, well) as server:
        expected = schedule(memload.log("--server", server.address, *OPEN))
    gate = threading.Event()

    def answer(request: Request) -> list[bytes]:
        if request.number == 0:
            gate.wait(0.1)  # twice the duration, by whatever clock
        return well(request)

    with Server(3, answer) as server:
        log = memload.log("--server", server.address, *OPEN)
    assert schedule(log) == expected
    assert log.rows[0]["done_ns"] > log.rows[-1]["due_ns"], "this test tests something"
    assert all(row["done_ns"] <= later["sent_ns"] for row, later in pairwise(log.rows))
    assert log.end["answered"] == log.end["rows"]


def test_free_connections_take_turns(memload: Program) -> None:
    with Server(3, well) as server:
        log = memload.log("--server", server.address, *OPEN, "--connections", "4")
    assert server.connections == 4 and {row["connection"] for row in log.rows} == {0, 1, 2, 3}


def test_requests_without_an_answer(memload: Program) -> None:
    with Server(3, lambda request: well(request) if request.number < 5 else []) as server:
        log = memload.log("--server", server.address, *OPEN, "--linger", "0", "--connections", "2")
    sent = [row for row in log.rows if row["sent_ns"]]
    # Each connection waits for one answer.
    assert len(sent) == log.end["sent"] and log.end["answered"] + 2 == len(sent) < len(log.rows)
    assert log.end["answered"] == sum(row["done_ns"] > 0 for row in log.rows) <= 5
    for row in log.rows:
        assert row["status"] == (0 if row["done_ns"] else 3)
        assert row["sent_ns"] >= row["due_ns"] or row["sent_ns"] == row["done_ns"] == 0
    assert len({row["op"] for row in log.rows}) == 2, "a request that was not sent has one too"


@pytest.mark.parametrize(
    ("answer", "status", "total"),
    [
        (reply(GET, misbehaving.NOT_FOUND, value=b"Not found"), 1, "misses"),
        (reply(GET, misbehaving.NO_MEMORY, value=b"Out of memory"), 2, "errors"),
        (reply(GET, extras=bytes(4), value=b"short"), 2, "errors"),
    ],
    ids=["miss", "error", "length"],
)
def test_bad_answers_are_counted(memload: Program, answer: bytes, status: int, total: str) -> None:
    def every_fourth_get(request: Request) -> list[bytes]:
        return well(request) if request.number % 4 or request.opcode == SET else [answer]

    with Server(3, every_fourth_get) as server:
        log = memload.log("--server", server.address, *OPEN)
    bad = [number for number, row in enumerate(log.rows) if row["status"] == status]
    gets = [number for number in range(0, len(log.rows), 4) if log.rows[number]["op"] == 0]
    assert bad == gets != []
    assert log.end[total] == len(bad) and log.end["answered"] == len(log.rows)
    assert {row["status"] for row in log.rows} == {0, status}


def test_answers_in_pieces(memload: Program) -> None:
    with Server(3, lambda request: [bytes([byte]) for byte in well(request)[0]]) as server:
        options = f"--rate 400 --duration {50 * MS} --connections 2".split()
        log = memload.log("--server", server.address, *SMALL, *options)
    assert log.rows and {row["status"] for row in log.rows} == {0}


def ended_early(memload: Program, how: signal.Signals, silent_from: int) -> Log:
    """The log of a run that was sent a signal when request `silent_from`, which is not answered,
    had come."""
    come = threading.Event()

    def answer(request: Request) -> list[bytes]:
        if request.number >= silent_from:
            come.set()
            return []
        return well(request)

    words = [*SMALL, "--closed", "--duration", str(600_000 * MS)]
    with (
        Server(3, answer) as server,
        memload.started("--server", server.address, *words) as process,
    ):
        assert come.wait(WAIT_S)
        return process.ended(how)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run(memload: Program, how: signal.Signals) -> None:
    log = ended_early(memload, how, 10)
    assert [log.end[name] for name in ("early", "rows", "sent", "answered")] == [1, 11, 11, 10]
    assert log.rows[-1]["sent_ns"] <= log.end["to_ns"] < log.end["from_ns"] + 600_000 * MS


def test_a_signal_before_the_run(memload: Program) -> None:
    log = ended_early(memload, signal.SIGTERM, -2)
    assert (log.rows, log.end["early"], log.end["from_ns"], log.end["to_ns"]) == ([], 1, 0, 0)


def failed(
    memload: Program, server: Server, output: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    done = memload.run("--server", server.address, *OPEN, "--output", str(output), *words)
    assert output.read_text() == "", "no log that could be taken for a complete one"
    return done


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (None, "the server closed it"),
        ([b"ERROR Too many open connections\r\n"], "not an answer in memcached's binary protocol"),
        ([reply(7)], "not an answer in memcached's binary protocol"),
        ([reply(SET) + reply(GET), reply(GET)], "not an answer in memcached's binary protocol"),
    ],
)
def test_a_broken_connection(
    memload: Program, output: Path, pieces: list[bytes] | None, words: str
) -> None:
    with Server(3, lambda request: pieces if request.number == 4 else well(request)) as server:
        done = failed(memload, server, output, "--get-fraction", "1")
    memload.check_refused(done, 1, f"connection 0 to {server.address} failed ({words})")


def reset_at(*numbers: int) -> Callable[[Request], list[bytes]]:
    """Answer well, but reset the connection instead of answering the requests of ``numbers``."""

    def answer(request: Request) -> list[bytes]:
        if request.number in numbers:
            raise ConnectionResetError
        return well(request)

    return answer


@pytest.mark.parametrize("loop", ["--rate 1000", f"--closed --think {MS}"])
def test_a_connection_that_is_reset_is_replaced(memload: Program, loop: str) -> None:
    words = [*SMALL, *loop.split(), *f"--duration {50 * MS} --connections 2".split()]
    with Server(3, reset_at(4, 9)) as server:
        log = memload.log("--server", server.address, *words)
    assert server.connections == 4
    broken = [row for row in log.rows if row["status"] == 4]
    assert len(broken) == 2 and all(row["sent_ns"] and not row["done_ns"] for row in broken)
    answered = [row for row in log.rows if row["done_ns"]]
    assert len(answered) == len(log.rows) - 2 == log.end["answered"] > 9
    assert {row["status"] for row in answered} == {0}
    assert {row["connection"] for row in answered[-10:]} == {0, 1}, "both connections go on"


def test_a_reset_before_the_load(memload: Program, output: Path) -> None:
    with Server(3, reset_at(-2)) as server:
        done = failed(memload, server, output)
    memload.check_refused(done, 1, f"connection 0 to {server.address} failed (Connection reset")


@pytest.mark.parametrize("extra", [b"x", bytes(70_000)], ids=len)
def test_more_than_an_answer(memload: Program, output: Path, extra: bytes) -> None:
    def answer(request: Request) -> list[bytes]:
        return [well(request)[0] + extra * (request.number == 4)]

    with Server(3, answer) as server:
        done = failed(memload, server, output)
    memload.check_refused(done, 1, "an answer longer than its header says")


def test_a_second_answer(memload: Program, output: Path) -> None:
    """It comes with the first or, as here mostly, after it, when nothing is asked: both is
    noticed."""
    words = f"--closed --think {1_000 * MS} --duration {60_000 * MS} --output {output}".split()
    with Server(3, lambda request: well(request) * (1 + (request.number == 0))) as server:
        done = memload.run("--server", server.address, *SMALL, *words)
    memload.check_refused(done, 1, "failed (an answer ")


def test_keys_that_are_not_stored(memload: Program, output: Path) -> None:
    with Server(3, lambda request: [reply(SET, misbehaving.NO_MEMORY)]) as server:
        done = failed(memload, server, output)
    memload.check_refused(done, 1, f"{server.address} did not store a key (status 0x82)")


def test_no_server(memload: Program) -> None:
    done = memload.run("--server", f"127.0.0.1:{free_port()}", *OPEN)
    memload.check_refused(done, 1, "failed (Connection refused)")


def test_a_full_log(memload: Program) -> None:
    with Server(3, well) as server:
        words = f"--closed --duration {600_000 * MS} --requests 20".split()
        done = memload.run("--server", server.address, *SMALL, *words)
        memload.check_refused(done, 1, "the log of 20 requests is full")
        assert len(server.requests) == 3 + 20
        done = memload.run("--server", server.address, *OPEN, "--requests", "20")
        memload.check_refused(done, 1, "the log of 20 requests is too short for this rate and time")
        assert len(server.requests) == 3 + 20, "that is known before anything is sent"


def test_a_log_that_cannot_be_written(memload: Program, tmp_path: Path) -> None:
    with Server(3, well) as server:
        missing = tmp_path / "none" / "log"
        done = memload.run("--server", server.address, *OPEN, "--output", str(missing))
        memload.check_refused(done, 1, f"cannot write --output {missing} (No such file")
        assert not server.requests, "that is known before anything is sent"
        done = memload.run("--server", server.address, *OPEN, "--output", "/dev/full")
        memload.check_refused(done, 1, "cannot write --output /dev/full (No space left")
