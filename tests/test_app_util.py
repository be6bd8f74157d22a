"""native/app-util: the qjau command and libqjau.so, with real programs and sockets on this host's loopback."""

from __future__ import annotations

import os
import re
import resource
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "native" / "app-util"
NOBODY = 65534
IS_ROOT = os.geteuid() == 0
Words = Sequence[str | Path]
needs_root = pytest.mark.skipif(not IS_ROOT, reason="makes setuid files, network namespaces or other users' processes")

# Prints: priority of a listener, an accept()ed socket and a socket after IP_TOS 0x08; errno after each, 42 if kept.
PROBE = r"""
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
static int priority(int fd) { int v = -1; socklen_t l = sizeof v;
  getsockopt(fd, SOL_SOCKET, SO_PRIORITY, &v, &l); return v; }
int main(void) {
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t length = sizeof at; int tos = 8, made, taken, set;
  errno = 42; int listener = socket(AF_INET, SOCK_STREAM, 0); made = errno;
  bind(listener, (void *)&at, sizeof at); listen(listener, 1); getsockname(listener, (void *)&at, &length);
  int client = socket(AF_INET, SOCK_STREAM, 0); connect(client, (void *)&at, sizeof at);
  errno = 42; int accepted = accept(listener, NULL, NULL); taken = errno;
  errno = 42; setsockopt(client, IPPROTO_IP, IP_TOS, &tos, sizeof tos); set = errno;
  printf("%d %d %d %d %d %d\n", priority(listener), priority(accepted), priority(client), made, taken, set);
  return 0; }
"""
PLAIN = "0 0 2 42 42 42\n"  # Linux's table moves 0x08 to priority 2
MARKED = "6 6 6 42 42 42\n"

# Begins a Python child: value(s) of a socket's options.
PRELUDE = """
import errno, fcntl, os, socket, subprocess, sys, threading
def prio(s): return s.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY)
def bufs(s): return s.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF), s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
def pair():
    listener = socket.create_server(("127.0.0.1", 0)); client = socket.create_connection(listener.getsockname())
    return listener, client, listener.accept()[0]
"""


class AppUtil:
    """A built qjau and what the tests run with it. Its folder can be read by every user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.command = folder / "qjau"
        self.library = folder / "libqjau.so"
        self.probe = self.compile("probe", PROBE)

    def compile(self, name: str, text: str, *options: str) -> Path:
        source, output = self.folder / f"{name}.c", self.folder / name
        source.write_text(text)
        subprocess.run(["gcc", "-o", output, source, *options], check=True)
        return output

    def run(
        self,
        *words: str | Path,
        priority: str | None = "6",
        user: int | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run qjau with these words (after -p PRIORITY)."""
        options = [] if priority is None else ["-p", priority]
        return run([self.command, *options, *words], user=user, env=env, cwd=cwd)

    def python(self, text: str, *options: str, priority: str = "6", env: Mapping[str, str] | None = None) -> str:
        """What a Python child under qjau prints; it must end well and without a word on stderr."""
        result = self.run(*options, sys.executable, "-c", PRELUDE + text, priority=priority, env=env)
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout.strip()


def run(
    argv: Words,
    *,
    user: int | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **(env or {})}
    groups = None if user is None else [user]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=environment, cwd=cwd,
                          user=user, group=user, extra_groups=groups)  # fmt: skip


