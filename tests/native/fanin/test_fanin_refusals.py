"""What fanin refuses."""

from __future__ import annotations

import shlex

import pytest

from tests.support.native_programs import Program

TO = "send --to 127.0.0.1:5000"
PACED = f"{TO} --interval 1000000 --duration 1000000"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "expected send or receive as the first word (got '')"),
        ("transmit", "as the first word (got 'transmit')"),
        ("send", "--to is required"),
        (TO, "--duration is required"),
        (f"{TO} --duration 1", "--interval or --flood is required"),
        (f"{PACED} --flood", "--flood excludes --interval"),
        (f"{TO} --duration 1 --flood --burst 2", "--flood excludes --interval, --streams, --burst and --phase"),
        (f"{TO} --duration 1 --flood --phase 0", "and --phase"),
        (f"{PACED} --phase 1000001", "--phase is 1000001, more than --interval, 1000000"),
        (f"{PACED} --phase -1", "--phase must be a whole number from 0 ... (got '-1')"),
        (f"{PACED} --interval 0", "--interval must be a whole number from 1 to 86400000000000 (got '0')"),
        *((f"{PACED} --interval '{bad}'", f"--interval must be ... (got '{bad}')")
          for bad in ("86400000000001", "99999999999999999999", "5ms", "-1", "")),
        (f"{PACED} --payload 23", "--payload must be a whole number from 24 to 65507 (got '23')"),
        (f"{PACED} --payload 65508", "--payload must be ... (got '65508')"),
        *((f"{PACED} --to {bad}", "--to must be an IPv4 address and a port")
          for bad in ("127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.256:1", "1234567890123456:1", "localhost:1")),
        (f"{PACED} --duration 86400000000000 --interval 1000", "a log of 86400000000 rows, more than 4000000"),
        (f"{PACED} --output", "--output needs a value"),
        (f"{PACED} --speed 1", "unknown option --speed"),
        (f"{PACED} --flood=yes", "--flood=yes does not take a value"),
        (f"{PACED} more", "unexpected argument 'more'"),
        ("receive", "--port is required"),
        ("receive --port 65536", "--port must be a whole number from 1 to 65535 (got '65536')"),
        ("receive --port 1 --rows 4000001", "--rows must be ... (got '4000001')"),
    ],
)  # fmt: skip
def test_bad_line_is_refused_in_one_sentence(fanin: Program, line: str, said: str) -> None:
    fanin.check_refused(fanin.run(*shlex.split(line)), 2, said)
