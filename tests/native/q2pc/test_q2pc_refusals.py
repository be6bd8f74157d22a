"""What q2pc refuses."""

from __future__ import annotations

import shlex

import pytest

from tests.support.native_programs import Program

UDP = "coordinate --transport udp --duration 1000000"
PEERS = "--peers 127.0.0.1:7331"
BROADCAST = "coordinate --transport broadcast --duration 1000000"
TO_ALL = "--broadcast 127.255.255.255:7331 --clients 2"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "expected coordinate or serve as the first word (got '')"),
        ("lead", "as the first word (got 'lead')"),
        ("coordinate", "--transport is required"),
        ("coordinate --transport udp", "--duration is required"),
        ("coordinate --transport sctp --duration 1", "--transport must be tcp, udp or broadcast (got 'sctp')"),
        (UDP, "--transport udp needs --peers, not --broadcast and --clients"),
        (f"{UDP} {PEERS} {TO_ALL}", "needs --peers, not --broadcast and --clients"),
        (f"{UDP} --peers ''", "--peers must be 1 to 64 IPv4 addresses with ports ... (got '')"),
        *((f"{UDP} --peers {bad}", "must be 1 to 64 IPv4 addresses with ports")
          for bad in ("127.0.0.1", "127.0.0.1:1,", ",".join(["127.0.0.1:1"] * 65))),
        (f"{UDP} {PEERS} --wait 1", "--wait needs --transport broadcast"),
        (f"{UDP} {PEERS} --rto 0", "--rto must be a whole number from 1 ... (got '0')"),
        (f"{UDP} {PEERS} --message 15", "--message must be a whole number from 16 to 1472 (got '15')"),
        (f"{UDP} {PEERS} --message 1473", "--message must be ... (got '1473')"),
        (f"{UDP} {PEERS} --requests 0", "--requests must be a whole number from 1 to 4000000 (got '0')"),
        (f"{UDP} {PEERS} more", "unexpected argument 'more'"),
        (BROADCAST, "--transport broadcast needs --broadcast and --clients, not --peers"),
        (f"{BROADCAST} {TO_ALL} {PEERS}", "not --peers"),
        (f"{BROADCAST} {TO_ALL} --clients 65", "--clients must be ... (got '65')"),
        (f"{BROADCAST} {TO_ALL} --broadcast 10.0.0.255", "must be an IPv4 address and a port"),
        (f"{BROADCAST} {TO_ALL} --rto 1", "--rto needs --transport udp"),
        ("serve", "--port is required"),
        ("serve --port 7331", "--transport is required"),
        ("serve --port 7331 --transport broadcast", "--client is required with --transport broadcast"),
        ("serve --port 7331 --transport tcp --client 1", "--client needs --transport broadcast"),
        ("serve --port 7331 --transport broadcast --client 64", "--client must be a whole number from 0 to 63 (got '64')"),
    ],
)  # fmt: skip
def test_bad_line_is_refused_in_one_sentence(q2pc: Program, line: str, said: str) -> None:
    q2pc.check_refused(q2pc.run(*shlex.split(line)), 2, said)