@pytest.fixture(scope="session")
def app() -> Iterator[AppUtil]:
    before = sorted(SOURCE.rglob("*"))
    with tempfile.TemporaryDirectory(prefix="qjau-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        result = run(["make", "-C", SOURCE, f"BUILD={folder}"])
        assert (result.returncode, result.stderr) == (0, "")
        assert sorted(SOURCE.rglob("*")) == before, "an out-of-tree build leaves the sources alone"
        yield AppUtil(folder)


# --- which sockets are marked -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("priority", ["0", "1", "5", "6"])
@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_a_new_socket_has_the_priority(app: AppUtil, priority: str, family: str, kind: str) -> None:
    assert app.python(f"print(prio(socket.socket(socket.{family}, socket.{kind})))", priority=priority) == priority


def test_local_sockets_and_pairs_are_left_alone(app: AppUtil) -> None:
    text = "a, b = socket.socketpair(); c = socket.socket(socket.AF_UNIX); d = socket.socket(socket.AF_NETLINK, 3)\n"
    plain = run([sys.executable, "-c", PRELUDE + text + "print([(prio(s), bufs(s)) for s in (a, b, c, d)])"]).stdout
    assert app.python(text + "print([(prio(s), bufs(s)) for s in (a, b, c, d)])", "-w", "15500") == plain.strip()


def test_an_accepted_local_socket_is_left_alone(app: AppUtil, tmp_path: Path) -> None:
    text = f"""l = socket.socket(socket.AF_UNIX); l.bind({str(tmp_path / "s")!r}); l.listen()
c = socket.socket(socket.AF_UNIX); c.connect(l.getsockname()); print(prio(l.accept()[0]))"""
    assert app.python(text) == "0"


@needs_root
def test_a_packet_socket_gets_the_priority_and_not_the_window(app: AppUtil) -> None:
    text = "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print(prio(s), bufs(s))"
    plain = run([sys.executable, "-c", PRELUDE + text]).stdout
    assert app.python(text, "-w", "15500") == "6" + plain.strip()[1:]


def test_both_ends_and_accepted_sockets_have_priority_and_window(app: AppUtil) -> None:
    assert app.python("print([(prio(s), *bufs(s)) for s in pair()])", "-w", "15500") == str([(6, 31000, 31000)] * 3)


def test_accept_and_errno_in_c(app: AppUtil) -> None:
    assert run([app.probe]).stdout == PLAIN
    assert app.run(app.probe).stdout == MARKED


def test_an_inherited_listener_gives_marked_sockets_with_a_window(app: AppUtil) -> None:
    """The listener is made outside qjau, as inetd and systemd do; nobody has chosen its buffers."""
    inner = PRELUDE + "l = socket.socket(fileno=int(sys.argv[1])); a = l.accept()[0]; print(prio(a), bufs(a))"
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        stack.enter_context(socket.create_connection(listener.getsockname()))
        argv: Words = [app.command, "-p", "6", "-w", "15500", sys.executable, "-c", inner, str(listener.fileno())]
        done = subprocess.run(
            argv, pass_fds=[listener.fileno()], capture_output=True, text=True, timeout=60, check=False
        )
    assert done.stdout == "6 (31000, 31000)\n"


def test_a_programs_own_buffers_win(app: AppUtil) -> None:
    text = """l = socket.socket(); l.setsockopt(1, socket.SO_RCVBUF, 50000); l.bind(("127.0.0.1", 0)); l.listen()
c = socket.create_connection(l.getsockname()); print(bufs(l.accept()[0]))"""
    assert app.python(text, "-w", "15500") == "(31000, 100000)"


def test_threads_and_ten_thousand_sockets(app: AppUtil) -> None:
    text = """
seen = [set() for _ in range(10)]
def work(mine):
    for _ in range(1000):
        with socket.socket(type=socket.SOCK_DGRAM) as s: mine.add((prio(s), *bufs(s)))
before = len(os.listdir("/proc/self/fd"))
threads = [threading.Thread(target=work, args=(mine,)) for mine in seen]
[t.start() for t in threads]; [t.join() for t in threads]
print(set.union(*seen), len(os.listdir("/proc/self/fd")) - before)"""
    assert app.python(text, "-w", "15500") == "{(6, 31000, 31000)} 0"


def test_ten_thousand_open_sockets(app: AppUtil) -> None:
    many = min(10_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 50)
    text = f"""import resource; hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard)); held = [socket.socket() for _ in range({many})]
print(len(held), set(map(prio, held)), max(s.fileno() for s in held) - min(s.fileno() for s in held) + 1)"""
    assert app.python(text) == f"{many} {{6}} {many}"


def test_running_out_of_descriptors_is_the_programs_own_error(app: AppUtil) -> None:
    text = """import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)); held = []
try:
    while True: held.append(socket.socket())
except OSError as e: print(e.errno == errno.EMFILE, set(map(prio, held)))"""
    assert app.python(text) == "True {6}"


# --- inheritance ------------------------------------------------------------------------------------------------------


def test_fork_and_exec_inherit(app: AppUtil) -> None:
    text = f"""
if os.fork() == 0: print(prio(socket.socket()), flush=True); os._exit(0)
os.wait(); subprocess.run(["/bin/sh", "-c", {str(app.probe)!r}])"""
    assert app.python(text) == "6\n" + MARKED.strip()


def test_a_cleaned_environment_loses_it(app: AppUtil) -> None:
    assert app.run("env", "-i", app.probe).stdout == PLAIN


def test_an_existing_preload_stays(app: AppUtil) -> None:
    """The other library makes a socket in its constructor, which may run before ours."""
    text = r"""#include <stdlib.h>
#include <sys/socket.h>
int early_priority = -1;
__attribute__((constructor)) static void construct(void) { socklen_t l = sizeof early_priority;
  getsockopt(socket(AF_INET, SOCK_STREAM, 0), SOL_SOCKET, SO_PRIORITY, &early_priority, &l); }"""
    other = app.compile("libother.so", text, "-shared", "-fPIC")
    text = "import ctypes\nprint(os.environ['LD_PRELOAD'], prio(socket.socket()), end=' ')\n"
    text += "print(ctypes.c_int.in_dll(ctypes.CDLL(None), 'early_priority').value)"
    assert app.python(text, env={"LD_PRELOAD": str(other)}) == f"{app.library}:{other} 6 6"


def test_the_innermost_qjau_wins_and_preloads_once(app: AppUtil) -> None:
    inner = "print(prio(socket.socket()), bufs(socket.socket())[0] == 31000, os.environ['LD_PRELOAD'])"
    result = app.run("-v", "-w", "15500", app.command, "-p", "3", sys.executable, "-c", PRELUDE + inner)
    assert (result.stdout, result.stderr) == (f"3 False {app.library}\n", "")


def test_flags_are_kept(app: AppUtil) -> None:
    text = """l, c, a = pair(); print([fcntl.fcntl(s, fcntl.F_GETFD) for s in (l, c, a)], end=" ")
s = socket.socket(type=socket.SOCK_STREAM | socket.SOCK_NONBLOCK); print(bool(fcntl.fcntl(s, fcntl.F_GETFL) & 0o4000))
l.setblocking(False)
try: l.accept()
except BlockingIOError as e: print(e.errno == errno.EAGAIN)"""
    assert app.python(text) == "[1, 1, 1] True\nTrue"


# --- IP_TOS and a program's own choice --------------------------------------------------------------------------------


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


def test_a_failing_tos_fails_as_before(app: AppUtil) -> None:
    text = """import ctypes; libc = ctypes.CDLL(None, use_errno=True); four = ctypes.byref(ctypes.c_int(8)), 4
for fd, value, length in ((-1, *four), (os.pipe()[0], *four), (socket.socket().detach(), None, 4)):
    print(libc.setsockopt(fd, 0, socket.IP_TOS, value, length), errno.errorcode[ctypes.get_errno()])"""
    plain = run([sys.executable, "-c", PRELUDE + text]).stdout
    assert plain.split() == ["-1", "EBADF", "-1", "ENOTSOCK", "-1", "EFAULT"]
    assert app.python(text) == plain.strip()


class Wire:
    """A network namespace that counts what leaves by priority, after the socket and before any qdisc."""

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
        rules += "".join(f'meta priority 0:{p} {rule} counter comment "{match} {p}"\n' for p in range(8))
    with ExitStack() as stack:
        subprocess.run(["ip", "netns", "add", name], check=True)
        stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=True)
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        made = Wire(name)
        if run([*made.inside, "nft", "add", "table", "inet", "t"]).returncode != 0:
            pytest.skip("this kernel has no nf_tables")
        subprocess.run([*made.inside, "nft", "-f", "-"], input=rules + "}\n}\n", text=True, check=True)
        yield made


