"""shuffle when nodes go, lie or are asked for twice: the master tells, workers stay."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.native.shuffle.conftest import Workers
from tests.native.shuffle.impostor import (
    BROKEN,
    CALL,
    HELLO,
    JOB,
    MAPPED,
    ORDER,
    PLAN,
    REDUCED,
    REPORT,
    ROUND,
    SHUFFLE,
    Impostor,
    Ordered,
    plan,
    report,
)
from tests.support.native_programs import WAIT_S, Log, Program, free_port

DAY_NS = 86400 * 10**9
SMALL = ["--rounds", "3", "--shuffle", "1000"]


def mapped(what: int, number: int) -> bytes:
    """Says that it computed, when it is to; then nothing more."""
    return report(MAPPED, number) if what == ROUND else b""


def reduced(copy: tuple[int, ...]) -> Ordered:
    """Says that it computed, and then that it received this copy."""
    return lambda what, number: mapped(what, number) or report(REDUCED, number, copy)


def still_works(shuffle: Program, addresses: list[str]) -> None:
    assert (
        shuffle.log("master", "--workers", ",".join(addresses), *SMALL, "--aggregate", "1").end[
            "rounds"
        ]
        == 3
    )


def failed(
    shuffle: Program, addresses: list[str], output: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    done = shuffle.run(
        "master", "--workers", ",".join(addresses), *SMALL, "--output", str(output), *words
    )
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
    with Impostor(
        lambda what, number: report(MAPPED if what == ROUND else REDUCED, number), lambda wanted: 10
    ) as impostor:
        done = failed(shuffle, [impostor.address], tmp_path / "log", "--aggregate", "5000")
    shuffle.check_refused(
        done,
        1,
        f"worker 1 at {impostor.address} failed in round 0 (it ended after 10 of 5000 bytes)",
    )


@pytest.mark.parametrize(
    ("ordered", "words"),
    [
        (lambda what, number: None, "it hung up"),
        (lambda what, number: report(MAPPED, 7), "it reports copies that were not requested"),
        (
            lambda what, number: report(MAPPED, number, (0, 0, 0, 2, 1, 0, 0)),
            "it reports copies that were not requested",
        ),
        (
            lambda what, number: (
                mapped(what, number) or report(REDUCED, number, (0, 1, 1, 2, 999, 0, 0))
            ),
            "it reports a copy that was not requested",
        ),
        (
            lambda what, number: (
                mapped(what, number) or report(REDUCED, number, (0, 1, 1, 1, 1000, 0, 0))
            ),
            "it reports a copy that was not requested",
        ),
        (
            lambda what, number: (
                mapped(what, number) or report(REDUCED, number, (5, 1, 1, 2, 1000, 0, 0))
            ),
            "it reports a copy that was not requested",
        ),
        (reduced((0, 1, 3, 2, 1000, 0, 0)), "it reports a copy that was not requested"),
        (reduced((0, 2, 1, 2, 1000, 0, 0)), "it reports a copy that was not requested"),
        (reduced((0, 1, 1, 2, 1000, 2, 1)), "it reports a copy that was not requested"),
        (
            lambda what, number: report(MAPPED, number, count=65),
            "it reports 65 copies, more than 64",
        ),
        (lambda what, number: report(7, number), "its report is of kind 7, and 0 was due"),
        (lambda what, number: report(REDUCED, number), "its report is of kind 1, and 0 was due"),
        (lambda what, number: mapped(what, number) * 2, "its report is of kind 0, and "),
        (lambda what, number: report(BROKEN, number, why=b"a reason"), "(a reason)"),
        (lambda what, number: report(BROKEN, number, why=b"y" * 100), "y" * 99),
    ],
)
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
        return report(MAPPED if what == ROUND else REDUCED, number)

    with Impostor(wait) as impostor:
        words = [
            "--workers",
            ",".join([*addresses, impostor.address]),
            "--rounds",
            "2",
            "--distribute",
            "0",
            "--aggregate",
            "1000",
        ]
        with shuffle.started("master", *words) as first:
            assert ordered.wait(WAIT_S)
            second = failed(shuffle, addresses, tmp_path / "log")
            go_on.set()
            text, error = first.communicate(timeout=WAIT_S)
    shuffle.check_refused(second, 1, "check that it runs and serves no other master")
    assert (first.returncode, error, Log.read(text).end["rounds"]) == (0, "", 2)


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
        return mapped(what, number) or report(REDUCED, number, *copies)

    with Impostor(until_the_fourth) as impostor:
        words = [
            "--workers",
            ",".join([*addresses, impostor.address]),
            "--rounds",
            "1000",
            "--shuffle",
            "100000",
        ]
        with shuffle.started("master", *words) as master:
            assert reached.wait(WAIT_S)
            master.send_signal(how)
            text, error = master.communicate(timeout=WAIT_S)
    assert error == ""
    if how == signal.SIGKILL:
        assert (master.returncode, text) == (-how, "")
    else:
        log = Log.read(text)
        assert (master.returncode, log.end["early"], log.end["rounds"]) == (0, 1, 3)
        assert len(log.rows) == 3 * (6 + 1) and log.rows[-1]["end_ns"] < log.end["to_ns"]
    still_works(shuffle, addresses)


@pytest.mark.parametrize(
    "unread", [b"", JOB + ORDER.pack(ROUND, 0) + b"half"], ids=["nothing", "orders"]
)
@pytest.mark.parametrize("gone_first", [True, False])
def test_masters_in_quick_succession(shuffle: Program, unread: bytes, gone_first: bool) -> None:
    """The worker sleeps while one master goes and another comes, so that it learns of both at
    once."""
    port = free_port()
    with (
        shuffle.started("worker", "--listen", str(port)) as worker,
        socket.socket() as old,
        socket.socket() as new,
    ):
        worker.wait_for_port("tcp", port)
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
        new.sendall(CALL + JOB + ORDER.pack(ROUND, 5))
        old.close()
        worker.send_signal(signal.SIGCONT)
        new.settimeout(WAIT_S)
        assert new.recv(REPORT.size, socket.MSG_WAITALL) == report(MAPPED, 5), "the new one has it"


def calls(port: int) -> socket.socket:
    """A master's connection to a worker."""
    master = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
    master.sendall(CALL)
    return master


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"workers": 4096}, "gives 4096 as number of workers, out of range 1 to 64"),
        ({"workers": 65}, "gives 65 as number of workers, out of range 1 to 64"),
        ({"workers": 0}, "gives 0 as number of workers, out of range 1 to 64"),
        ({"workers": -1}, "gives 4294967295 as number of workers, out of range 1 to 64"),
        ({"workers": 3, "node": 4}, "gives 4 as number of this worker, out of range 1 to 3"),
        ({"node": 0}, "gives 0 as number of this worker, out of range 1 to 1"),
        ({"parallel": 0}, "gives 0 as number of parallel copies, out of range 1 to 64"),
        ({"parallel": 65}, "gives 65 as number of parallel copies, out of range 1 to 64"),
        ({"master_port": 0}, "gives 0 as its port, out of range 1 to 65535"),
        ({"master_port": 65536}, "gives 65536 as its port, out of range 1 to 65535"),
        ({"distribute": -1}, "gives -1 as bytes to distribute, out of range 0 to 1099511627776"),
        (
            {"shuffle": 2**40 + 1},
            "gives 1099511627777 as bytes to shuffle, out of range 0 to 1099511627776",
        ),
        (
            {"compute": DAY_NS + 1},
            f"gives {DAY_NS + 1} as time to compute, out of range 0 to {DAY_NS}",
        ),
        ({"compute": 5, "jitter": 6}, "gives 6 as jitter, out of range 0 to 5"),
    ],
)
def test_a_master_whose_plan_is_impossible(
    shuffle: Program, numbers: dict[str, int], words: str
) -> None:
    port = free_port()
    with shuffle.started("worker", "--listen", str(port)) as worker:
        worker.wait_for_port("tcp", port)
        with calls(port) as master:
            master.sendall(plan(**{"shuffle": 1} | numbers) + ORDER.pack(SHUFFLE, 0))
            address = f"127.0.0.1:{master.getsockname()[1]}"
            shuffle.check_refused(worker.result(), 1, f"the master at {address} {words}; run")


