"""What fanin sends and when, and what it says of arrivals."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.native_programs import Log, Program, Running, free_port, network_of_its_own

MS = 1_000_000


def sender(port: int, *options: str, interval: int = 5 * MS, duration: int = 50 * MS) -> list[str]:
    paced = "" if "--flood" in options else f"--interval {interval}"
    line = f"send --to 127.0.0.1:{port} {paced} --duration {duration}"
    return [*line.split(), *options]


@contextmanager
def receiving(
    fanin: Program, *options: str, port: int = 0, prefix: Sequence[str] = ()
) -> Iterator[tuple[Running, int]]:
    """A receiver that listens, and its port."""
    port = port or free_port(socket.SOCK_DGRAM)
    words = ["receive", "--port", str(port), *options]
    with fanin.started(*words, prefix=prefix) as receiver:
        receiver.wait_for_port("udp", port)
        yield receiver, port


def exchange(fanin: Program, *options: str, duration: int = 50 * MS) -> tuple[Log, Log]:
    with receiving(fanin) as (receiver, port):
        return fanin.log(*sender(port, *options, duration=duration)), receiver.ended()


def offsets(log: Log) -> list[tuple[int, int]]:
    """(stream, when it was due since the run began) of every row."""
    return [(row["stream"], row["due_ns"] - log.end["start_ns"]) for row in log.rows]


def queued_bytes(program: Running) -> int:
    """What its network namespace holds of datagrams that were sent."""
    lines = Path(f"/proc/{program.pid}/net/udp").read_text().splitlines()[1:]
    return max((int(line.split()[4].split(":")[0], 16) for line in lines), default=0)


def test_every_stream_sends_once_an_interval(fanin: Program) -> None:
    sent, received = exchange(fanin, "--streams", "3")
    assert sent.parameters == {
        "role": "send", "to": sent.parameters["to"], "interval": "5000000", "payload": "230", "streams": "3", "burst": "1",
        "flood": "0", "phase": "-1", "duration": "50000000", "seed": "1",
    }  # fmt: skip
    due = sent.column("due_ns")
    assert len(due) == 30 and due == sorted(due)
    for stream in range(3):
        rows = [row for row in sent.rows if row["stream"] == stream]
        assert [row["sequence"] for row in rows] == list(range(10))
        due_at = [row["due_ns"] - sent.end["start_ns"] for row in rows]
        assert 0 <= due_at[0] < 5 * MS
        assert due_at == [due_at[0] + i * 5 * MS for i in range(10)], "lateness does not add up"
    assert all(row["due_ns"] <= row["start_ns"] <= row["end_ns"] for row in sent.rows)
    counts = {"early": 0, "due": 30, "sent": 30, "dropped": 0, "bytes": 30 * 230}
    assert counts.items() <= sent.end.items()

    assert (len(received.rows), received.end["overflowed"], received.end["foreign"]) == (30, 0, 0)
    calls = {(row["stream"], row["sequence"]): row for row in sent.rows}
    error = received.end["clock_error_ns"]
    for row in received.rows:
        call = calls.pop((row["stream"], row["sequence"]))
        assert call["start_ns"] <= row["sent_ns"] <= call["end_ns"]
        assert row["received_ns"] >= row["sent_ns"] - error
        assert (row["source"], row["port"], row["bytes"]) == (0x7F000001, sent.end["port"], 230)
    assert not calls


def test_the_seed_decides_the_phases(fanin: Program) -> None:
    first, again, other = (
        exchange(fanin, "--streams", "8", "--seed", seed, duration=5 * MS)[0]
        for seed in ("3", "3", "4")
    )
    assert offsets(first) == offsets(again) != offsets(other)
    assert sorted(first.column("stream")) == list(range(8)) == sorted(other.column("stream"))
    assert len({phase for _, phase in offsets(first)}) == 8


def test_a_phase_counts_from_the_clock(fanin: Program) -> None:
    sent, received = exchange(fanin, "--streams", "2", "--phase", str(2 * MS))
    due = sent.column("due_ns")
    assert {time % (5 * MS) for time in due} == {2 * MS}
    assert len(due) == 2 * len(set(due)) == sent.end["due"]
    assert 5 * MS < due[0] - sent.end["start_ns"] <= 15 * MS
    assert max(due) + 5 * MS >= sent.end["start_ns"] + 50 * MS, "the end is as far away as always"
    assert len(received.rows) == len(due) == sent.end["sent"]


def test_what_is_due_before_the_end_is_sent(fanin: Program) -> None:
    whole, _ = exchange(fanin, "--streams", "8", duration=5 * MS)
    cut, received = exchange(fanin, "--streams", "8", duration=13 * MS)
    times = sorted(phase + i * 5 * MS for _, phase in offsets(whole) for i in range(3))
    expected = [time for time in times if time < 13 * MS]
    assert sorted(due for _, due in offsets(cut)) == expected and 16 < len(expected) < 24
    assert cut.end["due"] == cut.end["sent"] == len(received.rows) == len(expected)


def test_bursts_number_their_datagrams(fanin: Program) -> None:
    sent, received = exchange(fanin, "--burst", "7", "--payload", "1472", duration=15 * MS)
    assert [(row["sequence"], row["sent"]) for row in sent.rows] == [(0, 7), (7, 7), (14, 7)]
    assert received.column("sequence") == list(range(21))
    assert set(received.column("bytes")) == {1472}
    assert received.end["bytes"] == sent.end["bytes"] == 21 * 1472
    for row in sent.rows:
        times = received.column("sent_ns")[row["sequence"] : row["sequence"] + 7]
        assert times == sorted(times) and row["start_ns"] <= times[0] and times[-1] <= row["end_ns"]


def test_the_largest_datagram(fanin: Program) -> None:
    _, received = exchange(fanin, "--payload", "65507", duration=5 * MS)
    assert received.column("bytes") == [65507]


def test_arrival_is_not_when_it_is_read(fanin: Program) -> None:
    with receiving(fanin) as (receiver, port):
        receiver.send_signal(signal.SIGSTOP)
        fanin.log(*sender(port, "--burst", "3", duration=5 * MS))
        before_it_can_read = time.monotonic_ns()
        receiver.send_signal(signal.SIGCONT)
        received = receiver.ended()
    assert len(received.rows) == 3
    assert all(row["received_ns"] < before_it_can_read for row in received.rows)


def test_a_full_receive_buffer_is_counted(fanin: Program) -> None:
    with receiving(fanin) as (receiver, port):
        receiver.send_signal(signal.SIGSTOP)
        count = int(Path("/proc/sys/net/core/rmem_default").read_text()) // 230 + 10
        fanin.log(*sender(port, "--burst", str(count), duration=5 * MS))
        receiver.send_signal(signal.SIGCONT)
        received = receiver.ended()
    overflowed = received.end["overflowed"]
    assert overflowed > 0 and len(received.rows) + overflowed == count
    assert received.column("sequence") == list(range(len(received.rows))), "the first ones stay"


def test_foreign_datagrams_are_counted(fanin: Program) -> None:
    with receiving(fanin) as (receiver, port):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for datagram in (b"", b"qjfn", bytes(24), b"qjfn" + bytes(20)):
                stranger.sendto(datagram, ("127.0.0.1", port))
        received = receiver.ended()
    assert (received.end["foreign"], len(received.rows)) == (3, 1)


def test_a_full_log_is_an_error(fanin: Program) -> None:
    with receiving(fanin, "--rows", "2") as (receiver, port):
        # The receiver may be gone before the last datagram: then that is refused.
        fanin.run(*sender(port, "--burst", "3", duration=5 * MS))
        why = "the log of 2 rows is full; increase it with --rows"
        fanin.check_refused(receiver.result(), 1, why)


def test_nobody_listens(fanin: Program, tmp_path: Path) -> None:
    port, output = free_port(socket.SOCK_DGRAM), tmp_path / "log"
    done = fanin.run(*sender(port, "--output", str(output), duration=60_000 * MS))
    why = "does not accept datagrams (Connection refused); start fanin receive there"
    fanin.check_refused(done, 1, f"127.0.0.1:{port} {why}")
    assert output.read_text() == ""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_early_with_its_log(
    fanin: Program, tmp_path: Path, end: signal.Signals
) -> None:
    output = tmp_path / "log"
    with receiving(fanin, "--output", str(output)) as (receiver, port):
        with fanin.started(*sender(port, interval=1000 * MS, duration=3_600_000 * MS)) as patient:
            patient.wait_until_it_can_be_ended()
            sent = patient.ended(end)
        receiver.send_signal(end)
        assert receiver.wait() == 0
    assert (sent.end["early"], sent.end["due"]) == (1, 3600)
    assert sent.end["sent"] == len(sent.rows) != 3600
    assert len(Log.read(output.read_text()).rows) == len(sent.rows), "the log is whole"


def test_a_queue_that_holds_packets_back_stops_the_sender(fanin: Program) -> None:
    """At 1 Mb/s a flood sends what the rate allows and the socket's buffer holds, drops nothing,
    and sleeps in between."""
    buffer = int(Path("/proc/sys/net/core/wmem_default").read_text())
    slow = network_of_its_own("tc qdisc add dev lo root tbf rate 1mbit burst 2k limit 10m")
    with receiving(fanin, port=5000, prefix=slow) as (receiver, port):
        beside = receiver.prefix_beside()
        words = sender(port, "--flood", "--payload", "1400", duration=300 * MS)
        (row,) = fanin.log(*words, prefix=beside).rows
        passed = (row["end_ns"] - row["start_ns"]) // 8000
        assert row["dropped"] == 0 < row["sent"] * 1442 <= buffer + 2000 + 1442 + passed

        words = sender(port, "--burst", "1000", "--payload", "1400", duration=3_600_000 * MS)
        with fanin.started(*words, prefix=beside) as held:
            held.wait_until_it_can_be_ended()
            held.wait_for("its socket was full", lambda: queued_bytes(held) > buffer // 2)
            held.wait_until_it_sleeps()
            cut = held.ended()
        # What is left would be refused at 1 Mb/s, and the refusals fill the one socket that a CPU
        # has for all namespaces' ICMP errors (seen on 6.18).
        subprocess.run([*beside, "tc", "qdisc", "del", "dev", "lo", "root"], check=True)
        assert (cut.end["early"], cut.end["sent"]) == (1, sum(cut.column("sent")))
        assert 0 < cut.rows[-1]["sent"] < 1000


def test_what_a_queue_drops_is_counted(fanin: Program) -> None:
    small = network_of_its_own("tc qdisc add dev lo root tbf rate 1mbit burst 2k limit 3000")
    with receiving(fanin, port=5000, prefix=small) as (receiver, port):
        beside = receiver.prefix_beside()
        words = sender(port, "--burst", "20", "--payload", "1400", duration=10 * MS)
        sent = fanin.log(*words, prefix=beside)
        show = [*beside, *"tc -s qdisc show dev lo".split()]
        empty = lambda: " backlog 0b 0p " in subprocess.check_output(show, text=True)  # noqa: E731
        receiver.wait_for("the queue was empty", empty)
        received = receiver.ended()
    assert sent.column("sequence") == [0, 20], "what is dropped has its number"
    assert all(row["dropped"] > 0 and row["sent"] + row["dropped"] == 20 for row in sent.rows)
    numbers = received.column("sequence")
    assert sent.end["sent"] == sum(sent.column("sent")) == len(numbers) == len(set(numbers))
    assert sent.end["dropped"] == sum(sent.column("dropped")) and max(numbers) < 40
