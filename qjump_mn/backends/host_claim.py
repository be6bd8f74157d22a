"""Let only one run at a time change this machine's network, and record how to undo its changes.

Each change is recorded before it is made, so that it can be undone if the run is killed.
"""

from __future__ import annotations

import datetime
import fcntl
import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import msgspec

from qjump_mn.backends import host_leftovers
from qjump_mn.backends.host_leftovers import Journal, Setting
from qjump_mn.backends.protocol import Progress
from qjump_mn.errors import MachineError
from qjump_mn.process.files import write_atomically

FOLDER = Path("/var/lib/qjump-mn")
"""A folder that survives a reboot, as Open vSwitch's database does."""

LOCK, JOURNAL = "host.lock", "host.json"


class Claim:
    """One process's claim to this machine's network; a context manager that undoes all changes."""

    def __init__(self, progress: Progress, folder: Path = FOLDER) -> None:
        self._progress, self._lock, self._path = progress, folder / LOCK, folder / JOURNAL

    def __enter__(self) -> Self:
        """Lock the network, and remove what a killed run left.

        Raises MachineError, naming the other run, if that holds the network.
        """
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._lock.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise MachineError(
                f"{holder(self._path)}: wait for its end, or use --backend guest"
            ) from None
        if (journal := read(self._path)) is not None:
            self._progress(f"removing what {journal.whose()} left when it was killed")
            host_leftovers.take_back(journal)
        os.environ[host_leftovers.VARIABLE] = mark = os.urandom(8).hex()
        now = datetime.datetime.now(datetime.UTC)
        self._journal = Journal(
            mark=mark,
            pid=os.getpid(),
            user=_user(),
            since=f"{now:%Y-%m-%d %H:%M} UTC",
            boot=host_leftovers.boot(),
            modules=tuple(sorted(host_leftovers.modules())),
        )
        self._write()
        return self

    def __exit__(self, *_: object) -> None:
        del os.environ[host_leftovers.VARIABLE]
        host_leftovers.take_back(self._journal)
        self._path.unlink()
        self._file.close()

    def note_devices(self, devices: Mapping[str, str]) -> None:
        """Record interfaces that are about to be created on the machine, with their addresses."""
        self._journal.devices.update(devices)
        self._write()

    def note_namespace(self, name: str, inode: int) -> None:
        """Record a namespace that is about to get this name."""
        self._journal.namespaces[name] = inode
        self._write()

    def note_setting(self, read: tuple[str, ...], argv: tuple[str, ...], stdin: str) -> None:
        """Record how to restore a setting that is about to be changed, unless it is recorded.

        ``read`` is the command that read it, ``argv`` and ``stdin`` restore it. The first record
        stays, because it has the value from before all our changes.
        """
        if all(setting.read != read for setting in self._journal.settings):
            self._journal.settings.append(Setting(read, argv, stdin))
            self._write()

    def _write(self) -> None:
        content = msgspec.json.format(msgspec.json.encode(self._journal), indent=1) + b"\n"
        write_atomically(self._path, content)


def read(path: Path) -> Journal | None:
    """Return the journal of the run that holds the machine, or was killed while it did.

    Returns None if there is none. Raises MachineError if the journal is damaged, or of another
    version.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Journal)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise MachineError(
            f"{path}, which lists what a killed run left, cannot be read ({error}): reboot, which "
            "removes all but Open vSwitch's bridges, and remove that file"
        ) from None


def holder(path: Path) -> str:
    """Return a sentence that names the run that holds the machine's network."""
    journal = read(path)
    if journal is None:
        return "another run is just starting on this machine"
    return f"{journal.whose()} has this machine's network"


def clean(progress: Progress, folder: Path = FOLDER) -> None:
    """Remove what a killed run left on this machine; do nothing while another run holds it."""
    path = folder / JOURNAL
    if not path.exists():
        return
    if os.geteuid():
        progress(
            "a killed run of the host backend may have left its network: run qjump-mn clean as root"
        )
        return
    with (folder / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"{holder(path)}; nothing was removed")
            return
        if (journal := read(path)) is not None:
            for line in host_leftovers.take_back(journal):
                progress(line)
            path.unlink()


def _user() -> str:
    """Return the name of the user who started the run, before sudo."""
    uid = int(os.environ.get("SUDO_UID", os.getuid()))
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
