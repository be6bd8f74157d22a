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
    """The resources of an ended process and its waited-for children: CPU time and peak memory.

    Linux counts at least the memory that the parent had when it started the process.
    """

    cpu_s: float
    memory_mb: int


def wait(process: subprocess.Popen[Any], timeout_s: float = math.inf) -> Used | None:
    """Wait for a child as ``Popen.wait`` does, and return its resource use; None if another thread
    was first.

    Raises :class:`subprocess.TimeoutExpired`.
    """
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
    """Return the fields of /proc/PID/stat from the state on (see proc(5)); empty if there is no
    such process."""
    try:
        # Its name, in brackets, may have brackets and spaces.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def tag(pid: int) -> str:
    """Return PID.START.NAMESPACE: the start time in clock ticks, and the PID namespace's number.

    Empty if there is no such process.
    """
    fields = stat(pid)
    return f"{pid}.{fields[19]}.{_namespace()}" if fields else ""


def is_alive(tagged: str) -> bool:
    """Return whether the process with this tag may still run.

    True without a tag (no /proc), and for another PID namespace such as a container's, where the
    pid says nothing here.
    """
    if not tagged:
        return True
    ours = _namespace()
    pid, start, namespace = [*tagged.split("."), ours][:3]  # an older version has no namespace
    return namespace != ours or tag(int(pid)) == f"{pid}.{start}.{ours}"


def _namespace() -> str:
    """Return the number of this process's PID namespace; 0 if unknown."""
    try:
        return re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))
    except OSError:
        return "0"