@pytest.mark.parametrize(("address", "match"), [("127.0.0.1", "echo"), ("::1", "echo6")])
def test_ping_on_the_wire(app: AppUtil, wire: Wire, address: str, match: str) -> None:
    ping: Words = ["ping", "-c", "3", "-i", "0.01", "-Q", "0x08", address]
    assert run([*wire.inside, *ping]).returncode == 0
    assert 6 not in wire.counts(match)
    assert run([*wire.inside, app.command, "-p", "6", *ping]).returncode == 0
    assert wire.counts(match) == {6: 3}


def test_iperf3_with_a_tos_on_the_wire(app: AppUtil, wire: Wire) -> None:
    def transfer(*under: str | Path) -> dict[int, int]:
        argv = [*wire.inside, "iperf3", "-s", "-1", "--forceflush"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
            assert server.stdout is not None
            while "listening" not in server.stdout.readline():
                assert server.poll() is None
            client = [*wire.inside, *under, "iperf3", "-c", "127.0.0.1", "-S", "0x08", "-n", "100K"]
            assert run(client).returncode == 0
            server.communicate(timeout=20)
        return wire.counts("iperf")

    assert 2 in transfer(), "without qjau the kernel's table puts the data at 2"
    assert set(transfer(app.command, "-p", "6")) == {6}


def test_a_server_on_the_wire(app: AppUtil, wire: Wire) -> None:
    """The listener answers at its priority; what the kernel acknowledges before accept() returns goes out at 0."""
    text = (
        PRELUDE
        + """
l = socket.create_server(("127.0.0.1", 7000)); env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
client = "import socket; s = socket.create_connection(('127.0.0.1', 7000)); s.sendall(b'x' * 9); s.recv(1); s.recv(1)"
p = subprocess.Popen([sys.executable, "-c", client], env=env); a = l.accept()[0]; a.recv(9); a.sendall(b"x"); a.close()
p.wait()"""
    )
    assert run([*wire.inside, app.command, "-p", "6", sys.executable, "-c", text]).returncode == 0
    assert set(wire.counts("synack")) == {6}
    served = wire.counts("served")
    assert 6 in served and set(served) <= {0, 6}


# --- never in the way -------------------------------------------------------------------------------------------------


def test_a_failing_socket_has_the_same_errno(app: AppUtil) -> None:
    text = """for arguments in ((socket.AF_INET, 77), (socket.AF_INET, 1, 999), (99, 1)):
    try: socket.socket(*arguments)
    except OSError as e: print(e.errno)"""
    assert app.python(text) == run([sys.executable, "-c", PRELUDE + text]).stdout.strip() != ""


def test_output_is_the_same_byte_for_byte(app: AppUtil) -> None:
    text = """l, c, a = pair(); c.sendall(b"hello"); print(a.recv(9), l.fileno(), c.fileno(), a.fileno())
print(sorted(os.listdir("/proc/self/fd")), file=sys.stderr); sys.exit(7)"""
    plain = run([sys.executable, "-c", PRELUDE + text])
    marked = app.run("-w", "15500", sys.executable, "-c", PRELUDE + text)
    assert (marked.returncode, marked.stdout, marked.stderr) == (7, plain.stdout, plain.stderr)


@needs_root
def test_a_refused_priority_does_not_stop_a_program(app: AppUtil) -> None:
    """The library, without the command's check: a program that gives up its rights meets this."""
    env = {"LD_PRELOAD": str(app.library), "QJAU_PRIORITY": "7"}
    assert run([app.probe], env=env).stdout == "7 7 7 42 42 42\n"
    refused = run([app.probe], env=env, user=NOBODY)
    assert (refused.returncode, refused.stdout, refused.stderr) == (0, "0 0 0 42 42 42\n", "")
    told = run([app.probe], env={**env, "QJAU_VERBOSE": "1"}, user=NOBODY)
    assert told.stderr.count("priority 0 (7 refused: not permitted)") == 3


@pytest.mark.parametrize("value", ["", "6x", "8", "-1", " 6", "99999999999", "4294967302"])
def test_a_wrong_setting_is_no_setting(app: AppUtil, value: str) -> None:
    result = run([app.probe], env={"LD_PRELOAD": str(app.library), "QJAU_PRIORITY": value, "QJAU_WINDOW": "x"})
    assert (result.returncode, result.stdout, result.stderr) == (0, PLAIN, "")


def test_without_dlsym_the_system_calls_are_made(app: AppUtil) -> None:
    (app.folder / "wrap.c").write_text("void *__wrap_dlsym(void *h, const char *s) { (void)h; (void)s; return 0; }")
    library = app.folder / "libwithout.so"
    sources = [SOURCE / "libqjau.c", app.folder / "wrap.c"]
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,--wrap=dlsym", "-o", library, *sources], check=True)
    assert run([app.probe], env={"LD_PRELOAD": str(library), "QJAU_PRIORITY": "6"}).stdout == MARKED


def test_verbose_is_a_line_a_socket(app: AppUtil) -> None:
    result = app.run("-v", "-w", "15500", app.probe)
    assert result.stdout == MARKED
    lines = re.findall(r"qjau: process \d+, (\w+) \d+: IPv4, priority 6, send buffer 31000, receive buffer 31000\n",
                       result.stderr)  # fmt: skip
    assert lines == ["socket", "socket", "accept"] and result.stderr.count("\n") == 3


def test_verbose_writes_only_to_what_stderr_was(app: AppUtil, tmp_path: Path) -> None:
    """A program that closes stderr gets descriptor 2 for its own file or socket."""
    text = f"""os.close(2); fd = os.open({str(tmp_path / "data")!r}, os.O_CREAT | os.O_WRONLY)
socket.socket(); print(fd, os.path.getsize(fd), flush=True); os.close(2); print(socket.socket().fileno())"""
    assert app.python(text, "-v") == "2 0\n2"


def test_verbose_survives_a_closed_a_broken_and_a_full_stderr(app: AppUtil) -> None:
    argv: Words = [app.command, "-v", "-p", "6", app.probe]
    assert run(["sh", "-c", 'exec "$@" 2>&-', "sh", *argv]).stdout == MARKED
    for broken in (True, False):
        reader, writer = os.pipe()
        if broken:
            os.close(reader)
        else:
            os.set_blocking(writer, False)
            while select.select([], [writer], [], 0)[1]:
                os.write(writer, b"x" * 4096)
            os.set_blocking(writer, True)
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=writer, text=True, timeout=20, check=False,
                              preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL) and None)  # fmt: skip
        os.close(writer)
        if not broken:
            os.close(reader)
        assert (done.returncode, done.stdout) == (0, MARKED)


