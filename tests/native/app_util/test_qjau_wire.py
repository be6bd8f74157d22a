"""IP_TOS, a program's own choice, and what leaves on the wire."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.native.app_util.network import ACK, ASK_ONE, SERVER, SYN, THERE, Capture, Network
from tests.native.app_util.qjau import LIBRARY, PRELUDE, PROGRAMS, AppUtil, Words, needs_root, run


@pytest.mark.parametrize("tos", ["0x08", "0x10", "0x02"])
@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
def test_tos_does_not_move_the_priority(app: AppUtil, tos: str, family: str) -> None:
    text = f"s = socket.socket(socket.{family}); s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, {tos})\n"
    text += "print(prio(s), s.getsockopt(socket.IPPROTO_IP, socket.IP_TOS))"
    plain = run([sys.executable, "-c", PRELUDE + text]).stdout.split()
    assert plain[0] == {"0x08": "2", "0x10": "6", "0x02": "0"}[tos]
    assert app.python(text, priority="5") == f"5 {plain[1]}", "the TOS byte itself is still set"


def test_traffic_class_does_not_move_the_priority(app: AppUtil) -> None:
    text = "s = socket.socket(socket.AF_INET6); s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 0x08)\n"
    assert app.python(text + "print(prio(s))", priority="5") == "5"


def test_an_explicit_priority_wins_also_over_a_later_tos(app: AppUtil) -> None:
    text = "s = socket.socket(); s.setsockopt(1, socket.SO_PRIORITY, 3); print(prio(s))\n"
    assert app.python(text + "s.setsockopt(0, socket.IP_TOS, 8); print(prio(s))") == "3\n3"


def test_tos_undoes_no_priority_of_another_thread(app: AppUtil) -> None:
    """Nor does it hang in a signal handler, or in a child that was forked while another thread held
    the lock."""
    race = app.compile("race", (PROGRAMS / "race.c").read_text(), "-pthread")
    assert app.run(race, "20001").stdout == "0 0\n"


def test_a_failing_tos_fails_as_before(app: AppUtil) -> None:
    text = """import ctypes; libc = ctypes.CDLL(None, use_errno=True); four = ctypes.byref(ctypes.c_int(8)), 4
for fd, value, length in ((-1, *four), (os.pipe()[0], *four), (socket.socket().detach(), None, 4)):
    print(libc.setsockopt(fd, 0, socket.IP_TOS, value, length), errno.errorcode[ctypes.get_errno()])"""
    plain = run([sys.executable, "-c", PRELUDE + text]).stdout
    assert plain.split() == ["-1", "EBADF", "-1", "ENOTSOCK", "-1", "EFAULT"]
    assert app.python(text) == plain.strip()


@contextmanager
def capture(app: AppUtil, network: Network, marked: bool) -> Iterator[tuple[Capture, Words]]:
    """What leaves while the block runs, and a prefix for programs, which qjau marks or not."""
    under = [*LIBRARY, app.command, "-p", "6"] if marked else []
    with network.captured() as packets:
        yield packets, network.here(*under)


@needs_root
@pytest.mark.skipif(not shutil.which("ping"), reason="ping is not installed")
@pytest.mark.parametrize("marked", [False, True])
def test_ping_on_the_wire(app: AppUtil, network: Network, marked: bool) -> None:
    with capture(app, network, marked) as (packets, prefix):
        ping = ["ping", "-c", "3", "-i", "0.01", "-Q", "0x08", THERE]
        assert run([*prefix, *ping]).returncode == 0
    level = 6 if marked else 2  # by the kernel's table for that TOS
    assert packets.packets == [(level, socket.IPPROTO_ICMP, 0)] * 3


@needs_root
@pytest.mark.skipif(not shutil.which("iperf3"), reason="iperf3 is not installed")
@pytest.mark.parametrize("marked", [False, True])
def test_iperf3_with_a_tos_on_the_wire(app: AppUtil, network: Network, marked: bool) -> None:
    with capture(app, network, marked) as (packets, prefix):
        argv = network.there("iperf3", "-s", "-1", "--forceflush")
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            while "listening" not in server.stdout.readline():
                assert server.poll() is None
            client = ["iperf3", "-c", THERE, "-S", "0x08", "-n", "100K"]
            assert run([*prefix, *client]).returncode == 0
            server.communicate(timeout=20)
    assert packets.priorities == {6} if marked else 2 in packets.priorities


@needs_root
def test_a_server_on_the_wire(app: AppUtil, network: Network) -> None:
    """The listener answers at its priority; what the kernel acknowledges before accept() returns
    goes out at 0."""
    with (
        capture(app, network, True) as (packets, prefix),
        subprocess.Popen([*prefix, sys.executable, "-c", SERVER]) as server,
    ):
        assert run(network.there(sys.executable, "-c", ASK_ONE)).returncode == 0
        assert server.wait(20) == 0
    assert packets.tcp(SYN | ACK) == {6: 1}
    assert 6 in packets.tcp(ACK) and packets.priorities <= {0, 6}
