"""When nsping sends what, and that the kernel's answers are taken for what they are."""

from __future__ import annotations

import re
import resource
import shutil
import signal
import subprocess
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.native.nsping.conftest import SILENCE, Network
from tests.support.native_programs import Log, Program

MS = 1_000_000


def asking(*options: str, interval: int = 5 * MS, count: int = 10) -> list[str]:
    return ["--to", "127.0.0.1", "--interval", str(interval), "--count", str(count), *options]


def late_ns(log: Log) -> list[int]:
    """By how much each request was sent after its time."""
    start, interval = log.end["start_ns"], int(log.parameters["interval"])
    return [row["sent_ns"] - start - (row["sequence"] - 1) * interval for row in log.rows]


def check_answered(log: Log, count: int) -> None:
    """Every request was, once, and nothing else came."""
    assert log.column("sequence") == list(range(1, count + 1))
    assert all(rtt > 0 for rtt in log.column("rtt_ns"))
    none = dict.fromkeys(("duplicates", "foreign", "overflowed", "early"), 0)
    assert (none | {"sent": count, "received": count}).items() <= log.end.items()


def test_a_request_every_interval(nsping: Program, answering: list[str]) -> None:
    before_ns = time.monotonic_ns()
    log = nsping.log(*asking(), prefix=answering)
    after_ns = time.monotonic_ns()
    assert log.parameters == {
        "to": "127.0.0.1", "interval": "5000000", "count": "10", "payload": "56", "linger": "5000000000",
    }  # fmt: skip
    check_answered(log, 10)
    assert all(late >= 0 for late in late_ns(log)), "none is sent before its time"
    last = log.rows[-1]
    assert before_ns < log.end["start_ns"] < last["sent_ns"] + last["rtt_ns"] < after_ns
    assert log.end["identifier"] > 0


@pytest.mark.parametrize("payload", [16, 17, 18, 19, 56, 1472, 1473, 9000, 65507])
def test_payloads(nsping: Program, answering: list[str], payload: int) -> None:
    log = nsping.log(*asking("--payload", str(payload), count=3), prefix=answering)
    assert log.parameters["payload"] == str(payload)
    check_answered(log, 3)


def test_a_payload_in_fragments(nsping: Program, network: Network) -> None:
    with network("ip link set lo mtu 1500") as prefix:
        check_answered(nsping.log(*asking("--payload", "60000", count=3), prefix=prefix), 3)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.255.255.254", "10.1.2.3"])
def test_every_address_of_a_host(nsping: Program, network: Network, address: str) -> None:
    with network("ip address add 10.1.2.3/32 dev lo") as prefix:
        check_answered(nsping.log(*asking("--to", address, count=2), prefix=prefix), 2)


def test_times_are_kept_after_a_pause(nsping: Program, answering: list[str]) -> None:
    """What was due meanwhile is sent at once, and lateness does not add up."""
    with nsping.started(*asking(interval=10 * MS, count=1000), prefix=answering) as process:
        process.wait_until_it_can_be_ended()
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        process.send_signal(signal.SIGCONT)
        log = process.log()
    check_answered(log, 1000)
    late = late_ns(log)
    assert min(late) >= 0 and max(late) >= 200 * MS and min(late[900:]) < 200 * MS
    sent = log.column("sent_ns")
    assert sent == sorted(sent)


def test_an_interval_that_is_too_short_delays_and_loses_nothing(
    nsping: Program, answering: list[str]
) -> None:
    check_answered(nsping.log(*asking(interval=1000, count=2000), prefix=answering), 2000)


def test_more_than_icmp_can_number(nsping: Program, answering: list[str]) -> None:
    check_answered(nsping.log(*asking(interval=5000, count=70_000), prefix=answering), 70_000)


def test_two_at_once(nsping: Program, answering: list[str]) -> None:
    words = asking(interval=MS, count=3_600_000)
    with (
        nsping.started(*words, prefix=answering) as one,
        nsping.started(*words, prefix=answering) as other,
    ):
        for process in (one, other):
            process.wait_until_it_can_be_ended()
        time.sleep(0.3)
        logs = one.ended(), other.ended()
    for log in logs:
        # The signal may come between a request and its reply.
        assert log.end["sent"] - log.end["received"] in (0, 1) and log.end["received"] > 0
    assert logs[0].end["identifier"] != logs[1].end["identifier"]
    spans = [(log.rows[0]["sent_ns"], log.rows[-1]["sent_ns"]) for log in logs]
    assert spans[0][0] < spans[1][1] and spans[1][0] < spans[0][1], "they did run at once"


@pytest.mark.parametrize("linger", [0, 20 * MS])
def test_what_is_not_answered_is_lost(nsping: Program, silent: list[str], linger: int) -> None:
    log = nsping.log(*asking("--linger", str(linger)), prefix=silent)
    assert log.column("rtt_ns") == [0] * 10 and log.column("sequence") == list(range(1, 11))
    assert (log.end["sent"], log.end["received"], log.end["early"]) == (10, 0, 0)


