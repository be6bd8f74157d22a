"""Run commands on a node, which is a network namespace that ``ip netns`` knows.

For nodes that are reached in another way, such as by ssh, a subclass of :class:`Shell` would
override ``run`` and ``start``.
"""

from __future__ import annotations

import ctypes
import os
import select
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from .steps import MACHINE

NAMESPACES = Path("/run/netns")
OWN_NAMESPACE = Path("/proc/thread-self/ns/net")

_LIBC = ctypes.CDLL(None, use_errno=True)
# include/uapi/linux/sched.h, mount.h
_CLONE_NEWNET = 0x40000000
_MS_BIND, _MS_REC, _MS_SHARED = 0x1000, 0x4000, 0x100000


class Process(subprocess.Popen[bytes]):
    """A process whose ``wait`` with a timeout does not poll.

    Popen polls every 50 ms, which is half a measurement at 10 Gb/s.
    """

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status; raise subprocess.TimeoutExpired if it does not end in time."""
        if timeout is not None and self.poll() is None:
            descriptor = os.pidfd_open(self.pid)
            try:
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                if not poll.poll(max(0.0, timeout) * 1e3):
                    raise subprocess.TimeoutExpired(self.args, timeout)
            finally:
                os.close(descriptor)
        return super().wait()


class Shell:
    """Runs commands on nodes, by name."""

    def make_namespace(self, name: str) -> None:
        """Create a network namespace, as ``ip netns add`` does."""
        folder = os.fsencode(NAMESPACES)
        NAMESPACES.mkdir(exist_ok=True)
        shared = ("mount", None, folder, None, _MS_SHARED | _MS_REC, None)
        try:
            _call(*shared)
        except OSError:  # it is not a mount point yet
            _call("mount", folder, folder, None, _MS_BIND | _MS_REC, None)
            _call(*shared)
        with _restored_namespace():
            _call("unshare", _CLONE_NEWNET)
            self.note_namespace(name, OWN_NAMESPACE.stat().st_ino)
            path = NAMESPACES / name
            path.touch(exist_ok=False)
            _call("mount", os.fsencode(OWN_NAMESPACE), os.fsencode(path), None, _MS_BIND, None)

    def note_namespace(self, name: str, inode: int) -> None:
        """Hook for subclasses, called before a namespace gets its name."""

    def run(
        self,
        node: str,
        argv: Sequence[str],
        *,
        stdin: str = "",
        folder: Path | None = None,
        deadline_s: float,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; raise subprocess.TimeoutExpired after ``deadline_s``."""
        # In the guest, files cost much less than polling pipes.
        in_, out, err = (_memory_file(name) for name in ("stdin", "stdout", "stderr"))
        with in_, out, err:
            in_.write(stdin)
            in_.seek(0)
            with (
                in_namespace(node),
                Process(argv, stdin=in_, stdout=out, stderr=err, cwd=folder) as process,
            ):
                try:
                    process.wait(deadline_s)
                except BaseException:
                    process.kill()
                    raise
            out.seek(0)
            err.seek(0)
            output, errors = out.read(), err.read()
            return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def start(
        self, node: str, argv: Sequence[str], *, stdout: Path, stderr: Path, folder: Path
    ) -> Process:
        """Start a program in ``folder``, with two files for its output and an empty input."""
        with stdout.open("wb") as out, stderr.open("wb") as errors:
            return Process(
                inside(node, argv), stdin=subprocess.DEVNULL, stdout=out, stderr=errors, cwd=folder
            )


def _memory_file(name: str) -> TextIO:
    return os.fdopen(os.memfd_create(name), "w+", errors="replace")


@contextmanager
def in_namespace(node: str) -> Iterator[None]:
    """Within the block, this thread and its children are in a node's network namespace.

    Unlike ``ip netns exec``, this does not mount the node's /sys, which a step's command does not
    read but programs may.
    """
    if node == MACHINE:
        yield
        return
    with _restored_namespace(), (NAMESPACES / node).open() as namespace:
        _call("setns", namespace.fileno(), 0)
        yield


@contextmanager
def _restored_namespace() -> Iterator[None]:
    """After the block, return this thread to its present network namespace."""
    with OWN_NAMESPACE.open() as namespace:
        try:
            yield
        finally:
            _call("setns", namespace.fileno(), 0)


def _call(name: str, *arguments: int | bytes | None) -> None:
    """Call a function of the C library (Python 3.12 has some of them); raise OSError."""
    if getattr(_LIBC, name)(*arguments):
        raise OSError(error := ctypes.get_errno(), f"{name}: {os.strerror(error)}")


def inside(node: str, argv: Sequence[str]) -> list[str]:
    """Return the command line that runs ``argv`` on a node, to be started on the machine itself."""
    return list(argv) if node == MACHINE else ["ip", "netns", "exec", node, *argv]
