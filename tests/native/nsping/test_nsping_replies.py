"""Which replies nsping takes for the answer, and when they are said to have come. They are an
impostor's."""

from __future__ import annotations

import signal
import time

import pytest

from tests.native.nsping.impostor import FLOOD, WRONG, Impostor
from tests.support.native_programs import Log, Program, Running

MS = 1_000_000
TOTALS = ("sent", "received", "duplicates", "foreign", "overflowed")


def asking(*options: str, count: int = 3) -> list[str]:
    return ["--to", "127.0.0.1", "--interval", str(5 * MS), "--count", str(count), *options]


def exchange(nsping: Program, prefix: list[str], how: str, *options: str, count: int = 3) -> Log:
    with Impostor(how, prefix):
        return nsping.log(*asking(*options, count=count), prefix=prefix)


def totals(log: Log) -> tuple[int, ...]:
    return tuple(log.end[name] for name in TOTALS)


def wait_until_stopped(process: Running) -> None:
    status = f"/proc/{process.pid}/stat"

    def stopped() -> bool:
        with open(status) as file:
            return file.read().rsplit(") ", 1)[1].startswith("T")

    process.send_signal(signal.SIGSTOP)
    process.wait_for("it stopped", stopped)


@pytest.mark.parametrize("how", WRONG)
def test_a_wrong_reply_is_none(nsping: Program, silent: list[str], how: str) -> None:
    log = exchange(nsping, silent, how)
    foreign = 3 * WRONG[how][1]
    assert totals(log) == (3, 3, 0, foreign, 0) and all(rtt > 0 for rtt in log.column("rtt_ns"))


@pytest.mark.parametrize(("how", "duplicates"), [("elsewhere", 0), ("twice", 2), ("optional", 2)])
def test_second_replies_count_unless_of_another_host(
    nsping: Program, silent: list[str], how: str, duplicates: int
) -> None:
    """It ends with the last request's first one. One with options of IP is right."""
    log = exchange(nsping, silent, how)
    assert totals(log) == (3, 3, duplicates, 0, 0) and len(log.rows) == 3


def test_what_is_lost_is_told_from_what_is_not(nsping: Program, silent: list[str]) -> None:
    log = exchange(nsping, silent, "odd", "--linger", str(2000 * MS), count=7)
    assert [rtt > 0 for rtt in log.column("rtt_ns")] == [True, False] * 3 + [True]
    assert totals(log) == (7, 4, 0, 0, 0)


def test_replies_in_another_order(nsping: Program, silent: list[str]) -> None:
    log = exchange(nsping, silent, "backwards")
    rtts = log.column("rtt_ns")
    assert totals(log) == (3, 3, 0, 0, 0)
    assert rtts == sorted(rtts, reverse=True) and rtts[0] > 10 * MS


def answered_while_stopped(
    nsping: Program, prefix: list[str], how: str, *options: str
) -> tuple[Log, int, int]:
    """The log, and when the answer was sent: after the first time and before the second."""
    with (
        Impostor(how, prefix) as impostor,
        nsping.started(*asking(*options, count=1), prefix=prefix) as process,
    ):
        impostor.wait_for("asked")
        wait_until_stopped(process)
        before_ns = time.monotonic_ns()
        impostor.go_on()
        impostor.wait_for("answered")
        after_ns = time.monotonic_ns()
        process.send_signal(signal.SIGCONT)
        return process.log(), before_ns, after_ns


def test_arrival_is_not_when_it_is_read(nsping: Program, silent: list[str]) -> None:
    log, before_ns, after_ns = answered_while_stopped(nsping, silent, "waits")
    (row,) = log.rows
    assert before_ns - MS < row["sent_ns"] + row["rtt_ns"] < after_ns


def test_replies_that_found_no_room_are_counted(nsping: Program, silent: list[str]) -> None:
    log, _, _ = answered_while_stopped(nsping, silent, "flood", "--linger", str(500 * MS))
    assert log.end["overflowed"] > 0 and log.column("rtt_ns") == [0], "the last one was right"
    assert log.end["foreign"] + log.end["overflowed"] == FLOOD + 1