# --- what cannot work is said -----------------------------------------------------------------------------------------


def check_refused(result: subprocess.CompletedProcess[str], status: int, words: str) -> None:
    assert (result.returncode, result.stdout) == (status, ""), result.stderr
    assert result.stderr.startswith("qjau: ") and words in result.stderr and result.stderr.count("\n") == 1
    if status == 126 and "cannot be run" not in words:
        assert "skbedit priority 6" in result.stderr and "net_prio" in result.stderr and "own option" in result.stderr


@pytest.mark.parametrize("option", ["-static", "-static-pie"])
def test_static(app: AppUtil, option: str) -> None:
    program = app.compile(f"probe{option}", PROBE, option)
    assert run([program]).stdout == PLAIN
    check_refused(app.run(program), 126, f"{program} is statically linked")


def test_a_script_is_judged_by_its_interpreter(app: AppUtil, tmp_path: Path) -> None:
    static = app.compile("statictool", PROBE, "-static")
    script = tmp_path / "script"
    path = {"PATH": f"{app.folder}:{os.environ['PATH']}"}
    for good in (f"#! /bin/sh -e \n{app.probe}\n", f"#!/usr/bin/env sh\n{app.probe}\n",
                 f"#!/usr/bin/env -S A=1 sh -e\n{app.probe}\n", f"{app.probe}\n"):  # fmt: skip
        script.write_text(good)
        script.chmod(0o755)
        assert app.run(script, env=path).stdout == MARKED, good
    for bad in (
        f"#!{static}\n",
        f"#! {static} -x\n",
        "#!/usr/bin/env statictool\n",
        "#!/usr/bin/env -S A=1 statictool\n",
    ):
        script.write_text(bad)
        check_refused(app.run(script, env=path), 126, f"{static} is statically linked")


