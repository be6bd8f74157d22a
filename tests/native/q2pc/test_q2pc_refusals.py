"""What q2pc refuses, and its manual page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.native_programs import Program, check_installed, check_manual

UDP = ["coordinate", "--transport", "udp", "--duration", "1000000"]
PEERS = ["--peers", "127.0.0.1:7331"]
BROADCAST = ["coordinate", "--transport", "broadcast", "--duration", "1000000"]
TO_ALL = ["--broadcast", "127.255.255.255:7331", "--clients", "2"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the first word is '', give coordinate or serve"),
        (["lead"], "the first word is 'lead'"),
        (["coordinate"], "--transport is missing"),
        (["coordinate", "--transport", "udp"], "--duration is missing"),
        (
            ["coordinate", "--transport", "sctp", "--duration", "1"],
            "--transport is 'sctp', give tcp, udp or broadcast",
        ),
        (UDP, "--transport udp has an address for each, give --peers"),
        ([*UDP, *PEERS, *TO_ALL], "no --broadcast and no --clients"),
        ([*UDP, "--peers", ""], "--peers is '', give 1 to 64 IPv4 addresses with ports"),
        ([*UDP, "--peers", "127.0.0.1"], "give 1 to 64 IPv4 addresses with ports"),
        ([*UDP, "--peers", "127.0.0.1:1,"], "give 1 to 64 IPv4 addresses with ports"),
        ([*UDP, "--peers", ",".join(["127.0.0.1:1"] * 65)], "give 1 to 64 IPv4 addresses with ports"),
        ([*UDP, *PEERS, "--wait", "1"], "--wait is for --transport broadcast"),
        ([*UDP, *PEERS, "--rto", "0"], "--rto is '0', give a whole number from 1 "),
        ([*UDP, *PEERS, "--message", "15"], "--message is '15', give a whole number from 16 to 1472"),
        ([*UDP, *PEERS, "--message", "1473"], "--message is '1473'"),
        ([*UDP, *PEERS, "--requests", "0"], "--requests is '0', give a whole number from 1 to 4000000"),
        ([*UDP, *PEERS, "more"], "'more' is no option"),
        (
            BROADCAST,
            "--transport broadcast has one address for all, give --broadcast and --clients, no --peers",
        ),
        ([*BROADCAST, *TO_ALL, *PEERS], "no --peers"),
        ([*BROADCAST, *TO_ALL, "--clients", "65"], "--clients is '65'"),
        ([*BROADCAST, *TO_ALL, "--broadcast", "10.0.0.255"], "give an IPv4 address and a port"),
        ([*BROADCAST, *TO_ALL, "--rto", "1"], "--rto is for --transport udp"),
        (["serve"], "--port is missing"),
        (["serve", "--port", "7331"], "--transport is missing"),
        (
            ["serve", "--port", "7331", "--transport", "broadcast"],
            "--client is for --transport broadcast, and needed there",
        ),
        (["serve", "--port", "7331", "--transport", "tcp", "--client", "1"], "leave it out"),
        (
            ["serve", "--port", "7331", "--transport", "broadcast", "--client", "64"],
            "--client is '64', give a whole number from 0 to 63",
        ),
    ],
)
def test_refused(q2pc: Program, words: list[str], said: str) -> None:
    q2pc.check_refused(q2pc.run(*words), 2, said)


def test_help_and_manual_agree(q2pc: Program) -> None:
    check_manual(
        q2pc,
        "start_ns votes_ns end_ns retries failed orders repeated unprepared foreign",
        "coordinate",
        "serve",
    )


def test_what_is_installed(q2pc: Program, tmp_path: Path) -> None:
    check_installed(q2pc, tmp_path)


@pytest.mark.parametrize("words", [[*UDP, *PEERS], ["serve", "--port", "1", "--transport", "tcp"]])
def test_a_log_that_cannot_be_written(q2pc: Program, words: list[str]) -> None:
    """That is told before anything is sent or received."""
    q2pc.check_refused(
        q2pc.run(*words, "--output", "/nowhere/log"),
        1,
        "cannot write --output /nowhere/log (No such file or directory)",
    )
