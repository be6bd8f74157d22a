"""What fanin refuses, and its manual page."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.measured import NATIVE, check_refused

TO = ["--to", "127.0.0.1:5000"]
PACED = [*TO, "--interval", "1000000", "--duration", "1000000"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the first word is ''"),
        (["transmit"], "the first word is 'transmit'"),
        (["send"], "--to is missing"),
        (["send", *TO], "--duration is missing"),
        (["send", *TO, "--duration", "1"], "--interval is missing; give it, or --flood"),
        (["send", *PACED, "--flood"], "leave out --interval"),
        (["send", *TO, "--duration", "1", "--flood", "--burst", "2"], "leave out --interval, --streams and --burst"),
        (["send", *PACED, "--interval", "0"], "--interval '0' is not a number of nanoseconds from 1 to 86400000000000"),
        (["send", *PACED, "--interval", "86400000000001"], "'86400000000001' is not"),
        (["send", *PACED, "--interval", "99999999999999999999"], "'99999999999999999999' is not"),
        (["send", *PACED, "--interval", "5ms"], "'5ms' is not"),
        (["send", *PACED, "--interval", "-1"], "'-1' is not"),
        (["send", *PACED, "--interval", ""], "'' is not"),
        (["send", *PACED, "--payload", "23"], "--payload '23' is not a number of bytes from 24 to 65507"),
        (["send", *PACED, "--payload", "65508"], "'65508' is not"),
        (["send", *PACED, "--to", "127.0.0.1"], "not an IPv4 address and a port"),
        (["send", *PACED, "--to", "127.0.0.1:0"], "not an IPv4 address and a port"),
        (["send", *PACED, "--to", "127.0.0.1:65536"], "not an IPv4 address and a port"),
        (["send", *PACED, "--to", "127.0.0.256:1"], "not an IPv4 address and a port"),
        (["send", *PACED, "--to", "1234567890123456:1"], "not an IPv4 address and a port"),
        (["send", *PACED, "--to", "localhost:1"], "not an IPv4 address and a port"),
        (["send", *PACED, "--duration", "86400000000000", "--interval", "1000"], "a log of 86400000000 rows, more than 4000000"),
        (["send", *PACED, "--output", "/nowhere/log"], "--output '/nowhere/log' cannot be written (No such file or directory)"),
        (["send", *PACED, "--output"], "option --output lacks its value"),
        (["send", *PACED, "--speed", "1"], "there is no option --speed"),
        (["send", *PACED, "--flood=yes"], "or it takes no value"),
        (["send", *PACED, "more"], "'more' is left over"),
        (["receive"], "--port is missing"),
        (["receive", "--port", "65536"], "--port '65536' is not a port from 1 to 65535"),
        (["receive", "--port", "1", "--rows", "4000001"], "--rows '4000001' is not"),
    ],
)
def test_refused(fanin: Path, words: list[str], said: str) -> None:
    check_refused([fanin, *words], said)


@pytest.mark.parametrize("role", ["send", "receive"])
def test_help_and_manual_agree(fanin: Path, role: str) -> None:
    manual = (NATIVE / "fanin" / "fanin.1").read_text()
    told = subprocess.check_output([fanin, role, "--help"], text=True)
    options = set(re.findall(r"^  --(\w+)", told, re.MULTILINE))
    assert options and options | set(re.findall(r"--(\w+)", told)) <= set(re.findall(r"Fl -(\w+)", manual)) | {"help"}
    columns = re.search(r"[Cc]olumns: ([\w ]+)", told)
    assert columns and set(columns[1].split()) <= set(manual.split())


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_the_manual_is_well_formed() -> None:
    result = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", NATIVE / "fanin" / "fanin.1"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")


def test_what_is_installed(fanin: Path, tmp_path: Path) -> None:
    argv = ["make", "-C", str(NATIVE / "fanin"), f"BUILD={fanin.parent}", f"DESTDIR={tmp_path}", "PREFIX=/opt/q", "install"]
    subprocess.run(argv, capture_output=True, check=True)
    files = {str(path.relative_to(tmp_path / "opt/q")) for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"bin/fanin", "share/man/man1/fanin.1"}
