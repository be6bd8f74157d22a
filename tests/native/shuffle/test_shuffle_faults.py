"""shuffle when nodes go, lie or are asked for twice: the master tells, workers stay."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.native.shuffle import impostor as layout
from tests.native.shuffle.conftest import Workers
from tests.native.shuffle.impostor import CALL, JOB, ORDER, REPORT, Impostor, Ordered, plan, report
from tests.support.native_programs import WAIT_S, Log, Program, Running, free_port

DAY_NS = 86400 * 10**9
SMALL = ["--rounds", "3", "--shuffle", "1000"]


def mapped(what: int, number: int) -> bytes:
    """Says that it computed, when it is to; then nothing more."""
    return report(layout.MAPPED, number) if what == layout.ROUND else b""


def done_at_once(what: int, number: int) -> bytes:
    return report(layout.MAPPED if what == layout.ROUND else layout.REDUCED, number)


def reduced(*copy: int) -> Ordered:
    """Says that it computed, and then that it received this copy."""
    return lambda what, number: mapped(what, number) or report(layout.REDUCED, number, copy)


def master(addresses: list[str], *options: str) -> list[str]:
    return ["master", "--workers", ",".join(addresses), *options]


def still_works(shuffle: Program, addresses: list[str]) -> None:
    assert shuffle.log(*master(addresses, *SMALL, "--aggregate", "1")).end["rounds"] == 3


def failed(
    shuffle: Program, addresses: list[str], output: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    done = shuffle.run(*master(addresses, *SMALL, "--output", str(output), *words))
    assert output.read_text() == "", "no log that could be taken for a complete one"
    return done


@pytest.mark.parametrize(
    ("served", "words"),
    [
        (lambda wanted: 400, "copy from node 3: it ended after 400 of 1000 bytes"),
        (lambda wanted: 0, "copy from node 3: it ended after 0 of 1000 bytes"),
        (lambda wanted: wanted + 1, "copy from node 3: it goes on after 1001 of 1000 bytes"),
    ],
)
def test_a_copy_of_another_length(
    shuffle: Program, workers: Workers, tmp_path: Path, served: Callable[[int], int], words: str
) -> None:
    addresses = workers(2)
    with Impostor(mapped, served) as impostor:
        done = failed(shuffle, [*addresses, impostor.address], tmp_path / "log")
    shuffle.check_refused(done, 1, words)
    still_works(shuffle, addresses)


def test_a_result_of_another_length(shuffle: Program, tmp_path: Path) -> None:
    with Impostor(done_at_once, lambda wanted: 10) as impostor:
        done = failed(shuffle, [impostor.address], tmp_path / "log", "--aggregate", "5000")
    why = "failed in round 0 (it ended after 10 of 5000 bytes)"
    shuffle.check_refused(done, 1, f"worker 1 at {impostor.address} {why}")


@pytest.mark.parametrize(
    ("ordered", "words"),
    [
        (lambda what, number: None, "it hung up"),
        (lambda what, number: report(layout.MAPPED, 7), "it reports copies that were not requested"),
        (lambda what, number: report(layout.MAPPED, number, (0, 0, 0, 2, 1, 0, 0)), "it reports copies that were not requested"),
        *((reduced(*copy), "it reports a copy that was not requested") for copy in (
            (0, 1, 1, 2, 999, 0, 0), (0, 1, 1, 1, 1000, 0, 0), (5, 1, 1, 2, 1000, 0, 0), (0, 1, 3, 2, 1000, 0, 0),
            (0, 2, 1, 2, 1000, 0, 0), (0, 1, 1, 2, 1000, 2, 1))),
        (lambda what, number: report(layout.MAPPED, number, count=65), "it reports 65 copies, more than 64"),
        (lambda what, number: report(7, number), "its report is of kind 7, and 0 was due"),
        (lambda what, number: report(layout.REDUCED, number), "its report is of kind 1, and 0 was due"),
        (lambda what, number: mapped(what, number) * 2, "its report is of kind 0, and "),
        (lambda what, number: report(layout.BROKEN, number, why=b"a reason"), "(a reason)"),
        (lambda what, number: report(layout.BROKEN, number, why=b"y" * 100), "y" * 99),
    ],
)  # fmt: skip
def test_a_worker_that_lies(
    shuffle: Program, workers: Workers, tmp_path: Path, ordered: Ordered, words: str
) -> None:
    addresses = workers(1)
    with Impostor(ordered) as impostor:
        done = failed(shuffle, [*addresses, impostor.address], tmp_path / "log")
    shuffle.check_refused(done, 1, f"worker 2 at {impostor.address} failed in round 0 (")
    assert words in done.stderr
    still_works(shuffle, addresses)


def test_no_worker(shuffle: Program, workers: Workers, tmp_path: Path) -> None:
    addresses = workers(1)
    done = failed(shuffle, [*addresses, f"127.0.0.1:{free_port()}"], tmp_path / "log")
    shuffle.check_refused(done, 1, "failed in round 0 (Connection refused)")
    still_works(shuffle, addresses)


def test_one_master_at_a_time(shuffle: Program, workers: Workers, tmp_path: Path) -> None:
    addresses = workers(2)
    ordered, go_on = threading.Event(), threading.Event()

    def wait(what: int, number: int) -> bytes:
        ordered.set()
        assert go_on.wait(WAIT_S)
        return done_at_once(what, number)

    with Impostor(wait) as impostor:
        options = "--rounds 2 --distribute 0 --aggregate 1000".split()
        with shuffle.started(*master([*addresses, impostor.address], *options)) as first:
            assert ordered.wait(WAIT_S)
            second = failed(shuffle, addresses, tmp_path / "log")
            go_on.set()
            log = first.log()
    shuffle.check_refused(second, 1, "check that it runs and serves no other master")
    assert log.end["rounds"] == 2


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_master_that_is_ended(shuffle: Program, workers: Workers, how: signal.Signals) -> None:
    """In the fourth round, before the third worker reports: what is complete is logged, and the
    others are free for the next job."""
    addresses = workers(2)
    reached = threading.Event()

    def until_the_fourth(what: int, number: int) -> bytes:
        if number == 3:
            reached.set()
            return b""
        copies = [(number, 1, source, 3, 100_000, 0, 0) for source in (1, 2)]
        return mapped(what, number) or report(layout.REDUCED, number, *copies)

    with Impostor(until_the_fourth) as impostor:
        options = "--rounds 1000 --shuffle 100000".split()
        with shuffle.started(*master([*addresses, impostor.address], *options)) as running:
            assert reached.wait(WAIT_S)
            running.send_signal(how)
            done = running.result()
    assert done.stderr == ""
    if how == signal.SIGKILL:
        assert (done.returncode, done.stdout) == (-how, "")
    else:
        log = Log.read(done.stdout)
        assert (done.returncode, log.end["early"], log.end["rounds"]) == (0, 1, 3)
        assert len(log.rows) == 3 * (6 + 1) and log.rows[-1]["end_ns"] < log.end["to_ns"]
    still_works(shuffle, addresses)


@pytest.mark.parametrize(
    "unread", [b"", JOB + ORDER.pack(layout.ROUND, 0) + b"half"], ids=["nothing", "orders"]
)
@pytest.mark.parametrize("gone_first", [True, False])
def test_masters_in_quick_succession(shuffle: Program, unread: bytes, gone_first: bool) -> None:
    """The worker sleeps while one master goes and another comes, so that it learns of both at
    once."""
    with listening(shuffle) as (worker, port), socket.socket() as old, socket.socket() as new:
        old.connect(("127.0.0.1", port))
        old.sendall(CALL)
        with socket.create_connection(("127.0.0.1", port)) as third, suppress(ConnectionResetError):
            third.sendall(CALL)
            assert third.recv(1) == b"", "the old master has the worker"
        worker.send_signal(signal.SIGSTOP)
        old.sendall(unread)
        if gone_first:
            old.close()
        new.connect(("127.0.0.1", port))
        new.sendall(CALL + JOB + ORDER.pack(layout.ROUND, 5))
        old.close()
        worker.send_signal(signal.SIGCONT)
        new.settimeout(WAIT_S)
        assert new.recv(REPORT.size, socket.MSG_WAITALL) == report(layout.MAPPED, 5), (
            "the new one has it"
        )


@contextmanager
def listening(shuffle: Program) -> Iterator[tuple[Running, int]]:
    """A worker and its port."""
    port = free_port()
    with shuffle.started("worker", "--listen", str(port)) as worker:
        worker.wait_for_port("tcp", port)
        yield worker, port


def calls(port: int) -> socket.socket:
    """A master's connection to a worker."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
    connection.sendall(CALL)
    return connection


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        *(({"workers": bad}, f"{bad % 2**32} as number of workers, out of range 1 to 64") for bad in (4096, 65, 0, -1)),
        ({"workers": 3, "node": 4}, "4 as number of this worker, out of range 1 to 3"),
        ({"node": 0}, "0 as number of this worker, out of range 1 to 1"),
        *(({"parallel": bad}, f"{bad} as number of parallel copies, out of range 1 to 64") for bad in (0, 65)),
        *(({"master_port": bad}, f"{bad} as its port, out of range 1 to 65535") for bad in (0, 65536)),
        ({"distribute": -1}, "-1 as bytes to distribute, out of range 0 to 1099511627776"),
        ({"shuffle": 2**40 + 1}, "1099511627777 as bytes to shuffle, out of range 0 to 1099511627776"),
        ({"compute": DAY_NS + 1}, f"{DAY_NS + 1} as time to compute, out of range 0 to {DAY_NS}"),
        ({"compute": 5, "jitter": 6}, "6 as jitter, out of range 0 to 5"),
    ],
)  # fmt: skip
def test_a_master_whose_plan_is_impossible(
    shuffle: Program, numbers: dict[str, int], words: str
) -> None:
    with listening(shuffle) as (worker, port), calls(port) as caller:
        caller.sendall(plan(**{"shuffle": 1} | numbers) + ORDER.pack(layout.SHUFFLE, 0))
        address = f"127.0.0.1:{caller.getsockname()[1]}"
        shuffle.check_refused(worker.result(), 1, f"the master at {address} gives {words}; run")


