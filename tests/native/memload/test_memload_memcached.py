"""memload against the real memcached: what it logs is what the server counted, and when it asks is
what it was told."""

from __future__ import annotations

import math
import socket
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.native_programs import Log, Program

MS = 10**6
PATIENT = f"--linger {60_000 * MS}"
OPEN = f"--rate 2000 --duration {200 * MS} {PATIENT}".split()
CLOSED = f"--closed --duration {100 * MS} {PATIENT}".split()


def counted(address: str) -> dict[str, int]:
    """The server's own counters."""
    host, port = address.split(":")
    with (
        socket.create_connection((host, int(port))) as connection,
        connection.makefile("rw", newline="") as stream,
    ):
        stream.write("stats\r\n")
        stream.flush()
        lines = iter(stream.readline, "END\r\n")
        fields = [line.split() for line in lines]
    return {name: int(value) for _, name, value in fields if value.isdigit()}


@pytest.mark.parametrize("loop", [OPEN, CLOSED], ids=["open", "closed"])
@pytest.mark.parametrize("connections", [1, 7])
def test_the_log_agrees_with_the_server(
    memload: Program, memcached: str, loop: list[str], connections: int
) -> None:
    words = f"--connections {connections} --keys 50 --value-bytes 700 --get-fraction 0.7".split()
    log = memload.log("--server", memcached, *loop, *words)
    server = counted(memcached)
    gets = sum(row["op"] == 0 for row in log.rows)
    assert log.rows and log.end == {
        "rows": len(log.rows), "early": 0, "from_ns": log.end["from_ns"], "to_ns": log.end["from_ns"] + int(log.parameters["duration"]),
        "sent": len(log.rows), "answered": len(log.rows), "gets": gets, "misses": 0, "errors": 0,
    }  # fmt: skip
    sets = 50 + len(log.rows) - gets
    assert [server[name] for name in ("cmd_get", "get_hits", "cmd_set")] == [gets, gets, sets]
    assert server["curr_items"] == 50, "every request is for a key that was stored"
    asked_bytes = gets * (24 + 64) + sets * (24 + 8 + 64 + 700)
    assert server["bytes_read"] - len("stats\r\n") == asked_bytes
    for row in log.rows:
        assert log.end["from_ns"] <= row["due_ns"] < log.end["to_ns"]
        assert row["due_ns"] <= row["sent_ns"] < row["done_ns"]
        assert row["connection"] < connections and row["status"] == 0
    assert [row["due_ns"] for row in log.rows] == sorted(row["due_ns"] for row in log.rows)
    for number in range(connections):
        mine = [row for row in log.rows if row["connection"] == number]
        # One request at a time.
        assert mine and all(row["done_ns"] <= later["sent_ns"] for row, later in pairwise(mine))


def test_parameters_come_first(memload: Program, memcached: str, output: Path) -> None:
    words = {"server": memcached, "rate": "2.5", "connections": "3", "get-fraction": "0.25", "key-bytes": "20", "value-bytes": "0", "keys": "7",
             "warmup": "5", "duration": "6", "linger": "8", "requests": "9", "seed": "9223372036854775807"}  # fmt: skip
    options = (word for name, value in words.items() for word in (f"--{name}", value))
    done = memload.run(*options, "--output", str(output))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    unnamed = dict.fromkeys(("closed", "think", "store", "stored"), "0")
    assert Log.read(output.read_text()).parameters == words | unnamed


