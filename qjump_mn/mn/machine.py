"""The machine that commands run in: the reference machine, and what scripts expect beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from qjump_mn import cache, guest
from qjump_mn.errors import MachineError
from qjump_mn.guest import images, outer
from qjump_mn.model.command import Command
from qjump_mn.results.command_directory import PACKAGES
from qjump_mn.toolbox import added, build, cpio, machines
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox.cpio import Node

Progress = Callable[[str], None]

_KIND, _FILE = "mn-archive", "mn.cpio"
_PYTHON = "usr/lib/python3/dist-packages"
_MININET = "/opt/mininet"

# A .pth file, unlike sitecustomize.py, works beside another one.
_HOOK = b"import qjump_mn_guest.hook\n"

# Everything runs as root, so sudo has nothing to do: it skips its own options.
_SUDO = b"""\
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    -u|-g|-p|-C|-D|-h) shift 2 ;;
    --) shift; break ;;
    -*) shift ;;
    *=*) export "$1"; shift ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || exec "$SHELL"
exec "$@"
"""

# Mininet's class Controller starts a program of this name, which Debian does not have. It spoke
# OpenFlow 1.0, so that a switch without flows asks it, and had another port.
_CONTROLLER = b"""\
#!/bin/sh
for word; do
    [ "$word" = ptcp: ] && word=ptcp:6633
    set -- "$@" "$word"
    shift
done
exec ovs-testcontroller -O OpenFlow10 "$@"
"""


def prepare(command: Command, own: Path, progress: Progress = lambda line: None) -> guest.Image:
    """Return the image for a command; ``own`` is its run's folder own/. Raises MachineError on a
    host that must emulate the machine."""
    check_host()
    added_locks = [locks.read(added.NAME)]
    if command.packages_sha256:
        added_locks.append(locks.load(own / PACKAGES))
    base = guest.prepare(progress)
    archives = [machines.packages(lock) or added.archive(lock, progress) for lock in added_locks]
    return images.with_archives(base, [*archives, _archive()], progress, added=added_locks)


def check_host() -> None:
    """Raise MachineError on a host where guests have no terminal (guest/outer.py)."""
    if outer.is_wanted():
        raise MachineError(
            "mn needs a computer with x86-64 Linux, which may be a virtual one: docs/machine.md"
        )


def resolved(packages: Sequence[str], progress: Progress = lambda line: None) -> bytes:
    """Return the text of a lock of these Debian packages, for the file own/packages.lock.

    Raises UsageError for an unknown one.
    """
    present = guest.prepare(progress).packages
    lock = added.resolve(packages, present, progress, beside=[locks.read(added.NAME)])
    return lock.text.encode()


def _archive() -> Path:
    """Return an archive of our own files in the machine."""
    content = b"".join(cpio.archive(_nodes()))

    def build(folder: Path) -> None:
        (folder / _FILE).write_bytes(content)

    key = hashlib.sha256(content).hexdigest()
    return cache.artefact(_KIND, key, build, needs_bytes=len(content)) / _FILE


def environment(command: Command) -> dict[str, str]:
    """Return the environment variables that a command has in addition to the machine's."""
    variables = {"QJUMP_MN_LINK": command.link} if command.link else {}
    if command.mininet_sha256:
        variables |= {"PYTHONPATH": _MININET, "PATH": f"{_MININET}/bin:/usr/sbin:/usr/bin"}
    # Nothing is shown on a screen: a figure goes to a file.
    return {"MPLBACKEND": "Agg", **variables}


def _nodes() -> dict[str, Node]:
    """Return our own files in the machine, by names relative to /."""
    packages = {
        "qjump_mn_guest": Path(__file__).parent / "inside",
        "mininet_qos": build.folder("mininet-qos") / "src/mininet_qos",
    }
    sources = {
        f"{_PYTHON}/{name}/{path.name}": Node.file(path)
        for name, folder in packages.items()
        for path in sorted(folder.glob("*.py"))
    }
    return {
        **sources,
        f"{_PYTHON}/qjump_mn_guest.pth": Node.file(_HOOK),
        "usr/bin/sudo": Node.file(_SUDO, 0o755),
        "usr/bin/controller": Node.file(_CONTROLLER, 0o755),
    }