@pytest.mark.parametrize(
    ("job", "orders", "words"),
    [
        (plan(), ORDER.pack(2, 0), "gives 2 as kind of an order, out of range 0 to 1"),
        (plan(compute=DAY_NS), ORDER.pack(layout.ROUND, 0) + ORDER.pack(layout.ROUND, 7), "orders round 7 while round 0"),
        (plan(compute=DAY_NS), ORDER.pack(layout.SHUFFLE, 0) * 2, "orders round 0 while round 0 is not done"),
    ],
    ids=["kind", "round", "shuffle"],
)  # fmt: skip
def test_a_master_whose_order_is_impossible(
    shuffle: Program, job: bytes, orders: bytes, words: str
) -> None:
    with listening(shuffle) as (worker, port), calls(port) as caller:
        caller.sendall(job + orders)
        done = worker.result()
    shuffle.check_refused(done, 1, words)
    assert done.stderr.startswith("shuffle: the master at 127.0.0.1:")


@pytest.mark.parametrize("wanted", [-1, -(2**63), 2**40 + 1])
def test_a_copy_of_an_impossible_length(shuffle: Program, wanted: int) -> None:
    """Less than nothing would be sent as all of the memory behind what is served."""
    with (
        listening(shuffle) as (worker, port),
        calls(port) as caller,
        socket.create_connection(("127.0.0.1", port)) as other,
    ):
        caller.sendall(JOB + ORDER.pack(layout.ROUND, 0))
        assert caller.recv(REPORT.size, socket.MSG_WAITALL) == report(layout.MAPPED, 0)
        other.sendall(layout.hello(1, 0, 1, 1, 2, wanted % 2**64))
        words = f"the node at 127.0.0.1:{other.getsockname()[1]} wants {wanted} bytes"
        shuffle.check_refused(worker.result(), 1, f"{words}, out of range 0 to 1099511627776")


