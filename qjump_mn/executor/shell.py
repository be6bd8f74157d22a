"""How a step reaches a node: a network namespace of this machine, which ``ip netns`` knows. For nodes that
are reached in another way, such as by ssh, a subclass would override these two methods."""

from __future__ import annotations

import ctypes
import os
import select
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .steps import MACHINE

NAMESPACES = Path("/run/netns")
OWN_NAMESPACE = Path("/proc/thread-self/ns/net")

_LIBC = ctypes.CDLL(None, use_errno=True)
# include/uapi/linux/sched.h, mount.h
_CLONE_NEWNET = 0x40000000
_MS_BIND, _MS_REC, _MS_SHARED = 0x1000, 0x4000, 0x100000


class Process(subprocess.Popen[bytes]):
    """A process that is waited for without looking whether it has ended, as Popen does where there is a
    timeout: every 50 ms, which is half a measurement at 10 Gb/s."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status; raise subprocess.TimeoutExpired where it has none in time."""
        if timeout is not None and self.poll() is None:
            descriptor = os.pidfd_open(self.pid)
            try:
                ended = select.poll()
                ended.register(descriptor, select.POLLIN)
                if not ended.poll(max(0.0, timeout) * 1e3):
                    raise subprocess.TimeoutExpired(self.args, timeout)
            finally:
                os.close(descriptor)
        return super().wait()


class Shell:
    """Runs commands on nodes, by the nodes' names."""

    def make_namespace(self, name: str) -> None:
        """Make a network namespace, as ``ip netns add`` does."""
        folder = os.fsencode(NAMESPACES)
        NAMESPACES.mkdir(exist_ok=True)
        shared = ("mount", None, folder, None, _MS_SHARED | _MS_REC, None)
        try:
            _call(*shared)
        except OSError:  # it is no mount yet
            _call("mount", folder, folder, None, _MS_BIND | _MS_REC, None)
            _call(*shared)
        with _back():
            _call("unshare", _CLONE_NEWNET)
            self.note_namespace(name, OWN_NAMESPACE.stat().st_ino)
            path = NAMESPACES / name
            path.touch(exist_ok=False)
            _call("mount", os.fsencode(OWN_NAMESPACE), os.fsencode(path), None, _MS_BIND, None)

    def note_namespace(self, name: str, inode: int) -> None:
        """A namespace is about to get this name; nobody writes it down here."""

    def run(
        self,
        node: str,
        argv: Sequence[str],
        *,
        stdin: str = "",
        folder: Path | None = None,
        deadline_s: float,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; raise subprocess.TimeoutExpired if that takes longer."""
        # Files cost an instance of Linux as a program much less than pipes that are listened to.
        given, out, errors = (
            os.fdopen(os.memfd_create(name), "w+", errors="replace") for name in ("given", "out", "errors")
        )
        with given, out, errors:
            given.write(stdin)
            given.seek(0)
            with entered(node), Process(argv, stdin=given, stdout=out, stderr=errors, cwd=folder) as process:
                try:
                    process.wait(deadline_s)
                except BaseException:
                    process.kill()
                    raise
            out.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(process.args, process.returncode, out.read(), errors.read())

    def start(self, node: str, argv: Sequence[str], *, stdout: Path, stderr: Path, folder: Path) -> Process:
        """Start a program in ``folder``; what it prints goes to the two files, its standard input is
        empty."""
        with stdout.open("wb") as out, stderr.open("wb") as errors:
            return Process(
                inside(node, argv), stdin=subprocess.DEVNULL, stdout=out, stderr=errors, cwd=folder
            )


@contextmanager
def entered(node: str) -> Iterator[None]:
    """Within the block this thread is in a node's network namespace, as is what it starts. ``ip netns exec``
    mounts a /sys of the node, too, which programs may read; a step's command does not."""
    if node == MACHINE:
        yield
        return
    with _back(), (NAMESPACES / node).open() as other:
        _call("setns", other.fileno(), 0)
        yield


@contextmanager
def _back() -> Iterator[None]:
    """After the block this thread is in the network namespace again that it is in now."""
    with OWN_NAMESPACE.open() as own:
        try:
            yield
        finally:
            _call("setns", own.fileno(), 0)


def _call(name: str, *arguments: int | bytes | None) -> None:
    """A call of the C library's, some of which Python has since 3.12."""
    if getattr(_LIBC, name)(*arguments):
        raise OSError(error := ctypes.get_errno(), f"{name}: {os.strerror(error)}")


def inside(node: str, argv: Sequence[str]) -> list[str]:
    """The command line that runs ``argv`` on a node, from the machine itself."""
    return list(argv) if node == MACHINE else ["ip", "netns", "exec", node, *argv]