def test_it_waits_for_the_last_replies(nsping: Program, silent: list[str]) -> None:
    log = nsping.log(*asking("--linger", str(200 * MS), count=1), prefix=silent)
    after_ns = time.monotonic_ns()
    assert after_ns - log.rows[0]["sent_ns"] >= 200 * MS


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("when", ["between requests", "lingering"])
def test_a_signal_ends_it_early_with_its_log(
    nsping: Program, silent: list[str], tmp_path: Path, end: signal.Signals, when: str
) -> None:
    output, count = tmp_path / "log", 1 if when == "lingering" else 10
    hour = 3_600_000 * MS
    options = f"--output {output} --linger {hour}".split()
    words = asking(*options, interval=hour, count=count)
    with nsping.started(*words, prefix=silent) as process:
        process.wait_until_it_can_be_ended()
        process.wait_until_it_sleeps()
        process.send_signal(end)
        assert (process.wait(), process.communicate()) == (0, ("", ""))
    log = Log.read(output.read_text())
    assert log.end["early"] == 1 and log.end["sent"] == len(log.rows) <= 1


def test_it_sleeps_while_it_waits(nsping: Program, silent: list[str]) -> None:
    def used_s() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before_s = used_s()
    words = asking("--linger", str(1000 * MS), interval=100 * MS)
    log = nsping.log(*words, prefix=silent)
    assert log.end["sent"] == 10 and used_s() - before_s < 0.25, "of 1.9 s"


def held_back(network: Network, rate: str) -> AbstractContextManager[list[str]]:
    """A network whose queue holds much and lets it go slowly. Its kernel does not answer: its
    replies would be queued too, and fill the one socket that a CPU has for all namespaces'
    replies."""
    return network(f"tc qdisc add dev lo root tbf rate {rate} burst 2k limit 100m", SILENCE)


@pytest.mark.parametrize("ending", ["a signal", "no room until the end"])
def test_a_full_socket_holds_requests_back(nsping: Program, network: Network, ending: str) -> None:
    linger = 3_600_000 * MS if ending == "a signal" else 0
    words = asking("--payload", "1400", "--linger", str(linger), interval=1000, count=5000)
    with (
        held_back(network, "100kbit") as prefix,
        nsping.started(*words, prefix=prefix) as process,
    ):
        if ending == "a signal":
            process.wait_until_it_can_be_ended()
            process.wait_until_it_sleeps()
            log = process.ended()
        else:
            log = process.log()
    assert log.end["early"] == (ending == "a signal")
    assert 0 < log.end["sent"] == len(log.rows) < 5000


def test_what_was_held_back_is_sent_when_there_is_room(nsping: Program, network: Network) -> None:
    with held_back(network, "100mbit") as prefix:
        options = f"--payload 1400 --linger {1000 * MS}".split()
        log = nsping.log(*asking(*options, interval=1000, count=400), prefix=prefix)
    assert log.end["sent"] == len(log.rows) == 400
    assert late_ns(log)[-1] >= 20 * MS, "all of them take 46 ms, those that the socket holds 11"


def test_a_buffer_for_less_than_one_request(
    nsping: Program, network: Network, qjau: list[str]
) -> None:
    with network("ip link set lo mtu 1500") as prefix:
        words, small = asking("--payload", "60000", count=3), ["-p", "0", "-w", "2304"]
        with nsping.started(*words, prefix=[*prefix, *qjau, *small]) as process:
            why = "the socket's buffer has no room for 60000 bytes"
            nsping.check_refused(process.result(), 1, why)


def test_what_this_host_drops_is_lost(nsping: Program, network: Network) -> None:
    with network("tc qdisc add dev lo root tbf rate 1mbit burst 2k limit 3000") as prefix:
        options = f"--payload 1400 --linger {200 * MS}".split()
        log = nsping.log(*asking(*options, interval=1000, count=30), prefix=prefix)
    assert log.end["sent"] == len(log.rows) == 30 and log.end["received"] < 30
    assert sum(rtt > 0 for rtt in log.column("rtt_ns")) == log.end["received"]


def test_what_a_link_loses_is_lost(nsping: Program, network: Network) -> None:
    """The namespace's own filter takes replies away, after the kernel gave them."""
    if not shutil.which("nft"):
        pytest.skip("nft is not installed")
    rules = (
        "nft add table ip t",
        "nft 'add chain ip t c { type filter hook input priority 0; }'",
        "nft add rule ip t c icmp type echo-reply icmp sequence 2-4 drop",
    )
    with network(*rules) as prefix:
        log = nsping.log(*asking("--linger", "0", count=6), prefix=prefix)
    assert [rtt > 0 for rtt in log.column("rtt_ns")[:5]] == [True, False, False, False, True]


@pytest.mark.parametrize("priority", [0, 5])
def test_the_priority_is_qjaus(
    nsping: Program, network: Network, qjau: list[str], priority: int
) -> None:
    if not shutil.which("nft"):
        pytest.skip("nft is not installed")
    rules = (
        "nft add table ip t",
        "nft 'add chain ip t c { type filter hook postrouting priority 0; }'",
        f"nft add rule ip t c icmp type echo-request meta priority 0:{priority} counter",
    )
    with network(*rules) as prefix:
        under = [*prefix, *qjau, "-p", str(priority)]
        check_answered(nsping.log(*asking(count=7), prefix=under), 7)
        counted = subprocess.check_output([*prefix, "nft", "list", "ruleset"], text=True)
    assert re.findall(r"counter packets (\d+)", counted) == ["7"]