def test_addresses_that_are_none(shuffle: Program, workers: Workers) -> None:
    """The first copy fails at once: it is told, and no other is begun."""
    addresses = workers(2)
    job = layout.PLAN.pack(1, 64, 1, 1, 0, 1, 0, 0, 0, b"\x63" * 1024)
    with calls(int(addresses[0].split(":")[1])) as caller:
        caller.sendall(job + ORDER.pack(layout.SHUFFLE, 0))
        caller.shutdown(socket.SHUT_WR)
        reports = caller.makefile("rb").read()
    assert len(reports) == REPORT.size and b"Address family not supported" in reports
    still_works(shuffle, addresses)


def test_a_master_that_goes_amid_copies(shuffle: Program, workers: Workers) -> None:
    """The third worker's bytes never end, so that the others are copying when their master is
    killed."""
    addresses = workers(2)
    asked, done = threading.Event(), threading.Event()

    def endless(wanted: int) -> int:
        asked.set()
        done.wait(WAIT_S)
        return 0

    with Impostor(mapped, endless) as impostor:
        with shuffle.started(*master([*addresses, impostor.address], *SMALL)) as running:
            assert asked.wait(WAIT_S)
            running.kill()
        done.set()
    still_works(shuffle, addresses)


def test_strangers_are_turned_away(shuffle: Program, workers: Workers) -> None:
    addresses = workers(2)
    host, port = addresses[0].split(":")
    for text in (b"GET / HTTP/1.1\r\n\r\n" + bytes(100), bytes(56), b"", b"short"):
        # A reset, as it leaves bytes unread.
        with socket.create_connection((host, int(port))) as stranger, suppress(OSError):
            stranger.sendall(text)
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(1) == b"", "it hangs up"
    still_works(shuffle, addresses)


