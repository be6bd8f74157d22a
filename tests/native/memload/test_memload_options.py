"""memload's command line, manual page and installation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.native_programs import Program, check_installed, check_manual

GOOD = ["--server", "127.0.0.1:1", "--rate", "1", "--duration", "1"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "--server is required"),
        (["--server", "127.0.0.1:1", "--rate", "1"], "--duration is required"),
        (["--server", "127.0.0.1:1", "--duration", "1"], "give either --rate (open loop) or --closed"),
        ([*GOOD, "--closed"], "give either --rate (open loop) or --closed"),
        ([*GOOD, "--think", "0"], "--think needs --closed"),
        ([*GOOD, "more"], "unexpected argument 'more'"),
        ([*GOOD, "--nothing"], "unknown option --nothing"),
        ([*GOOD, "-x"], "unknown option -x"),
        ([*GOOD, "--closed=1"], "--closed=1 does not take a value"),
        ([*GOOD, "--seed"], "--seed needs a value"),
        *(([*GOOD, "--server", bad], f"--server must be an IPv4 address ... (got '{bad}')")
          for bad in ("", "127.0.0.1", "127.0.0.1:", ":1", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:1x", "127.0.0.1:+1",
                      "localhost:1", "[::1]:1", "1.2.3.4.5:1")),
        *(([*GOOD, "--rate", bad], f"--rate must be ... (got '{bad}')") for bad in ("", "0", "-1", "nan", "inf", "0x1", "1e9", " 1", "1,5", "1.5.")),
        *(([*GOOD, f"--{option}", bad], f"--{option} must be ... (got '{bad}')") for option, bad in (
            ("connections", "0"), ("connections", "10001"), ("connections", "1.0"), ("connections", "+1"), ("connections", ""),
            ("get-fraction", "1.1"), ("get-fraction", "-0.1"), ("key-bytes", "7"), ("key-bytes", "251"), ("value-bytes", "524289"),
            ("keys", "0"), ("warmup", "1s"), ("duration", "0"), ("duration", "-1"), ("linger", "86400000000001"), ("requests", "0"),
            ("seed", "9223372036854775808"), ("seed", " 1"), ("think", "x"))),
    ],
)  # fmt: skip
def test_a_wrong_command_line(memload: Program, words: list[str], sentence: str) -> None:
    memload.check_refused(memload.run(*words), 2, sentence)


@pytest.mark.parametrize(
    "words",
    [
        ["--rate", "1"],
        ["--closed"],
        ["--think", "1"],
        ["--duration", "1"],
        ["--stored"],
        ["--get-fraction", "1"],
        ["--warmup", "1"],
        ["--linger", "1"],
    ],
)
def test_storing_is_all_that_is_done(memload: Program, words: list[str]) -> None:
    done = memload.run("--server", "127.0.0.1:1", "--store", *words)
    memload.check_refused(done, 2, f"--store excludes {words[0]}")


def test_help_and_manual_agree(memload: Program) -> None:
    check_manual(memload, "due_ns sent_ns done_ns op connection status")


def test_installation(memload: Program, tmp_path: Path) -> None:
    check_installed(memload, tmp_path)
