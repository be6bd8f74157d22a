"""What a run leaves on this machine's own kernel when it is killed, found by marks that nobody else's has:
a variable of our processes, a word of our rows in Open vSwitch, the inode of a namespace, the address of an
interface. Names alone are anybody's: every user of Mininet has an h1 and an s1."""

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
"""In the environment of every process of a run; its value is the run's mark."""

KINDS = ("sch_", "cls_", "act_", "em_", "tcp_")
"""Modules that the kernel loads by itself for what is asked of tc and TCP."""

NAMED = frozenset(("openvswitch", "8021q", "veth", "ifb"))
"""Others that a run loads."""

DEADLINE_S = 60.0
SETTLE_S = 5.0
"""How long modules that a run has loaded may still be in use before somebody else is taken for the user."""


class Setting(msgspec.Struct, frozen=True):
    """The command that has read a setting, and the one that puts it back, with its input."""

    read: tuple[str, ...]
    argv: tuple[str, ...]
    stdin: str

    @property
    def survives_boot(self) -> bool:
        """Whether the setting outlives the machine's next boot: the kernel's do not."""
        return self.argv[0] != "sysctl"


class Journal(msgspec.Struct, kw_only=True):
    """What a run has on this machine. ``boot`` is the kernel's own name of this boot, ``modules`` are those
    that were loaded before; ``namespaces`` have inodes, ``devices`` have addresses; ``settings`` come in the
    order in which they were changed."""

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
        """Whose run it is, since when."""
        return f"a run of {self.user} (pid {self.pid}, since {self.since})"


def boot() -> str:
    """What the kernel calls this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def modules() -> dict[str, int]:
    """The kernel's loaded modules, with how much uses each."""
    path = Path("/proc/modules")  # which a kernel without modules does not have
    lines = map(str.split, path.read_text().splitlines() if path.exists() else [])
    return {line[0]: int(line[2]) for line in lines}


def take_back(journal: Journal) -> list[str]:
    """End, remove and put back all that is a run's; returns what was there, a line each. Whatever is not
    there any more, or is another's by now, is left alone. Raises LostError for a process that does not
    end."""
    same_boot = journal.boot == boot()
    done = list(_end_processes(journal.mark)) if same_boot else []
    done += _remove_rows()
    if same_boot:
        done += _remove_devices(journal.devices)
        done += _remove_namespaces(journal.namespaces)
    for setting in reversed(journal.settings):
        if same_boot or setting.survives_boot:
            _run(setting.argv, setting.stdin)
    if same_boot:
        done += _unload(set(journal.modules))
    return done


def _end_processes(mark: str) -> Iterator[str]:
    """Kill what has the mark, and what that has started meanwhile."""
    wanted, until = f"{VARIABLE}={mark}".encode(), time.monotonic() + DEADLINE_S
    told: set[int] = set()
    while pids := [pid for pid in _pids() if wanted in _environment(pid)]:
        for pid in pids:
            if pid not in told:
                told.add(pid)
                yield f"ended process {pid} ({_command(pid)})"
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            raise LostError(f"process {pids[0]} does not end")
        time.sleep(0.02)


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if int(path.name) != os.getpid()]


def _environment(pid: int) -> list[bytes]:
    """Of one that has ended, none."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return "gone"


def _remove_rows() -> Iterator[str]:
    """Bridges, QoS and queues of ours in Open vSwitch, where it runs."""
    for name in _found("bridge", "name"):
        if _run(("ovs-vsctl", "--timeout=10", "--if-exists", "del-br", name)) is not None:
            yield f"removed the bridge {name}"
    rows = [(table, row) for table in ("qos", "queue") for row in _found(table, "_uuid")]
    words = [word for table, row in rows for word in ("--", "destroy", table, row)]
    if rows and _run(("ovs-vsctl", "--timeout=10", *words[1:])) is not None:
        yield f"removed {len(rows)} rows of QoS from Open vSwitch"


def _found(table: str, column: str) -> list[str]:
    find = ("ovs-vsctl", "--timeout=10", "--bare", f"--columns={column}", "find", table, OWNER)
    return (_run(find) or "").split()


def _remove_devices(devices: dict[str, str]) -> Iterator[str]:
    """Interfaces of the machine's own namespace, and what delays their packets (links of model tbf)."""
    ours = [name for name, address in devices.items() if _address(name) == address]
    for name in ours:  # all of them first: a pair's other end goes with it
        _run(("ip", "link", "delete", f"i-{name}", "type", "ifb"))
    for name in ours:
        if _run(("ip", "link", "delete", name)) is not None:
            yield f"removed the interface {name}"


def _address(name: str) -> str:
    """Of an interface; empty where there is none of this name."""
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
    """Modules that were not loaded before and are of a kind that runs load, and those that came with them,
    where nobody uses them."""
    new = modules().keys() - before
    # Killed while it unloads, a run leaves what another module needed, without that.
    ours = {name for name in new if name in NAMED or name.startswith(KINDS)} | (new & _needed(NAMED))
    # The kernel takes a namespace down later, and what is in it uses them until then.
    until = time.monotonic() + SETTLE_S
    while left := {name: uses for name, uses in modules().items() if name in ours}:
        idle = [name for name, uses in left.items() if not uses]
        gone = [name for name in idle if _run(("rmmod", name)) is not None]
        yield from (f"unloaded the module {name}" for name in gone)
        if not gone:
            if time.monotonic() > until:
                return
            time.sleep(0.05)


def _needed(names: Iterable[str]) -> set[str]:
    """What these modules need, by the kernel's own list."""
    said = "".join(_run(("modprobe", "--show-depends", name)) or "" for name in names)
    return {name.replace("-", "_") for name in re.findall(r"insmod \S*/(\S+?)\.ko", said)}


def _run(argv: tuple[str, ...], stdin: str = "") -> str | None:
    """What a command prints; None where it fails: what it was to remove is not there, or its program is
    not."""
    with suppress(FileNotFoundError, subprocess.TimeoutExpired):
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        return None if done.returncode else done.stdout
    return None