def test_more_strangers_than_places(shuffle: Program, workers: Workers) -> None:
    """Those who connect and say nothing take places until these run out, but no longer than they
    stay."""
    addresses = workers(2)
    host, port = addresses[0].split(":")
    strangers = [socket.create_connection((host, int(port))) for _ in range(300)]
    for stranger in strangers:
        stranger.close()
    still_works(shuffle, addresses)


def test_a_port_that_is_taken(shuffle: Program, workers: Workers) -> None:
    port = workers(1)[0].split(":")[1]
    done = shuffle.run("worker", "--listen", port)
    shuffle.check_refused(done, 1, f"cannot listen on port {port} (Address already in use)")


def test_a_full_log(shuffle: Program, workers: Workers, tmp_path: Path) -> None:
    addresses = workers(2)
    words = "--duration 600000000000 --transfers 8".split()
    done = failed(shuffle, addresses, tmp_path / "log", *words)
    why = "the log of 8 transfers is full in round 2; increase it with --transfers"
    shuffle.check_refused(done, 1, why)
    still_works(shuffle, addresses)


def test_a_log_that_cannot_be_written(shuffle: Program, workers: Workers, tmp_path: Path) -> None:
    missing = str(tmp_path / "none" / "log")
    words = master(workers(2), *SMALL, "--output")
    shuffle.check_refused(shuffle.run(*words, missing), 1, f"cannot write --output {missing}")
    shuffle.check_refused(shuffle.run(*words, "/dev/full"), 1, "No space left")
