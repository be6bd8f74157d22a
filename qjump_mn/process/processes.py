"""Identify processes by pid and start time (pids are reused); report a child's resource use."""

from __future__ import annotations

import math
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple


class Used(NamedTuple):
    """What a process used, with all of its own that it waited for: the processors' time, and the
    most memory at a time, which Linux takes to be no less than what its parent had when it started
    it."""

    cpu_s: float
    memory_mb: int


def wait(process: subprocess.Popen[Any], timeout_s: float = math.inf) -> Used | None:
    """Wait for the end of a child as ``Popen.wait`` does, and say what it used; None where another
    thread was first. Raises :class:`subprocess.TimeoutExpired`."""
    until = time.monotonic() + timeout_s
    while process.returncode is None:
        try:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        except ChildProcessError:  # kill() of another thread looks for its end, too
            process.wait()
            break
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return Used(usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024)
        if time.monotonic() > until:
            raise subprocess.TimeoutExpired(process.args, timeout_s)
        time.sleep(0.01)
    return None


def stat(pid: int) -> list[str]:
    """The fields of a process or thread in /proc/PID/stat from its state on, see proc(5); none when
    there is none."""
    try:
        # Its name, in brackets, may have brackets and spaces.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def tag(pid: int) -> str:
    """The process, as PID.START.NAMESPACE: when it started, in clock ticks, and its PID namespace's
    number.

    Empty when there is none.
    """
    fields = stat(pid)
    return f"{pid}.{fields[19]}.{_namespace()}" if fields else ""


def is_alive(tagged: str) -> bool:
    """Whether the process with this tag may still run.

    One without a tag, of a place that has no /proc, may, and one of another PID namespace, such as
    a container's: its pid says nothing here.
    """
    if not tagged:
        return True
    ours = _namespace()
    pid, start, namespace = [*tagged.split("."), ours][:3]  # an older version has no namespace
    return namespace != ours or tag(int(pid)) == f"{pid}.{start}.{ours}"


def _namespace() -> str:
    """The number of this process's PID namespace; 0 where that cannot be told."""
    try:
        return re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))
    except OSError:
        return "0"