@pytest.mark.parametrize("think", [0, MS // 2])
def test_the_closed_loop_follows_its_answers(memload: Program, memcached: str, think: int) -> None:
    log = memload.log("--server", memcached, *CLOSED, "--connections", "5", "--think", str(think))
    for number in range(5):
        mine = [row for row in log.rows if row["connection"] == number]
        assert all(later["due_ns"] == row["done_ns"] + think for row, later in pairwise(mine))
        assert mine[0]["due_ns"] == log.end["from_ns"] + think // 5 * number, "not all at once"
    assert log.parameters["closed"] == "1" and log.parameters["rate"] == "0"


def test_the_open_loop_is_a_poisson_process_of_the_seed(memload: Program, memcached: str) -> None:
    words = f"--rate 20000 --duration {200 * MS} {PATIENT} --connections 4".split()
    first, again, other = (
        memload.log("--server", memcached, *words, "--seed", seed) for seed in "778"
    )

    def schedule(log: Log) -> list[tuple[int, int]]:
        return [(row["due_ns"] - log.end["from_ns"], row["op"]) for row in log.rows]

    assert schedule(first) == schedule(again) != schedule(other)
    due = [at for at, _ in schedule(first)]
    gaps = [later - at for at, later in pairwise(due)]
    # What follows is decided by the seed, not by chance: five standard deviations only keep other
    # seeds from failing.
    assert abs(len(due) - 4000) < 5 * math.sqrt(4000)
    longer, gets = sum(gap > 50000 for gap in gaps), sum(op == 0 for _, op in schedule(first))
    exponential = math.exp(-1)
    assert abs(longer / len(gaps) - exponential) < 5 * math.sqrt(0.37 * 0.63 / 4000)
    assert abs(gets / len(due) - 0.9) < 5 * math.sqrt(0.09 / 4000)


def test_the_warm_up_is_not_logged_but_offered(memload: Program, memcached: str) -> None:
    words = f"--server {memcached} --rate 2000 --connections 2 {PATIENT} --keys 10".split()
    whole = memload.log(*words, "--duration", str(200 * MS))
    before = counted(memcached)
    part = memload.log(*words, "--warmup", str(150 * MS), "--duration", str(50 * MS))
    asked = {name: counted(memcached)[name] - before[name] for name in ("cmd_get", "cmd_set")}
    assert asked["cmd_get"] + asked["cmd_set"] == 10 + len(whole.rows)
    due = [at - whole.end["from_ns"] for at in whole.column("due_ns")]
    tail = [at for at in due if at >= 150 * MS]
    assert 0 < len(tail) < len(due)
    assert [at - part.end["from_ns"] + 150 * MS for at in part.column("due_ns")] == tail


@pytest.mark.parametrize("size", [0, 100_000, 512 << 10])
def test_values_of_any_length(memload: Program, memcached: str, size: int) -> None:
    words = f"--rate 200 --duration {100 * MS} {PATIENT} --keys 5 --value-bytes {size}".split()
    half = "--get-fraction 0.5 --connections 2".split()
    log = memload.log("--server", memcached, *words, *half)
    assert {row["status"] for row in log.rows} == {0} and {row["op"] for row in log.rows} == {0, 1}


SIZES = "--keys 40 --key-bytes 30 --value-bytes 500".split()


def test_storing_by_itself(memload: Program, memcached: str) -> None:
    """Then nothing is stored before the load, whose every GET finds its key."""
    log = memload.log("--server", memcached, "--store", *SIZES, "--connections", "3")
    totals = ("rows", "early", "from_ns", "to_ns", "sent", "answered", "gets", "misses", "errors")
    assert (log.rows, log.end, log.parameters["store"]) == ([], dict.fromkeys(totals, 0), "1")
    before = counted(memcached)
    assert (before["cmd_set"], before["curr_items"], before["cmd_get"]) == (40, 40, 0)
    words = "--stored --connections 3 --get-fraction 0.8".split()
    load = memload.log("--server", memcached, *words, *SIZES, *OPEN)
    after, gets = counted(memcached), load.end["gets"]
    assert 0 < gets < len(load.rows) and set(load.column("status")) == {0}
    assert load.parameters["stored"] == "1"
    assert after["cmd_get"] == after["get_hits"] == gets
    assert after["cmd_set"] - before["cmd_set"] == len(load.rows) - gets
    assert after["curr_items"] == 40, "both know the same keys"


def test_keys_that_are_not_stored_are_missed(memload: Program, memcached: str) -> None:
    log = memload.log("--server", memcached, "--stored", *SIZES, *OPEN, "--get-fraction", "1")
    server = counted(memcached)
    assert log.end["misses"] == len(log.rows) == server["get_misses"] > 0
    assert (server["cmd_set"], server["get_hits"]) == (0, 0)
