"""qjau --cgroup: the life of its cgroup, and machines that have none."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.native.app_util.cgroup import CLIENT, compiled, sent_by, under
from tests.native.app_util.network import ACK, PORT, THERE, Network, until
from tests.native.app_util.qjau import (
    LIBRARY,
    MARKED,
    NOBODY,
    PRELUDE,
    SOURCE,
    AppUtil,
    Words,
    needs_root,
    run,
)  # fmt: skip

pytestmark = needs_root


def mounted() -> Path:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            return Path(before.split()[4])
    pytest.skip("no cgroup2 is mounted here to look at")


def cgroup_of(process: int) -> Path:
    lines = Path(f"/proc/{process}/cgroup").read_text().splitlines()
    return mounted() / next(line for line in lines if line.startswith("0::")).removeprefix("0::/")


class Running:
    """A program under qjau --cgroup that waits for its end."""

    def __init__(self, app: AppUtil, *argv: str | Path) -> None:
        words = under(app, *(argv or ("sleep", "1000")))
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        until(lambda: "/qjau-" in str(cgroup_of(self.process.pid)), "it enters its cgroup")
        self.cgroup = cgroup_of(self.process.pid)

    def watch(self) -> int:
        """The process that removes the cgroup."""
        for status in Path("/proc").glob("[0-9]*/comm"):
            try:
                folder = os.readlink(status.with_name("fd") / "0")
            except OSError:
                continue
            events = f"{self.cgroup.name}/cgroup.events"
            if status.read_text() == "qjau-watch\n" and folder.endswith(events):
                return int(status.parent.name)
        return 0

    def gone(self) -> bool:
        return not self.cgroup.exists()


@pytest.mark.parametrize("by_group", [False, True])
def test_it_goes_with_a_program_that_is_killed(app: AppUtil, by_group: bool) -> None:
    running = Running(app)
    until(running.watch, "it is watched")
    (os.killpg if by_group else os.kill)(running.process.pid, 9)
    assert running.process.wait(20) == -9
    until(running.gone, "the cgroup goes")
    until(lambda: not running.watch(), "nobody watches any more")


def test_it_stays_for_children(app: AppUtil) -> None:
    running = Running(app, "sh", "-c", "sleep 1000 & wait")
    until(lambda: len(members(running)) == 2, "it has a child")
    running.process.kill()
    running.process.wait(20)
    (child,) = members(running)
    assert run(under(app, "true")).returncode == 0
    assert running.cgroup.exists(), "another qjau leaves alone what is in use"
    os.kill(child, 9)
    until(running.gone, "the cgroup goes with the last one")


def members(running: Running) -> list[int]:
    return [int(line) for line in (running.cgroup / "cgroup.procs").read_text().split()]


def test_the_next_one_removes_what_a_killed_watch_has_left(app: AppUtil) -> None:
    running = Running(app)
    until(running.watch, "it is watched")
    os.kill(running.watch(), 9)
    running.process.kill()
    running.process.wait(20)
    assert not running.gone(), "nobody is there who would"
    assert run(under(app, "true")).returncode == 0
    assert running.gone()


def test_no_watch_stays_where_many_programs_end_side_by_side(app: AppUtil) -> None:
    """Each removes what it finds empty, which may be what another's watch is about to hear of."""
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda _: run(under(app, "true")).returncode, range(400)))
    assert set(codes) == {0}
    until(lambda: not watches(app), "every watch ends")


def watches(app: AppUtil) -> list[int]:
    """Processes of this very program that watch a cgroup."""
    found = []
    for status in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            if status.read_text() == "qjau-watch\n" and os.path.samefile(
                status.with_name("exe"), app.command
            ):
                found.append(int(status.parent.name))
    return found


def cgroups() -> set[Path]:
    """Those of qjau. One may go while they are looked for: then again."""
    while True:
        with suppress(FileNotFoundError):
            return set(mounted().glob("**/qjau-*"))


