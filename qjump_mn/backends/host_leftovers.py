"""Find and remove what a killed run left on this machine's own kernel.

It is recognised by marks that only that run has: an environment variable of its processes, a word
in its rows in Open vSwitch, the inodes of its namespaces, the addresses of its interfaces. Names
do not suffice: every user of Mininet has an h1 and an s1.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from qjump_mn.errors import LostError
from qjump_mn.executor.steps import OWNER

VARIABLE = "QJUMP_MN_HOST_RUN"
"""An environment variable of all processes of a run; its value is the run's mark."""

KINDS = ("sch_", "cls_", "act_", "em_", "tcp_")
"""Prefixes of modules that the kernel loads on demand, for tc and TCP."""

NAMED = frozenset(("openvswitch", "8021q", "veth", "ifb"))
"""Other modules that a run loads."""

DEADLINE_S = 60.0
SETTLE_S = 5.0
"""How long a module may stay in use before another program is assumed to use it."""


class Setting(msgspec.Struct, frozen=True):
    """The command that read a setting, and the command that restores it, with its input."""

    read: tuple[str, ...]
    argv: tuple[str, ...]
    stdin: str

    @property
    def survives_boot(self) -> bool:
        """Whether the setting survives a reboot; the kernel's do not."""
        return self.argv[0] != "sysctl"


class Journal(msgspec.Struct, kw_only=True):
    """What a run changed on this machine.

    ``boot`` is the kernel's id of the boot. ``modules`` are those that were loaded before the run.
    ``namespaces`` are inodes by name, ``devices`` addresses by name. ``settings`` are in the order
    of their changes.
    """

    mark: str
    pid: int
    user: str
    since: str
    boot: str
    modules: tuple[str, ...]
    devices: dict[str, str] = {}
    namespaces: dict[str, int] = {}
    settings: list[Setting] = []

    def whose(self) -> str:
        """Return a phrase that names the run's user, pid and start."""
        return f"a run of {self.user} (pid {self.pid}, since {self.since})"


def boot() -> str:
    """Return the kernel's id of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def modules() -> dict[str, int]:
    """Return the number of uses of each loaded kernel module."""
    path = Path("/proc/modules")  # a kernel without modules does not have it
    lines = map(str.split, path.read_text().splitlines() if path.exists() else [])
    return {line[0]: int(line[2]) for line in lines}


def take_back(journal: Journal) -> list[str]:
    """End, remove and restore everything that is a run's; return a line for each thing.

    What no longer exists, or now belongs to another, is left alone. Raises LostError if a process
    does not end.
    """
    same_boot = journal.boot == boot()
    lines = list(_end_processes(journal.mark)) if same_boot else []
    lines += _remove_rows()
    if same_boot:
        lines += _remove_devices(journal.devices)
        lines += _remove_namespaces(journal.namespaces)
    for setting in reversed(journal.settings):
        if same_boot or setting.survives_boot:
            _run(setting.argv, setting.stdin)
    if same_boot:
        lines += _unload(set(journal.modules))
    return lines


def _end_processes(mark: str) -> Iterator[str]:
    """Kill the processes with the mark, and those that they start meanwhile."""
    variable, deadline = f"{VARIABLE}={mark}".encode(), time.monotonic() + DEADLINE_S
    reported: set[int] = set()
    while pids := [pid for pid in _pids() if variable in _environment(pid)]:
        for pid in pids:
            if pid not in reported:
                reported.add(pid)
                yield f"ended process {pid} ({_command(pid)})"
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise LostError(f"process {pids[0]} of a killed run does not end on SIGKILL: reboot")
        time.sleep(0.02)


def _pids() -> list[int]:
    return [
        int(path.name) for path in Path("/proc").glob("[0-9]*") if int(path.name) != os.getpid()
    ]


def _environment(pid: int) -> list[bytes]:
    """Return a process's environment; empty if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return "gone"


def _remove_rows() -> Iterator[str]:
    """Remove our bridges, QoS and queues from Open vSwitch, if it runs."""
    for name in _find_rows("bridge", "name"):
        if _run(("ovs-vsctl", "--timeout=10", "--if-exists", "del-br", name)) is not None:
            yield f"removed the bridge {name}"
    rows = [(table, row) for table in ("qos", "queue") for row in _find_rows(table, "_uuid")]
    words = [word for table, row in rows for word in ("--", "destroy", table, row)]
    if rows and _run(("ovs-vsctl", "--timeout=10", *words[1:])) is not None:
        yield f"removed {len(rows)} rows of QoS from Open vSwitch"


def _find_rows(table: str, column: str) -> list[str]:
    argv = ("ovs-vsctl", "--timeout=10", "--bare", f"--columns={column}", "find", table, OWNER)
    return (_run(argv) or "").split()


def _remove_devices(devices: dict[str, str]) -> Iterator[str]:
    """Remove interfaces of the machine's own namespace, and their ifb devices (link model tbf)."""
    ours = [name for name, address in devices.items() if _address(name) == address]
    for name in ours:  # before any pair, because deleting one end deletes the other
        _run(("ip", "link", "delete", f"i-{name}", "type", "ifb"))
    for name in ours:
        if _run(("ip", "link", "delete", name)) is not None:
            yield f"removed the interface {name}"


def _address(name: str) -> str:
    """Return an interface's address; empty if it does not exist."""
    with suppress(OSError):
        return Path("/sys/class/net", name, "address").read_text().strip()
    return ""


def _remove_namespaces(namespaces: dict[str, int]) -> Iterator[str]:
    for name, inode in namespaces.items():
        path = Path("/run/netns", name)
        with suppress(OSError):
            if path.stat().st_ino == inode and _run(("ip", "netns", "delete", name)) is not None:
                yield f"removed the namespace {name}"


def _unload(before: set[str]) -> Iterator[str]:
    """Unload the modules that the run loaded, and those that came with them, unless in use."""
    new = modules().keys() - before
    # A run killed while it unloads may leave a dependency whose dependent module is gone.
    ours = {name for name in new if name in NAMED or name.startswith(KINDS)} | (
        new & _needed(NAMED)
    )
    # The kernel dismantles a namespace later, and until then its contents use modules.
    deadline = time.monotonic() + SETTLE_S
    while loaded := {name: uses for name, uses in modules().items() if name in ours}:
        idle = [name for name, uses in loaded.items() if not uses]
        unloaded = [name for name in idle if _run(("rmmod", name)) is not None]
        yield from (f"unloaded the module {name}" for name in unloaded)
        if not unloaded:
            if time.monotonic() > deadline:
                return
            time.sleep(0.05)


def _needed(names: Iterable[str]) -> set[str]:
    """Return these modules and their dependencies, according to modprobe."""
    output = "".join(_run(("modprobe", "--show-depends", name)) or "" for name in names)
    return {name.replace("-", "_") for name in re.findall(r"insmod \S*/(\S+?)\.ko", output)}


def _run(argv: tuple[str, ...], stdin: str = "") -> str | None:
    """Return a command's output.

    Returns None if it fails, because what it should remove, or its program, does not exist.
    """
    with suppress(FileNotFoundError, subprocess.TimeoutExpired):
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        return None if done.returncode else done.stdout
    return None