@pytest.mark.parametrize(
    ("job", "orders", "words"),
    [
        (plan(), ORDER.pack(2, 0), "gives 2 as kind of an order, out of range 0 to 1"),
        (
            plan(compute=DAY_NS),
            ORDER.pack(ROUND, 0) + ORDER.pack(ROUND, 7),
            "orders round 7 while round 0",
        ),
        (
            plan(compute=DAY_NS),
            ORDER.pack(SHUFFLE, 0) * 2,
            "orders round 0 while round 0 is not done",
        ),
    ],
    ids=["kind", "round", "shuffle"],
)
def test_a_master_whose_order_is_impossible(
    shuffle: Program, job: bytes, orders: bytes, words: str
) -> None:
    port = free_port()
    with shuffle.started("worker", "--listen", str(port)) as worker:
        worker.wait_for_port("tcp", port)
        with calls(port) as master:
            master.sendall(job + orders)
            done = worker.result()
    shuffle.check_refused(done, 1, words)
    assert done.stderr.startswith("shuffle: the master at 127.0.0.1:")


@pytest.mark.parametrize("wanted", [-1, -(2**63), 2**40 + 1])
def test_a_copy_of_an_impossible_length(shuffle: Program, wanted: int) -> None:
    """Less than nothing would be sent as all of the memory behind what is served."""
    port = free_port()
    with shuffle.started("worker", "--listen", str(port)) as worker:
        worker.wait_for_port("tcp", port)
        with calls(port) as master, socket.create_connection(("127.0.0.1", port)) as other:
            master.sendall(JOB + ORDER.pack(ROUND, 0))
            assert master.recv(REPORT.size, socket.MSG_WAITALL) == report(MAPPED, 0)
            other.sendall(HELLO.pack(0x31306C6675687371, 1, 0, 0, 1, 1, 2, wanted % 2**64, 0, 0))
            words = f"the node at 127.0.0.1:{other.getsockname()[1]} wants {wanted} bytes"
            shuffle.check_refused(worker.result(), 1, f"{words}, out of range 0 to 1099511627776")


