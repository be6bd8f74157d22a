"""qjau --cgroup: everything that real programs send goes out at the priority, whatever made the
socket."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.native.app_util.cgroup import CLIENT, compiled, sent_by, under
from tests.native.app_util.network import ACK, ASK_ONE, HERE, PORT, RST, SERVER, SYN, THERE, Network
from tests.native.app_util.qjau import LIBRARY, NOBODY, AppUtil, Words, needs_root, run

pytestmark = needs_root


@pytest.mark.parametrize("priority", [0, 1, 7])
def test_a_static_program(app: AppUtil, network: Network, priority: int) -> None:
    client = compiled(app, "client", "-static")
    assert sent_by(network, client, *CLIENT).priorities == {0}
    assert sent_by(network, *under(app, client, *CLIENT, priority=priority)).priorities == {
        priority
    }


@pytest.mark.parametrize(
    "wrapper",
    [
        "",
        "nice",
        "timeout 9",
        "taskset -c 0",
        "stdbuf -oL",
        "env -i",
        'sh -c exec\\ "$@" sh',
        "sh {script}",
    ],
)
def test_by_default_whatever_starts_it(
    app: AppUtil, network: Network, tmp_path: Path, wrapper: str
) -> None:
    client, script = compiled(app, "client", "-static"), tmp_path / "script"
    script.write_text('"$@"; exit\n')
    argv = shlex.split(wrapper.format(script=script))
    assert sent_by(network, app.command, "-p", "6", *argv, client, *CLIENT).priorities == {6}


def test_the_library_alone_where_it_is_asked_for(app: AppUtil) -> None:
    by_library: Words = [app.command, "-p", "6", "--library", "--"]
    assert "qjau-" not in run([*by_library, "cat", "/proc/self/cgroup"]).stdout
    refused = run([*by_library, compiled(app, "client", "-static"), *CLIENT])
    assert refused.returncode == 126 and refused.stderr.endswith(", but --library was given\n")
    both = run([app.command, "-p", "6", "--library", "--cgroup", "true"])
    assert both.returncode == 2 and "exclude each other" in both.stderr


@pytest.mark.parametrize(
    ("mode", "by_library"),
    [
        ("all", {0}),  # the library sees none of it
        ("send", {6}),  # what io_uring sends has its socket's priority
        ("tos", {2, 6}),  # and IP_TOS moves that, when io_uring sets it
    ],
)
def test_io_uring(app: AppUtil, network: Network, mode: str, by_library: set[int]) -> None:
    ring = compiled(app, "ring")
    alone = sent_by(network, *LIBRARY, app.command, "-p", "6", ring, *CLIENT, mode)
    assert alone.priorities == by_library
    assert sent_by(network, *under(app, ring, *CLIENT, mode)).priorities == {6}


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_a_go_client(app: AppUtil, network: Network, go: dict[str, Path], kind: str) -> None:
    argv: Words = [go[kind], "client", f"{THERE}:{PORT}"]
    assert sent_by(network, *argv).priorities == {0}
    assert sent_by(network, *under(app, *argv)).priorities == {6}


def test_a_setuid_program_of_another_user(app: AppUtil, network: Network) -> None:
    client = compiled(app, "client")
    client.chmod(0o4755)
    other: Words = ["setpriv", "--reuid", str(NOBODY), "--clear-groups", client, *CLIENT]
    assert sent_by(network, *under(app, *other)).priorities == {6}


@pytest.mark.parametrize(
    "moves",
    [
        "s.setsockopt(0, socket.IP_TOS, 0x08)",
        "s.setsockopt(1, socket.SO_PRIORITY, 3)",
        "send = lambda data: s.sendmsg([data], [(0, socket.IP_TOS, b'\\x02')])",
    ],
)
def test_no_option_moves_it(app: AppUtil, network: Network, moves: str) -> None:
    assert datagrams(network, moves, *under(app)) == {6}


OF_A_PACKET = "send = lambda data: s.sendmsg([data], [(1, socket.SO_PRIORITY, b'\\x03\\0\\0\\0')])"


def test_a_priority_as_a_control_message(app: AppUtil, network: Network) -> None:
    """It is the program's own choice, as the socket's option is."""
    if not datagrams(network, OF_A_PACKET):
        pytest.skip("this kernel takes no SO_PRIORITY as a control message (Linux 6.14)")
    assert datagrams(network, OF_A_PACKET, *LIBRARY, app.command, "-p", "6") == {3}
    assert datagrams(network, OF_A_PACKET, *under(app)) == {6}


def datagrams(network: Network, moves: str, *before: str | Path) -> set[int]:
    """The priorities at which three datagrams go out, sent by `send` after `moves`; none if the
    kernel refuses it."""
    text = f"""import errno, socket
