"""What q2pc refuses, and its manual page."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.measured import NATIVE, check_refused

UDP = ["coordinate", "--transport", "udp", "--duration", "1000000"]
PEERS = ["--peers", "127.0.0.1:7331"]
BROADCAST = ["coordinate", "--transport", "broadcast", "--duration", "1000000"]
TO_ALL = ["--broadcast", "127.255.255.255:7331", "--clients", "2"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the first word is ''"),
        (["lead"], "the first word is 'lead'"),
        (["coordinate"], "--transport is missing"),
        (["coordinate", "--transport", "udp"], "--duration is missing"),
        (["coordinate", "--transport", "sctp", "--duration", "1"], "--transport 'sctp' is not known; make it tcp, udp or broadcast"),
        (UDP, "--transport udp needs --peers"),
        ([*UDP, *PEERS, *TO_ALL], "and neither --broadcast nor --clients"),
        ([*UDP, "--peers", ""], "--peers '' is not a list of addresses"),
        ([*UDP, "--peers", "127.0.0.1"], "not a list of at most 64 addresses"),
        ([*UDP, "--peers", "127.0.0.1:1,"], "not a list of at most 64 addresses"),
        ([*UDP, "--peers", ",".join(["127.0.0.1:1"] * 65)], "not a list of at most 64 addresses"),
        ([*UDP, *PEERS, "--wait", "1"], "--wait is for --transport broadcast"),
        ([*UDP, *PEERS, "--rto", "0"], "--rto '0' is not a number of nanoseconds from 1"),
        ([*UDP, *PEERS, "--message", "15"], "--message '15' is not a number of bytes from 16 to 1472"),
        ([*UDP, *PEERS, "--message", "1473"], "'1473' is not"),
        ([*UDP, *PEERS, "--requests", "0"], "--requests '0' is not a number of requests from 1 to 4000000"),
        ([*UDP, *PEERS, "--output", "/nowhere/log"], "--output '/nowhere/log' cannot be written"),
        ([*UDP, *PEERS, "more"], "'more' is left over"),
        (BROADCAST, "--transport broadcast needs --broadcast and --clients, and no --peers"),
        ([*BROADCAST, *TO_ALL, *PEERS], "and no --peers"),
        ([*BROADCAST, *TO_ALL, "--clients", "65"], "--clients '65' is not"),
        ([*BROADCAST, *TO_ALL, "--broadcast", "10.0.0.255"], "not an IPv4 address and a port"),
        ([*BROADCAST, *TO_ALL, "--rto", "1"], "--rto is for --transport udp"),
        (["serve"], "--port is missing"),
        (["serve", "--port", "7331"], "--transport is missing"),
        (["serve", "--port", "7331", "--transport", "broadcast"], "--client is for --transport broadcast, and needed there"),
        (["serve", "--port", "7331", "--transport", "tcp", "--client", "1"], "leave it out"),
        (["serve", "--port", "7331", "--transport", "broadcast", "--client", "64"], "--client '64' is not a number from 0 to 63"),
    ],
)
def test_refused(q2pc: Path, words: list[str], said: str) -> None:
    check_refused([q2pc, *words], said)


@pytest.mark.parametrize("role", ["coordinate", "serve"])
def test_help_and_manual_agree(q2pc: Path, role: str) -> None:
    manual = (NATIVE / "q2pc" / "q2pc.1").read_text()
    told = subprocess.check_output([q2pc, role, "--help"], text=True)
    options = set(re.findall(r"--(\w+)", told))
    assert len(options) > 3 and options <= set(re.findall(r"Fl -(\w+)", manual))
    columns = re.search(r"[Cc]olumns: ([\w ]+)", told)
    assert columns and set(columns[1].split()) <= set(manual.split())


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_the_manual_is_well_formed() -> None:
    result = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", NATIVE / "q2pc" / "q2pc.1"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")


def test_what_is_installed(q2pc: Path, tmp_path: Path) -> None:
    argv = ["make", "-C", str(NATIVE / "q2pc"), f"BUILD={q2pc.parent}", f"DESTDIR={tmp_path}", "PREFIX=/opt/q", "install"]
    subprocess.run(argv, capture_output=True, check=True)
    files = {str(path.relative_to(tmp_path / "opt/q")) for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"bin/q2pc", "share/man/man1/q2pc.1"}