def test_arguments_and_exit_code_are_the_programs(app: AppUtil, tmp_path: Path) -> None:
    script = tmp_path / "plain text"
    script.write_text('echo "$# $1"; exit 3\n')
    script.chmod(0o755)
    calls: list[Words] = [["--", script, "a b", "-v"], ["sh", script, "a b", "-v"]]
    for words in calls:
        result = app.run(*words)
        assert (result.returncode, result.stdout) == (3, "2 a b\n")
    assert app.run("sh", "-c", "kill -9 $$").returncode == -9


@needs_root
@pytest.mark.parametrize(("mode", "words"), [(0o4755, "setuid"), (0o2755, "setgid")])
def test_setuid_and_setgid(app: AppUtil, mode: int, words: str) -> None:
    program = app.folder / f"probe{mode:o}"
    shutil.copy(app.probe, program)
    program.chmod(mode)
    check_refused(app.run(program, user=NOBODY), 126, words)
    assert app.run(program).stdout == MARKED, "root gains nothing"
    env = {"LD_PRELOAD": str(app.library), "QJAU_PRIORITY": "6"}
    assert run([program], env=env, user=NOBODY).stdout == PLAIN, "the loader does ignore the library"
    told: Words = ["setpriv", "--no-new-privs", app.command, "-p", "6", program]
    assert run(told, user=NOBODY).stdout == MARKED, "nor does anyone whom the kernel denies it"


