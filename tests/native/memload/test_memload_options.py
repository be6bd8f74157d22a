"""memload's command line."""

from __future__ import annotations

import pytest

from tests.support.native_programs import Program

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
    "line", ["--closed", "--stored", *(f"--{name} 1" for name in "rate think duration get-fraction warmup linger".split())]
)  # fmt: skip
def test_store_excludes_load_options(memload: Program, line: str) -> None:
    done = memload.run("--server", "127.0.0.1:1", "--store", *line.split())
    memload.check_refused(done, 2, f"--store excludes {line.split()[0]}")
