"""IP_TOS, a program's own choice, and what leaves on the wire."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.native.app_util.qjau import IS_ROOT, LIBRARY, PRELUDE, PROGRAMS, AppUtil, Words, run


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


class Wire:
    """A network namespace that counts what leaves by priority, after the socket and before any
    qdisc."""

    def __init__(self, name: str) -> None:
        self.inside: Words = ["ip", "netns", "exec", name]
        self.seen: dict[str, Counter[int]] = {}

    def counts(self, match: str) -> dict[int, int]:
        """Packets of a match by priority, since the last call for it."""
        text = run([*self.inside, "nft", "list", "ruleset"]).stdout
        found = re.findall(rf'packets (\d+) bytes \d+ comment "{match} (\d)"', text)
        assert len(found) == 8
        now = Counter({int(priority): int(packets) for packets, priority in found})
        new = now - self.seen.get(match, Counter())
        self.seen[match] = now
        return dict(new)


@pytest.fixture
def wire() -> Iterator[Wire]:
    if not IS_ROOT or not all(map(shutil.which, ["nft", "ip", "ping", "iperf3"])):
        pytest.skip("needs root, nft, ip, ping and iperf3")
    name = f"qjau{os.getpid()}"
    matches = {"echo": "icmp type echo-request", "echo6": "icmpv6 type echo-request", "iperf": "tcp dport 5201",
               "synack": "tcp sport 7000 tcp flags & (syn|ack) == (syn|ack)", "served": "tcp sport 7000"}  # fmt: skip
    rules = "table inet t { chain c { type filter hook postrouting priority 0;\n"
    for match, rule in matches.items():
        rules += "".join(
            f'meta priority 0:{p} {rule} counter comment "{match} {p}"\n' for p in range(8)
        )
    with ExitStack() as stack:
        subprocess.run(["ip", "netns", "add", name], check=True)
        stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=True)
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        made = Wire(name)
        if run([*made.inside, "nft", "add", "table", "inet", "t"]).returncode != 0:
            pytest.skip("this kernel has no nf_tables")
        subprocess.run(
            [*made.inside, "nft", "-f", "-"], input=rules + "}\n}\n", text=True, check=True
        )
        yield made


@pytest.mark.parametrize(("address", "match"), [("127.0.0.1", "echo"), ("::1", "echo6")])
def test_ping_on_the_wire(app: AppUtil, wire: Wire, address: str, match: str) -> None:
    ping: Words = ["ping", "-c", "3", "-i", "0.01", "-Q", "0x08", address]
    assert run([*wire.inside, *ping]).returncode == 0
    assert 6 not in wire.counts(match)
    assert run([*wire.inside, *LIBRARY, app.command, "-p", "6", *ping]).returncode == 0
    assert wire.counts(match) == {6: 3}


def test_iperf3_with_a_tos_on_the_wire(app: AppUtil, wire: Wire) -> None:
    def transfer(*under: str | Path) -> dict[int, int]:
        argv = [*wire.inside, "iperf3", "-s", "-1", "--forceflush"]
        with subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as server:
            assert server.stdout is not None
            while "listening" not in server.stdout.readline():
                assert server.poll() is None
            client = [*wire.inside, *under, "iperf3", "-c", "127.0.0.1", "-S", "0x08", "-n", "100K"]
            assert run(client).returncode == 0
            server.communicate(timeout=20)
        return wire.counts("iperf")

    assert 2 in transfer(), "without qjau the kernel's table puts the data at 2"
    assert set(transfer(*LIBRARY, app.command, "-p", "6")) == {6}


def test_a_server_on_the_wire(app: AppUtil, wire: Wire) -> None:
    """The listener answers at its priority; what the kernel acknowledges before accept() returns
    goes out at 0."""
    text = (
        PRELUDE
        + """
l = socket.create_server(("127.0.0.1", 7000)); env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
client = "import socket; s = socket.create_connection(('127.0.0.1', 7000)); s.sendall(b'x' * 9); s.recv(1); s.recv(1)"
p = subprocess.Popen([sys.executable, "-c", client], env=env); a = l.accept()[0]; a.recv(9); a.sendall(b"x"); a.close()
p.wait()"""
    )
    assert (
        run([*wire.inside, *LIBRARY, app.command, "-p", "6", sys.executable, "-c", text]).returncode
        == 0
    )
    assert set(wire.counts("synack")) == {6}
    served = wire.counts("served")
    assert 6 in served and set(served) <= {0, 6}