s = socket.socket(type=socket.SOCK_DGRAM); s.connect(("{THERE}", 9)); send = s.send; {moves}
for _ in range(3):
    try: send(b"x")
    except ConnectionRefusedError: pass
    except OSError as error: assert error.errno == errno.EINVAL"""
    with network.captured() as packets:
        assert run(network.here(*before, sys.executable, "-c", text)).returncode == 0
    assert len(packets.packets) != 1
    return packets.priorities


ANSWERED = re.sub("(listener|connection) = .*?;", r"\g<0> \1.setsockopt(1, socket.SO_PRIORITY, 6);", SERVER)  # fmt: skip
ANSWERED = ANSWERED.replace("time.sleep(0.1)", "")
"""The same that marks its own sockets, without a pause before accept()."""


@pytest.mark.parametrize("cookies", [1, 2])
def test_a_server_from_the_syn_ack_to_time_wait(
    app: AppUtil, network: Network, cookies: int
) -> None:
    """With SYN cookies (2: always) the kernel answers without a socket; before accept(), in the
    pause, it acknowledges by itself; after close() what is in TIME_WAIT does."""
    run(network.here("sysctl", "-qw", f"net.ipv4.tcp_syncookies={cookies}"))
    assert not served_by(network, *under(app, sys.executable, "-c", SERVER)) - forgotten(network)


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_a_go_server(app: AppUtil, network: Network, go: dict[str, Path], kind: str) -> None:
    argv = under(app, go[kind], "server", f"{HERE}:{PORT}")
    assert not served_by(network, *argv) - forgotten(network)


def forgotten(network: Network) -> Counter[tuple[int, int]]:
    """What the kernel sends at 0 though SO_PRIORITY says 6. From Linux 6.14 on these are its own
    answers over IPv4 for a connection in TIME_WAIT."""
    found = served_by(network, sys.executable, "-c", ANSWERED)
    assert set(found) <= {(socket.IPPROTO_TCP, ACK)} and found.total() <= 1
    return found


def served_by(network: Network, *argv: str | Path) -> Counter[tuple[int, int]]:
    """Protocol and flags of what leaves with another priority than 6 while one client is served."""
    with network.captured() as packets, subprocess.Popen(network.here(*argv)) as server:
        result = run(network.there(sys.executable, "-c", ASK_ONE))
        assert (result.returncode, server.wait(20)) == (0, 0), result.stderr
    assert sum(packets.tcp(SYN | ACK).values()) == 1 and len(packets.packets) >= 4
    # A connection refused while the server was starting is the kernel's answer, not the server's.
    return Counter(
        (protocol, flags)
        for priority, protocol, flags in packets.packets
        if priority != 6 and not flags & RST
    )


def test_accepted_connections_have_it_as_their_option(app: AppUtil) -> None:
    """Which is what goes out for them when they are closed: in TIME_WAIT, and resets."""
    text = """import socket
l = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(l.getsockname()); a = l.accept()[0]
print([s.getsockopt(1, socket.SO_PRIORITY) for s in (l, c, a)])"""
    assert run([sys.executable, "-c", text]).stdout == "[0, 0, 0]\n"
    assert run(under(app, sys.executable, "-c", text)).stdout == "[6, 6, 6]\n"


def test_a_server_that_nobody_marks(network: Network) -> None:
    assert served_by(network, sys.executable, "-c", SERVER).total() >= 4


# --- inherited sockets
# ------------------------------------------------------------------------------------------------


def test_an_inherited_connection(app: AppUtil, network: Network) -> None:
    text = f"""import socket, subprocess
s = socket.create_connection(("{THERE}", {PORT}))
subprocess.run({[str(word) for word in under(app, "/bin/echo", "hello")]}, stdout=s, check=True); s.shutdown(1); s.recv(9)"""
    with network.serving(), network.captured() as packets:
        result = run(network.here(sys.executable, "-c", text))
        assert result.returncode == 0, result.stderr
    assert packets.tcp(SYN) == {0: 1}, "before qjau"
    assert packets.tcp(ACK)[6] >= 2, "what was written, and the end"


LISTENS = """import os, socket, sys
l = socket.create_server(("127.0.0.1", 0)); l.set_inheritable({inheritable}); os.execv(sys.argv[1], sys.argv[1:])"""


def test_an_inherited_listener_is_refused(app: AppUtil) -> None:
    argv = under(app, "true")
    result = run([sys.executable, "-c", LISTENS.format(inheritable=True), *argv])
    assert (result.returncode, result.stdout) == (125, "")
    assert (
        "is an inherited listening socket" in result.stderr
        and "put qjau --cgroup before" in result.stderr
    )
    assert run([sys.executable, "-c", LISTENS.format(inheritable=False), *argv]).returncode == 0


def test_a_listener_that_is_handed_on_inside(app: AppUtil, network: Network) -> None:
    """As inetd and systemd-socket-activate do it."""
    text = f"""import os, socket
l = socket.create_server(("{HERE}", {PORT})); c = l.accept()[0]; c.recv(9); os.dup2(c.fileno(), 1); c.close()
os.execv("/bin/echo", ["echo", "hello"])"""
    assert not served_by(network, *under(app, sys.executable, "-c", text)) - forgotten(network)
