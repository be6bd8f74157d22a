"""shuffle's command line."""

from __future__ import annotations

import pytest

from tests.support.native_programs import Program

GOOD = ["master", "--workers", "127.0.0.1:1,127.0.0.1:2", "--rounds", "1", "--shuffle", "1"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "expected worker or master as the first word (got '')"),
        (["slave"], "as the first word (got 'slave')"),
        (["--rounds", "1"], "as the first word (got '--rounds')"),
        (["worker"], "--listen is required"),
        (["worker", "--listen", "1", "--seed", "1"], "unknown option --seed"),
        (["worker", "--listen", "0"], "--listen must be ... (got '0')"),
        (["worker", "--listen", "65536"], "--listen must be ... (got '65536')"),
        (["worker", "--listen", "1", "2"], "unexpected argument '2'"),
        ([*GOOD, "--listen", "1"], "unknown option --listen"),
        (["master", "--rounds", "1", "--shuffle", "1"], "--workers is required"),
        (["master", "--workers", "127.0.0.1:1", "--aggregate", "1"], "give --rounds, --duration or both"),
        (["master", "--workers", "127.0.0.1:1", "--rounds", "1", "--shuffle", "1"], "there is nothing to copy"),
        ([*GOOD, "--rounds", "40000"], "--transfers is 100000, too few for 40000 rounds, give 120000"),
        ([*GOOD, "--workers", "127.0.0.1:1,"], "--workers must be 1 to 64 IPv4 addresses ... (got '127.0.0.1:1,')"),
        ([*GOOD, "--workers", "127.0.0.1:1 127.0.0.1:2"], "--workers must be ... (got '127.0.0.1:1 127.0.0.1:2')"),
        ([*GOOD, "--workers", ",".join(["127.0.0.1:1"] * 65)], "must be 1 to 64 IPv4 addresses with ports"),
        ([*GOOD, "--nothing"], "unknown option --nothing"),
        ([*GOOD, "--map"], "--map needs a value"),
        *(([*GOOD, f"--{option}", bad], f"--{option} must be ... (got '{bad}')") for option, bad in (
            ("rounds", "0"), ("rounds", "x"), ("duration", "0"), ("duration", "1s"), ("distribute", "-1"), ("shuffle", "1k"),
            ("aggregate", "1099511627777"), ("parallel", "0"), ("parallel", "65"), ("map", ""), ("jitter", "1.01"), ("jitter", "-0.5"),
            ("transfers", "0"), ("seed", "9223372036854775808"))),
    ],
)  # fmt: skip
def test_a_wrong_command_line(shuffle: Program, words: list[str], sentence: str) -> None:
    shuffle.check_refused(shuffle.run(*words), 2, sentence)
