"""What nsping refuses."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.native_programs import Program

GOOD = ["--to", "127.0.0.1", "--interval", "1000000", "--count", "1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--to is required"),
        (GOOD[2:], "--to is required"),
        ([*GOOD[:2], *GOOD[4:]], "--interval is required"),
        (GOOD[:4], "--count is required"),
        *(([*GOOD, "--to", bad], f"--to must be the IPv4 address of a host, as in 10.0.0.1 (got '{bad}')")
          for bad in ("", "127.0.0.1:1", "127.0.0.256", "127.0.0", "127.1", "1234567890123456", "localhost", "::1", " 127.0.0.1",
                      "127.0.0.1,127.0.0.2", "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255")),
        *(([*GOOD, "--interval", bad], f"--interval must be a whole number from 1000 to 86400000000000 (got '{bad}')")
          for bad in ("", "0", "999", "86400000000001", "99999999999999999999", "-1000", "+1000", "1ms", "1e6", "1000.0", " 1000")),
        *(([*GOOD, "--count", bad], f"--count must be a whole number from 1 to 10000000 (got '{bad}')")
          for bad in ("", "0", "10000001", "-1", "x")),
        *(([*GOOD, "--payload", bad], f"--payload must be a whole number from 16 to 65507 (got '{bad}')")
          for bad in ("", "0", "15", "65508", "-56", "56B")),
        *(([*GOOD, "--linger", bad], f"--linger must be a whole number from 0 to 86400000000000 (got '{bad}')")
          for bad in ("", "-1", "86400000000001", "5s")),
        ([*GOOD, "--interval", "86400000000000", "--count", "3"], "--count requests at --interval take more than a day"),
        ([*GOOD, "--interval", "8640001", "--count", "10000000"], "--count requests at --interval take more than a day"),
        ([*GOOD, "--output"], "--output needs a value"),
        ([*GOOD, "--port", "1"], "unknown option --port"),
        ([*GOOD, "-c"], "unknown option -c"),
        ([*GOOD, "10.0.0.1"], "unexpected argument '10.0.0.1'"),
    ],
)  # fmt: skip
def test_refused(nsping: Program, words: list[str], said: str) -> None:
    nsping.check_refused(nsping.run(*words), 2, said)


def test_a_full_disk(nsping: Program, answering: list[str]) -> None:
    with nsping.started(*GOOD, "--output", "/dev/full", prefix=answering) as process:
        why = "cannot write --output /dev/full (No space left on device)"
        nsping.check_refused(process.result(), 1, why)


def test_without_the_right_to_a_raw_socket(nsping: Program) -> None:
    without = "setpriv --bounding-set=-net_raw --inh-caps=-net_raw".split()
    prefix = without if os.geteuid() == 0 else []
    with nsping.started(*GOOD, prefix=prefix) as process:
        nsping.check_refused(process.result(), 1, "raw sockets need root or CAP_NET_RAW")


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ("true", "Network is unreachable"),
        ("ip route add blackhole 10.9.0.0/16", "Invalid argument"),
        ("ip route add unreachable 10.9.0.0/16", "No route to host"),
        ("ip route add prohibit 10.9.0.0/16", "Permission denied"),
    ],
)
def test_a_host_to_which_nothing_can_be_sent(
    nsping: Program, answering: list[str], setup: str, said: str
) -> None:
    script = f'ip link set lo up; {setup}; exec "$@"'
    prefix = [*answering, *"unshare --net sh -ec".split(), script, "sh"]
    with nsping.started(*GOOD, "--to", "10.9.0.1", prefix=prefix) as process:
        why = f"cannot send 56 bytes to 10.9.0.1 ({said}), give this host an address"
        nsping.check_refused(process.result(), 1, why)


def test_a_clock_that_is_set(nsping: Program, answering: list[str], tmp_path: Path) -> None:
    """The kernel says so by an error of read(2), which a library says here."""
    source, library = tmp_path / "set.c", tmp_path / "set.so"
    source.write_text("#include <errno.h>\nlong read() { errno = ECANCELED; return -1; }\n")
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-o", library, source], check=True)
    beneath = ["env", "ASAN_OPTIONS=verify_asan_link_order=0", f"LD_PRELOAD={library}"]
    with nsping.started(*GOOD, prefix=[*answering, *beneath]) as process:
        nsping.check_refused(process.result(), 1, "CLOCK_REALTIME was set during the run")
