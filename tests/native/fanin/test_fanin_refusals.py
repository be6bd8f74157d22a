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
        ([], "expected send or receive as the first word (got '')"),
        (["transmit"], "as the first word (got 'transmit')"),
        (["send"], "--to is required"),
        (["send", *TO], "--duration is required"),
        (["send", *TO, "--duration", "1"], "--interval or --flood is required"),
        (["send", *PACED, "--flood"], "--flood excludes --interval"),
        (
            ["send", *TO, "--duration", "1", "--flood", "--burst", "2"],
            "--flood excludes --interval, --streams, --burst and --phase",
        ),
        (["send", *TO, "--duration", "1", "--flood", "--phase", "0"], "and --phase"),
        (
            ["send", *PACED, "--phase", "1000001"],
            "--phase is 1000001, more than --interval, 1000000",
        ),
        (["send", *PACED, "--phase", "-1"], "--phase must be a whole number from 0 ... (got '-1')"),
        (
            ["send", *PACED, "--interval", "0"],
            "--interval must be a whole number from 1 to 86400000000000 (got '0')",
        ),
        (
            ["send", *PACED, "--interval", "86400000000001"],
            "--interval must be ... (got '86400000000001')",
        ),
        (
            ["send", *PACED, "--interval", "99999999999999999999"],
            "--interval must be ... (got '99999999999999999999')",
        ),
        (["send", *PACED, "--interval", "5ms"], "--interval must be ... (got '5ms')"),
        (["send", *PACED, "--interval", "-1"], "--interval must be ... (got '-1')"),
        (["send", *PACED, "--interval", ""], "--interval must be ... (got '')"),
        (
            ["send", *PACED, "--payload", "23"],
            "--payload must be a whole number from 24 to 65507 (got '23')",
        ),
        (["send", *PACED, "--payload", "65508"], "--payload must be ... (got '65508')"),
        (["send", *PACED, "--to", "127.0.0.1"], "--to must be an IPv4 address and a port"),
        (["send", *PACED, "--to", "127.0.0.1:0"], "--to must be an IPv4 address and a port"),
        (["send", *PACED, "--to", "127.0.0.1:65536"], "--to must be an IPv4 address and a port"),
        (["send", *PACED, "--to", "127.0.0.256:1"], "--to must be an IPv4 address and a port"),
        (["send", *PACED, "--to", "1234567890123456:1"], "--to must be an IPv4 address and a port"),
        (["send", *PACED, "--to", "localhost:1"], "--to must be an IPv4 address and a port"),
        (
            ["send", *PACED, "--duration", "86400000000000", "--interval", "1000"],
            "a log of 86400000000 rows, more than 4000000",
        ),
        (["send", *PACED, "--output"], "--output needs a value"),
        (["send", *PACED, "--speed", "1"], "unknown option --speed"),
        (["send", *PACED, "--flood=yes"], "--flood=yes does not take a value"),
        (["send", *PACED, "more"], "unexpected argument 'more'"),
        (["receive"], "--port is required"),
        (
            ["receive", "--port", "65536"],
            "--port must be a whole number from 1 to 65535 (got '65536')",
        ),
        (["receive", "--port", "1", "--rows", "4000001"], "--rows must be ... (got '4000001')"),
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
