"""qjau is never in a program's way."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.app_util.qjau import (
    MARKED,
    NOBODY,
    PLAIN,
    PRELUDE,
    SOURCE,
    AppUtil,
    Words,
    needs_root,
    run,
)


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
    result = run(
        [app.probe],
        env={"LD_PRELOAD": str(app.library), "QJAU_PRIORITY": value, "QJAU_WINDOW": "x"},
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, PLAIN, "")


def test_without_dlsym_the_system_calls_are_made(app: AppUtil) -> None:
    (app.folder / "wrap.c").write_text(
        "void *__wrap_dlsym(void *h, const char *s) { (void)h; (void)s; return 0; }"
    )
    library = app.folder / "libwithout.so"
    sources = [SOURCE / "libqjau.c", app.folder / "wrap.c"]
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wl,--wrap=dlsym", "-o", library, *sources], check=True
    )
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