def test_addresses_that_are_none(shuffle: Program, workers: Workers) -> None:
    """The first copy fails at once: it is told, and no other is begun."""
    addresses = workers(2)
    job = PLAN.pack(1, 64, 1, 1, 0, 1, 0, 0, 0, b"\x63" * 1024)
    with calls(int(addresses[0].split(":")[1])) as master:
        master.sendall(job + ORDER.pack(SHUFFLE, 0))
        master.shutdown(socket.SHUT_WR)
        reports = master.makefile("rb").read()
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
        with shuffle.started(
            "master", "--workers", ",".join([*addresses, impostor.address]), *SMALL
        ) as master:
            assert asked.wait(WAIT_S)
            master.kill()
        done.set()
    still_works(shuffle, addresses)


def test_strangers_are_turned_away(shuffle: Program, workers: Workers) -> None:
    addresses = workers(2)
    host, port = addresses[0].split(":")
    for text in (b"GET / HTTP/1.1\r\n\r\n" + bytes(100), bytes(56), b"", b"short"):
        with (
            socket.create_connection((host, int(port))) as stranger,
            suppress(OSError),
        ):  # a reset, as it leaves bytes unread
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
    shuffle.check_refused(
        shuffle.run("worker", "--listen", port),
        1,
        f"cannot listen on port {port} (Address already in use)",
    )


def test_a_full_log(shuffle: Program, workers: Workers, tmp_path: Path) -> None:
    addresses = workers(2)
    done = failed(
        shuffle, addresses, tmp_path / "log", "--duration", "600000000000", "--transfers", "8"
    )
    shuffle.check_refused(
        done, 1, "the log of 8 transfers is full in round 2; increase it with --transfers"
    )
    still_works(shuffle, addresses)


def test_a_log_that_cannot_be_written(shuffle: Program, workers: Workers, tmp_path: Path) -> None:
    addresses = ",".join(workers(2))
    missing = tmp_path / "none" / "log"
    shuffle.check_refused(
        shuffle.run("master", "--workers", addresses, *SMALL, "--output", str(missing)),
        1,
        f"cannot write --output {missing}",
    )
    shuffle.check_refused(
        shuffle.run("master", "--workers", addresses, *SMALL, "--output", "/dev/full"),
        1,
        "No space left",
    )
