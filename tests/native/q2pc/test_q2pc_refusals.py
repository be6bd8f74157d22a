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
        ([], "expected coordinate or serve as the first word (got '')"),
        (["lead"], "as the first word (got 'lead')"),
        (["coordinate"], "--transport is required"),
        (["coordinate", "--transport", "udp"], "--duration is required"),
        (
            ["coordinate", "--transport", "sctp", "--duration", "1"],
            "--transport must be tcp, udp or broadcast (got 'sctp')",
        ),
        (UDP, "--transport udp needs --peers, not --broadcast and --clients"),
        ([*UDP, *PEERS, *TO_ALL], "needs --peers, not --broadcast and --clients"),
        ([*UDP, "--peers", ""], "--peers must be 1 to 64 IPv4 addresses with ports ... (got '')"),
        ([*UDP, "--peers", "127.0.0.1"], "must be 1 to 64 IPv4 addresses with ports"),
        ([*UDP, "--peers", "127.0.0.1:1,"], "must be 1 to 64 IPv4 addresses with ports"),
        (
            [*UDP, "--peers", ",".join(["127.0.0.1:1"] * 65)],
            "must be 1 to 64 IPv4 addresses with ports",
        ),
        ([*UDP, *PEERS, "--wait", "1"], "--wait needs --transport broadcast"),
        ([*UDP, *PEERS, "--rto", "0"], "--rto must be a whole number from 1 ... (got '0')"),
        (
            [*UDP, *PEERS, "--message", "15"],
            "--message must be a whole number from 16 to 1472 (got '15')",
        ),
        ([*UDP, *PEERS, "--message", "1473"], "--message must be ... (got '1473')"),
        (
            [*UDP, *PEERS, "--requests", "0"],
            "--requests must be a whole number from 1 to 4000000 (got '0')",
        ),
        ([*UDP, *PEERS, "more"], "unexpected argument 'more'"),
        (
            BROADCAST,
            "--transport broadcast needs --broadcast and --clients, not --peers",
        ),
        ([*BROADCAST, *TO_ALL, *PEERS], "not --peers"),
        ([*BROADCAST, *TO_ALL, "--clients", "65"], "--clients must be ... (got '65')"),
        ([*BROADCAST, *TO_ALL, "--broadcast", "10.0.0.255"], "must be an IPv4 address and a port"),
        ([*BROADCAST, *TO_ALL, "--rto", "1"], "--rto needs --transport udp"),
        (["serve"], "--port is required"),
        (["serve", "--port", "7331"], "--transport is required"),
        (
            ["serve", "--port", "7331", "--transport", "broadcast"],
            "--client is required with --transport broadcast",
        ),
        (
            ["serve", "--port", "7331", "--transport", "tcp", "--client", "1"],
            "--client needs --transport broadcast",
        ),
        (
            ["serve", "--port", "7331", "--transport", "broadcast", "--client", "64"],
            "--client must be a whole number from 0 to 63 (got '64')",
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
