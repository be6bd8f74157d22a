"""native/app-util as the tests here use it: qjau and libqjau.so, built, with real programs and
sockets on this host's loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "native" / "app-util"
PROGRAMS = Path(__file__).with_name("programs")
NOBODY = 65534
IS_ROOT = os.geteuid() == 0
Words = Sequence[str | Path]
# Before qjau: takes root's right to enter a cgroup, so that the library alone marks.
LIBRARY: Words = [str(shutil.which("setpriv")), "--bounding-set", "-sys_admin"] if IS_ROOT else []
needs_root = pytest.mark.skipif(
    not IS_ROOT, reason="makes setuid files, network namespaces or other users' processes"
)

# Prints: priority of a listener, an accept()ed socket and a socket after IP_TOS 0x08; errno after
# each, 42 if kept.
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
        """Run qjau, which has the library alone, with these words (after -p PRIORITY)."""
        options = [] if priority is None else ["-p", priority]
        before = LIBRARY if user is None else []
        return run([*before, self.command, *options, *words], user=user, env=env, cwd=cwd)

    def python(
        self, text: str, *options: str, priority: str = "6", env: Mapping[str, str] | None = None
    ) -> str:
        """What a Python child under qjau prints; it must end well and without a word on stderr."""
        argv = [*options, sys.executable, "-c", PRELUDE + text]
        result = self.run(*argv, priority=priority, env=env)
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


def check_refused(result: subprocess.CompletedProcess[str], status: int, words: str) -> None:
    said = result.stderr
    assert (result.returncode, result.stdout) == (status, ""), said
    assert said.startswith("qjau: ") and words in said and said.count("\n") == 1
    if status == 126 and "cannot be run" not in words:
        for way in ("skbedit priority 6", "--cgroup needs CAP_SYS_ADMIN", "own option"):
            assert way in said
