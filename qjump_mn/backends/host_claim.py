"""One run at a time makes its network on this machine's own kernel: whose it is, since when, and, written
down before each change, what is to be put back should it be killed."""

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
from qjump_mn.results import manifest

FOLDER = Path("/var/lib/qjump-mn")
"""It outlives a boot, as Open vSwitch's database does."""

LOCK, JOURNAL = "host.lock", "host.json"


class Claim:
    """This machine's network, for one process: a context manager, which puts everything back."""

    def __init__(self, progress: Progress, folder: Path = FOLDER) -> None:
        self._progress, self._lock, self._path = progress, folder / LOCK, folder / JOURNAL

    def __enter__(self) -> Self:
        """Take it, and take back what a killed run left. Raises MachineError that says whose it is."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._lock.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise MachineError(f"{holder(self._path)}: wait for its end, or use --backend guest") from None
        if (left := read(self._path)) is not None:
            self._progress(f"takes back what {left.whose()} left, which was killed")
            host_leftovers.take_back(left)
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
        """The interfaces that are about to be made on the machine itself, with their addresses."""
        self._journal.devices.update(devices)
        self._write()

    def note_namespace(self, name: str, inode: int) -> None:
        """A namespace that is about to get this name."""
        self._journal.namespaces[name] = inode
        self._write()

    def note_setting(self, read: tuple[str, ...], argv: tuple[str, ...], stdin: str) -> None:
        """What puts back a setting that is about to be changed, and the command that has ``read`` it. What
        was noted first stays: it is what was there before all of ours."""
        if all(setting.read != read for setting in self._journal.settings):
            self._journal.settings.append(Setting(read, argv, stdin))
            self._write()

    def _write(self) -> None:
        content = msgspec.json.format(msgspec.json.encode(self._journal), indent=1) + b"\n"
        manifest.write_atomically(self._path, content)


def read(path: Path) -> Journal | None:
    """What the run that has the machine, or had it when it was killed, has written down. Raises MachineError
    for what is damaged, or of another version."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Journal)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise MachineError(
            f"{path}, which says what a killed run left on this machine, cannot be understood ({error}): "
            "boot anew, which removes all but Open vSwitch's bridges, and remove that file"
        ) from None


def holder(path: Path) -> str:
    """Whose run it is."""
    journal = read(path)
    return f"{journal.whose()} has this machine's network" if journal else "another run begins here"


def clean(progress: Progress, folder: Path = FOLDER) -> None:
    """Take back what a killed run left on this machine; nothing while another runs."""
    path = folder / JOURNAL
    if not path.exists():
        return
    if os.geteuid():
        progress("a run on this machine's own kernel may have left its network: as root run  qjump-mn clean")
        return
    with (folder / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"{holder(path)}; it is left alone")
            return
        if (left := read(path)) is not None:
            for line in host_leftovers.take_back(left):
                progress(line)
            path.unlink()


def _user() -> str:
    """Who asked for it, before sudo."""
    uid = int(os.environ.get("SUDO_UID", os.getuid()))
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
