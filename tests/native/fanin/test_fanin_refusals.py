"""What fanin refuses, and its manual page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.native_programs import Program, check_installed, check_manual

TO = ["--to", "127.0.0.1:5000"]
PACED = [*TO, "--interval", "1000000", "--duration", "1000000"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the first word is '', give send or receive"),
        (["transmit"], "the first word is 'transmit'"),
        (["send"], "--to is missing"),
        (["send", *TO], "--duration is missing"),
        (["send", *TO, "--duration", "1"], "--interval is missing, give it, or --flood"),
        (["send", *PACED, "--flood"], "leave out --interval"),
        (
            ["send", *TO, "--duration", "1", "--flood", "--burst", "2"],
            "leave out --interval, --streams, --burst and --phase",
        ),
        (["send", *TO, "--duration", "1", "--flood", "--phase", "0"], "and --phase"),
        (["send", *PACED, "--phase", "1000001"], "--phase is 1000001, more than --interval, 1000000"),
        (["send", *PACED, "--phase", "-1"], "--phase is '-1', give a whole number from 0"),
        (
            ["send", *PACED, "--interval", "0"],
            "--interval is '0', give a whole number from 1 to 86400000000000",
        ),
        (["send", *PACED, "--interval", "86400000000001"], "--interval is '86400000000001'"),
        (["send", *PACED, "--interval", "99999999999999999999"], "--interval is '99999999999999999999'"),
        (["send", *PACED, "--interval", "5ms"], "--interval is '5ms'"),
        (["send", *PACED, "--interval", "-1"], "--interval is '-1'"),
        (["send", *PACED, "--interval", ""], "--interval is ''"),
        (["send", *PACED, "--payload", "23"], "--payload is '23', give a whole number from 24 to 65507"),
        (["send", *PACED, "--payload", "65508"], "--payload is '65508'"),
        (["send", *PACED, "--to", "127.0.0.1"], "give an IPv4 address and a port"),
        (["send", *PACED, "--to", "127.0.0.1:0"], "give an IPv4 address and a port"),
        (["send", *PACED, "--to", "127.0.0.1:65536"], "give an IPv4 address and a port"),
        (["send", *PACED, "--to", "127.0.0.256:1"], "give an IPv4 address and a port"),
        (["send", *PACED, "--to", "1234567890123456:1"], "give an IPv4 address and a port"),
        (["send", *PACED, "--to", "localhost:1"], "give an IPv4 address and a port"),
        (
            ["send", *PACED, "--duration", "86400000000000", "--interval", "1000"],
            "a log of 86400000000 rows, more than 4000000",
        ),
        (["send", *PACED, "--output"], "--output stands without a value"),
        (["send", *PACED, "--speed", "1"], "there is no option --speed"),
        (["send", *PACED, "--flood=yes"], "--flood=yes takes no value"),
        (["send", *PACED, "more"], "'more' is no option"),
        (["receive"], "--port is missing"),
        (["receive", "--port", "65536"], "--port is '65536', give a whole number from 1 to 65535"),
        (["receive", "--port", "1", "--rows", "4000001"], "--rows is '4000001'"),
    ],
)
def test_refused(fanin: Program, words: list[str], said: str) -> None:
    fanin.check_refused(fanin.run(*words), 2, said)


def test_help_and_manual_agree(fanin: Program) -> None:
    check_manual(
        fanin,
        "stream sequence due_ns start_ns end_ns sent dropped source port sent_ns received_ns bytes",
        "send",
        "receive",
    )


def test_what_is_installed(fanin: Program, tmp_path: Path) -> None:
    check_installed(fanin, tmp_path)


@pytest.mark.parametrize("words", [["send", *PACED], ["receive", "--port", "1"]])
def test_a_log_that_cannot_be_written(fanin: Program, words: list[str]) -> None:
    """That is told before anything is sent or received."""
    fanin.check_refused(
        fanin.run(*words, "--output", "/nowhere/log"),
        1,
        "cannot write --output /nowhere/log (No such file or directory)",
    )
