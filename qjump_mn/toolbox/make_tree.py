"""Make a tree with mmdebstrap: exactly what its lock says, or the mirror's current packages."""

from __future__ import annotations

import datetime
import errno
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from qjump_mn.errors import MachineError
from qjump_mn.install import environment
from qjump_mn.process.die_with_parent import wrap_command
from qjump_mn.toolbox import mirrors, origins, packages, processors
from qjump_mn.toolbox.lock import Lock
from qjump_mn.toolbox.tree import host_program

# Left out of every tree: nothing reads them, and the last one keeps the kernel's package from
# making an initramfs (8 s).
_NOT_UNPACKED = (
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/share/info/*",
    "/usr/share/doc/*",
    "/etc/kernel/postinst.d/*",
)

SUDO = "QJUMP_MN_SUDO"
"""Set by bootstrap for the command that it starts."""

_NO_ROOM = (os.strerror(errno.ENOSPC), "don't have enough free space")
"""dpkg's words, and apt's."""


def locked(lock: Lock, root: Path, progress: Callable[[str], None]) -> None:
    """Make the tree ``root`` from the lock's packages.

    Raises GoneError if one is not available anywhere, and MachineError with what making a tree
    needs.
    """
    _check()
    files = root.with_name("packages")
    origins.note(root.parent, packages.gather(lock, files, progress))
    # They are the ones of the lock by their hashes: who signed a list of them does not count any
    # more, nor from which suite one was asked for.
    lock = replace(lock, ask=tuple(name.partition("/")[0] for name in lock.ask))
    _mmdebstrap(lock, root, [f"deb [trusted=yes] copy:{files} ./"], progress)
    shutil.rmtree(files)


def newest(lock: Lock, root: Path, progress: Callable[[str], None], *more: str) -> None:
    """Make the tree ``root`` from the current packages that the lock asks for. Raises as
    :func:`locked` does."""
    _check()
    sources = mirrors.lines(lock.suite)
    now = datetime.datetime.now(datetime.UTC).date()
    origins.note(root.parent, f"what {', '.join(sources) or 'the mirror'} had on {now}")
    _mmdebstrap(lock, root, sources, progress, *more)


def refusal() -> str:
    """Return why this host cannot make a tree and what to do, in a sentence; empty if it can."""
    here = processors.here()
    known = next((one for one in processors.ALL if one.name == here), None)
    if known is processors.X86_64:
        return ""
    if known is None:
        names = " and ".join(one.name for one in processors.ALL)
        return f"the machine runs on {names} hosts; this one is {here}"
    return (
        f"this host is {here}, and the machine is built on x86_64 only: have its file written "
        f"there with `qjump-mn machine export --for {known.debian} FILE`, then set "
        "QJUMP_MN_MACHINE to it here"
    )


def remedy() -> str:
    """Return what to do where there is no machine."""
    if sentence := refusal():
        return sentence
    if environment.LOCK.is_file():
        return (
            f"run  {environment.CHECKOUT / 'bootstrap'}  as root or as a user with sudo, or get a "
            "machine file (docs/machine.md)"
        )
    command = f"{shlex.quote(sys.executable)} -m qjump_mn.run machine build"
    return (
        "put the release's file qjump-mn-machine.tar.xz into this folder, or set QJUMP_MN_MACHINE "
        f"to its path or address, or as root run  {command}"
    )


def by_sudo(*options: str) -> bool:
    """Let root build the machine if bootstrap found that this user has sudo; return whether it did.

    ``options`` are those of ``machine build``. Raises MachineError if root failed.
    """
    if os.geteuid() == 0 or not os.environ.get(SUDO) or refusal():
        return False
    argv = [str(environment.CHECKOUT / "bootstrap"), "--by-sudo", "machine", "build", *options]
    done = subprocess.run(argv)
    if done.returncode:
        raise MachineError("root could not build the virtual machine: see above")
    return True


def _check() -> None:
    if sentence := refusal():
        raise MachineError(sentence)
    if os.geteuid() != 0:
        raise MachineError(f"the virtual machine must be built once by root: {remedy()}")


def _mmdebstrap(
    lock: Lock, root: Path, sources: list[str], progress: Callable[[str], None], *more: str
) -> None:
    """Run mmdebstrap in namespaces of its own, so that a kill leaves no mount and no process.

    Raises OSError if there is no room.
    """
    argv = [host_program("mmdebstrap"), f"--variant={lock.variant}"]
    argv += ['--aptopt=APT::Install-Recommends "false"', f"--include={','.join(lock.ask)}", *more]
    argv += [f"--architectures={lock.architecture}"]
    argv += [f"--dpkgopt=path-exclude={pattern}" for pattern in _NOT_UNPACKED]
    argv += [lock.suite.removesuffix(mirrors.BACKPORTS), str(root), *sources]
    isolated = [
        "--mount",
        "--propagation",
        "private",
        "--pid",
        "--mount-proc",
        "--fork",
        "--kill-child",
    ]
    progress(f"unpacking Debian {lock.suite} for {lock.name}, about a minute")
    lines: list[str] = []
    with subprocess.Popen(
        wrap_command([host_program("unshare"), *isolated, *argv]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if line.startswith("I: "):
                progress(f"{lock.name}: {line[3:].strip()}")
    if process.returncode:
        if any(words in line for words in _NO_ROOM for line in lines):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(root))
        tail = "\n".join(lines[-15:])
        raise MachineError(
            f"mmdebstrap could not make the tree {lock.name!r}; is a Debian mirror reachable "
            f"(QJUMP_MN_MIRROR)?\n{tail}"
        )
    (root / "build").mkdir(exist_ok=True)