@needs_root
def test_file_capabilities(app: AppUtil) -> None:
    program = app.folder / "probe.cap"
    shutil.copy(app.probe, program)
    try:  # cap_net_raw=ep, as ping has: revision 2, effective; permitted 1 << 13
        os.setxattr(program, "security.capability", bytes.fromhex("0100000200200000") + bytes(12))
    except OSError as error:
        pytest.skip(f"no file capabilities on this file system: {error}")
    check_refused(app.run(program, user=NOBODY), 126, "file capabilities")
    assert run([program], env={"LD_PRELOAD": str(app.library), "QJAU_PRIORITY": "6"}, user=NOBODY).stdout == PLAIN
    assert app.run(program).stdout == MARKED


@pytest.mark.parametrize(("offset", "byte"), [(4, 1), (5, 2), (18, 0xB7 if os.uname().machine == "x86_64" else 62)])
def test_a_program_for_another_machine(app: AppUtil, tmp_path: Path, offset: int, byte: int) -> None:
    program = tmp_path / "foreign"
    content = bytearray(app.probe.read_bytes())
    content[offset] = byte  # e_ident[EI_CLASS], e_ident[EI_DATA], e_machine
    program.write_bytes(content)
    program.chmod(0o755)
    check_refused(app.run(program), 126, "another machine or word size")


def test_a_missing_loader_and_go(app: AppUtil) -> None:
    program = app.compile("noloader", PROBE, "-Wl,--dynamic-linker=/nowhere/ld.so")
    check_refused(app.run(program), 126, "needs the loader /nowhere/ld.so, which is missing here")
    note = r"""__asm__(".pushsection .note.go.buildid, \"a\", %note\n"
".long 4, 4, 4\n.asciz \"Go\\0\"\n.long 0\n.popsection");"""
    check_refused(app.run(app.compile("likego", PROBE + note)), 126, "is written in Go")


