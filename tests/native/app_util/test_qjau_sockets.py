"""Which sockets qjau marks, and which programs inherit that."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.native.app_util.qjau import MARKED, PLAIN, PRELUDE, AppUtil, Words, needs_root, run

# --- which sockets are marked
# -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("priority", ["0", "1", "5", "6"])
@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_a_new_socket_has_the_priority(app: AppUtil, priority: str, family: str, kind: str) -> None:
    text = f"print(prio(socket.socket(socket.{family}, socket.{kind})))"
    assert app.python(text, priority=priority) == priority


def test_local_sockets_and_pairs_are_left_alone(app: AppUtil) -> None:
    text = """a, b = socket.socketpair(); c = socket.socket(socket.AF_UNIX); d = socket.socket(socket.AF_NETLINK, 3)
print([(prio(s), bufs(s)) for s in (a, b, c, d)])"""
    plain = run([sys.executable, "-c", PRELUDE + text]).stdout
    assert app.python(text, "-w", "15500") == plain.strip()


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
    said = app.python("print([(prio(s), *bufs(s)) for s in pair()])", "-w", "15500")
    assert said == str([(6, 31000, 31000)] * 3)


def test_accept_and_errno_in_c(app: AppUtil) -> None:
    assert run([app.probe]).stdout == PLAIN
    assert app.run(app.probe).stdout == MARKED


def test_an_inherited_listener_gives_marked_sockets_with_a_window(app: AppUtil) -> None:
    """The listener is made outside qjau, as inetd and systemd do; nobody has chosen its buffers."""
    inner = "l = socket.socket(fileno=int(sys.argv[1])); a = l.accept()[0]; print(prio(a), bufs(a))"
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        stack.enter_context(socket.create_connection(listener.getsockname()))
        handed = listener.fileno()
        words: Words = ["-p", "6", "-w", "15500", sys.executable, "-c", PRELUDE + inner]
        argv = [app.command, *words, str(handed)]
        said = subprocess.check_output(argv, pass_fds=[handed], text=True, timeout=60)
    assert said == "6 (31000, 31000)\n"


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


# --- inheritance
# ------------------------------------------------------------------------------------------------------


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
    inner = (
        "print(prio(socket.socket()), bufs(socket.socket())[0] == 31000, os.environ['LD_PRELOAD'])"
    )
    under: Words = ["-v", "-w", "15500", app.command, "-p", "3"]
    result = app.run(*under, sys.executable, "-c", PRELUDE + inner)
    assert (result.stdout, result.stderr) == (f"3 False {app.library}\n", "")


def test_flags_are_kept(app: AppUtil) -> None:
    text = """l, c, a = pair(); print([fcntl.fcntl(s, fcntl.F_GETFD) for s in (l, c, a)], end=" ")
s = socket.socket(type=socket.SOCK_STREAM | socket.SOCK_NONBLOCK); print(bool(fcntl.fcntl(s, fcntl.F_GETFL) & 0o4000))
l.setblocking(False)
try: l.accept()
except BlockingIOError as e: print(e.errno == errno.EAGAIN)"""
    assert app.python(text) == "[1, 1, 1] True\nTrue"