def test_a_command_that_does_not_run_leaves_nothing(app: AppUtil, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_bytes(b"\x7fELF\0")
    wrong.chmod(0o755)
    before = cgroups()
    assert run(under(app, wrong)).returncode == 126
    until(lambda: cgroups() <= before, "the cgroup goes")


def test_what_it_leaves_in_its_buffers_keeps_the_priority(app: AppUtil, network: Network) -> None:
    """The cgroup is gone when most of it is sent: a BPF link would have ended with the program."""
    sink = f"""import socket, sys
listener = socket.create_server(("{THERE}", {PORT})); print("ready", flush=True)
connection = listener.accept()[0]; sys.stdin.readline(); count = 0
while data := connection.recv(1 << 16): count += len(data)
print(count, flush=True)"""
    source = f"""import socket
s = socket.socket(); s.setsockopt(1, socket.SO_SNDBUF, 1 << 22); s.connect(("{THERE}", {PORT})); s.setblocking(False)
count = 0
try:
    while True: count += s.send(bytes(1 << 16))
except BlockingIOError: print(count)"""
    before = cgroups()
    with network.serving(sink) as server:
        assert server.stdin and server.stdout
        written = run(network.here(*under(app, sys.executable, "-c", source))).stdout
        until(lambda: cgroups() <= before, "the cgroup goes")
        with network.captured() as packets:
            server.stdin.write("\n")
            server.stdin.flush()
            assert server.stdout.readline() == written
    others = [packet for packet in packets.packets if packet[0] != 6]
    # The latter is TIME_WAIT's, see forgotten().
    assert others in ([], [(0, socket.IPPROTO_TCP, ACK)])
    assert len(packets.packets) > 5


def test_the_innermost_wins(app: AppUtil, network: Network) -> None:
    client = compiled(app, "client", "-static")
    assert sent_by(network, *under(app, *under(app, client, *CLIENT, priority=3))).priorities == {3}
    inner: Words = [app.command, "-p", "3", client, *CLIENT]
    assert sent_by(network, app.command, "-p", "6", *inner).priorities == {3}


def test_a_library_inside_a_cgroup_is_refused(app: AppUtil) -> None:
    result = run(under(app, *LIBRARY, app.command, "-p", "3", "true"))
    assert result.returncode == 125 and "it runs under another qjau" in result.stderr


def test_the_program_does_not_notice(app: AppUtil) -> None:
    text = "import os, sys; print(sorted(os.listdir('/proc/self/fd')), os.getsid(0) == os.getsid(os.getppid())); sys.exit(7)"
    plain, marked = run([sys.executable, "-c", text]), run(under(app, sys.executable, "-c", text))
    assert (marked.returncode, marked.stdout, marked.stderr) == (7, plain.stdout, "")
    assert run(under(app, "sh", "-c", "kill -9 $$")).returncode == -9


def test_it_ends_what_reads_its_output(app: AppUtil) -> None:
    """The watch holds nothing of the program's: a pipe ends with the program, though a child keeps
    the cgroup."""
    argv = under(app, "sh", "-c", "sleep 1000 >/dev/null 2>&1 </dev/null & echo $!")
    os.kill(int(run(argv).stdout), 9)


def test_closed_descriptors(app: AppUtil) -> None:
    argv: Words = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *under(app, "sh", "-c", "exit 7")]
    assert run(argv).returncode == 7


def refusing(app: AppUtil, call: int, number: int) -> Words:
    return [compiled(app, "refusing"), str(call), str(number)]


@pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="the numbers of system calls are x86_64's"
)
@pytest.mark.parametrize(
    ("call", "number", "words"),
    [
        (321, errno.ENOSYS, "no bpf(2) (CONFIG_BPF_SYSCALL)"),
        (321, errno.EINVAL, "no BPF programs at a cgroup (CONFIG_CGROUP_BPF)"),
        (321, errno.EPERM, "needs CAP_BPF and CAP_NET_ADMIN; run qjau as root"),
        (430, errno.ENODEV, "no cgroup2 (CONFIG_CGROUPS)"),
        (430, errno.ENOSYS, "cannot open cgroup2"),
    ],
)
def test_a_kernel_without_it(app: AppUtil, call: int, number: int, words: str) -> None:
    before = cgroups()
    result = run([*refusing(app, call, number), *under(app, "true")])
    assert (result.returncode, result.stdout) == (125, "")
    said = result.stderr
    assert said.startswith("qjau: ") and words in said and said.count("\n") == 1
    # Then the library marks alone.
    result = run([*refusing(app, call, number), app.command, "-p", "6", app.probe])
    assert (result.returncode, result.stdout, result.stderr) == (0, MARKED, "")
    # Another worker may test qjau at the same time.
    until(lambda: cgroups() <= before, "the cgroup goes")


REFUSED = r"""#include <stdio.h>
#include "bpf.h"
int main(void) {
	const struct bpf_insn leave = { .code = BPF_JMP | BPF_EXIT };
	const char *log = "none";
	int fd = bpf_load(BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS, "test", &leave, 1, &log);
	return fputs(log, stdout) < 0 || fd >= 0 ? 0 : errno;
}"""


def test_bpf_load_returns_log_of_verifier(app: AppUtil) -> None:
    """A program must not end without a return value in R0."""
    program = app.compile("refused", REFUSED, "-I", str(SOURCE.parent / "common"))
    result = run([program])
    assert result.returncode == errno.EACCES and "R0 !read_ok" in result.stdout
    if os.uname().machine == "x86_64":
        result = run([*refusing(app, 321, errno.EINVAL), program])
        assert (result.returncode, result.stdout) == (errno.EINVAL, "")


def test_a_window_where_there_is_none(app: AppUtil) -> None:
    static = compiled(app, "client", "-static")
    result = run([app.command, "-p", "6", "-w", "15500", "--cgroup", static])
    assert (result.returncode, result.stdout) == (126, "")
    assert "is statically linked" in result.stderr and "so -w cannot be used" in result.stderr
    text = "print(prio(socket.socket()), bufs(socket.socket()), prio(socket.socket(socket.AF_PACKET, 2)))"
    argv: Words = [app.command, "-p", "6", "-w", "15500", "--cgroup"]
    result = run([*argv, sys.executable, "-c", PRELUDE + text])
    assert result.stdout == "6 (31000, 31000) 6\n"


def test_an_ordinary_user(app: AppUtil) -> None:
    result = run(under(app, "true"), user=NOBODY)
    assert (result.returncode, result.stdout) == (125, "")
    assert "--cgroup needs CAP_SYS_ADMIN" in result.stderr and "run qjau as root" in result.stderr


@pytest.mark.parametrize("kind", ["static", "dynamic", "bare"])
def test_go_is_known(app: AppUtil, go: dict[str, Path], kind: str) -> None:
    result = app.run(go[kind], "client")
    assert (result.returncode, result.stdout) == (126, "")
    assert ("is statically linked" if kind == "static" else "is written in Go") in result.stderr
    assert "run qjau as root" in result.stderr