def test_a_damaged_program_is_not_given_to_the_shell(app: AppUtil, tmp_path: Path) -> None:
    program = tmp_path / "cut"
    content = app.probe.read_bytes()
    for damaged in (*(content[:size] for size in (4, 16, 63, 64, 100)), b"echo yes\0\n", b"\x7fELF\necho yes\n"):
        program.write_bytes(damaged)
        program.chmod(0o755)
        result = app.run(program, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (126, ""), damaged


def test_what_is_not_there_or_may_not_be_run(app: AppUtil, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    for missing in ("no-such-program", tmp_path / "none", plain / "below", ""):
        check_refused(app.run(missing), 127, "not found")
    for wrong in (plain, tmp_path):
        check_refused(app.run(wrong), 126, "cannot be run: Permission denied")
    check_refused(app.run("plain", env={"PATH": str(tmp_path)}), 126, "cannot be run: Permission denied")
    later = {"PATH": f"{tmp_path}:{app.folder}"}
    (tmp_path / "probe").write_text("")
    assert app.run("probe", env=later).stdout == MARKED, "a file that may not be run is passed over, as by execvp"
    assert app.run("probe", env={"PATH": ":/bin"}, cwd=app.folder).stdout == MARKED


@pytest.mark.parametrize("words", [["-p", "6x"], ["-p", ""], ["-p", "-1"], ["-p", "8"], ["-p", "+6"], ["-p", " 6"],
                                   ["-p", "4294967302"], ["-p", "6", "-w", "0"], ["-p", "6", "-w", "15.5k"],
                                   ["-p", "6", "-w", "1073741824"], ["-p"], ["-x"], ["--priority"], []])  # fmt: skip
def test_a_wrong_command_line(app: AppUtil, words: list[str]) -> None:
    result = app.run(*words, *(["true"] if len(words) > 1 else []), priority=None)
    assert (result.returncode, result.stdout) == (2, "")
    assert re.fullmatch(r"qjau: .*\nusage: qjau -p PRIORITY .*\n", result.stderr)


def test_no_command(app: AppUtil) -> None:
    assert app.run("--").returncode == 2


def test_help_and_manual_agree(app: AppUtil) -> None:
    result = app.run("--help", priority=None)
    manual = (SOURCE / "qjau.1").read_text()
    assert result.returncode == 0 and result.stderr == ""
    for code in ("2", "125", "126", "127"):
        assert re.search(rf"\b{code}\b", result.stdout) and f".It {code}\n" in manual
    for option in re.findall(r"^  -(\w)", result.stdout, re.MULTILINE):
        assert f".It Fl {option}" in manual


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_the_manual_is_well_formed() -> None:
    result = run(["mandoc", "-T", "lint", "-W", "warning", SOURCE / "qjau.1"])
    assert (result.returncode, result.stdout) == (0, "")


def test_priority_7(app: AppUtil) -> None:
    if IS_ROOT:
        assert app.run(app.probe, priority="7").stdout == MARKED.replace("6", "7")
    result = app.run(app.probe, priority="7", user=NOBODY if IS_ROOT else None)
    check_refused(result, 125, "priority 7 needs CAP_NET_ADMIN")


def test_a_window_beyond_the_kernels_limit(app: AppUtil) -> None:
    limit = int(Path("/proc/sys/net/core/wmem_max").read_text())
    check_refused(app.run("-w", str(limit + 1), app.probe), 125, f"net.core.wmem_max, {limit}")


def test_as_an_ordinary_user(app: AppUtil) -> None:
    result = app.run("-w", "15500", app.probe, user=NOBODY if IS_ROOT else None)
    assert (result.returncode, result.stdout, result.stderr) == (0, MARKED, "")


# --- where it is ------------------------------------------------------------------------------------------------------


def test_an_installed_qjau_works_from_any_folder(app: AppUtil, tmp_path: Path) -> None:
    argv: Words = ["make", "-C", SOURCE, f"BUILD={app.folder}", f"DESTDIR={tmp_path}", "PREFIX=/opt/q", "install"]
    assert run(argv).returncode == 0
    installed = tmp_path / "opt/q"
    files = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    assert files == {"bin/qjau", "lib/qjump-mn/libqjau.so", "share/man/man1/qjau.1"}
    assert not any(path.stat().st_mode & (stat.S_ISUID | stat.S_IWOTH) for path in installed.rglob("*"))
    (tmp_path / "link").symlink_to(installed / "bin/qjau")
    assert run(["./link", "-p", "6", app.probe], cwd=tmp_path).stdout == MARKED
    assert run(["qjau", "-p", "6", app.probe], cwd=Path("/"), env={"PATH": f"{installed}/bin:/bin"}).stdout == MARKED


def test_a_missing_a_broken_and_an_unusable_library(app: AppUtil, tmp_path: Path) -> None:
    shutil.copy(app.command, tmp_path)
    argv: Words = [tmp_path / "qjau", "-p", "6", app.probe]
    check_refused(run(argv), 125, "libqjau.so is neither in")
    (tmp_path / "libqjau.so").write_text("no library")
    check_refused(run(argv), 125, "does not load")
    for name in ("with blank", "with:colon"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(app.command, folder)
        shutil.copy(app.library, folder)
        check_refused(
            run([folder / "qjau", "-p", "6", app.probe]), 125, "LD_PRELOAD takes no path with a blank or a colon"
        )
