"""Run one command on a terminal in the guest, and keep what it prints and writes.

The terminal's other end is on the host, at /dev/host-tty. Frames go there: a letter, four bytes of
length, and a payload.

- `O`: what the command printed
- `R`: it waits for a line of input
- `P`: is there an interrupt?

The payload of the last two is the command's time in ns, and the host answers them with four bytes
of length and what is typed; nothing typed is the end of the input for `R`. Reading from the host
stops all clocks of the guest, so the machine does not notice how long a person thinks.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import io
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import tarfile
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import ports

TERMINAL = "/dev/host-tty"
HOME = Path("/root")
SCRIPTS = Path("/opt/qjump-mn/packages.d")
"""Scripts that make what added packages need: qjump_mn/toolbox/postinst.py."""
CERTIFICATES = Path("/usr/share/ca-certificates")
CERTIFICATE_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
"""What update-ca-certificates makes; `import requests` fails without it."""
DEADLINE = 124
"""The exit code of a command that was ended at its deadline, as timeout(1) has it."""
NOT_FOUND, NOT_STARTED = 127, 126

_POLL_S = 0.5
_QUIET_S = 0.001
_ENDS_S = 1.0
_COLUMNS, _ROWS = 200, 50
_END_OF_INPUT = b"\x04"

# include/uapi/asm-generic/unistd.h of x86-64
_READ = "0"


def run(context: object, args: Mapping[str, Any], out: Path) -> int:
    """Run the command of ``args``, and fill ``out``; return the command's exit code."""
    for script in sorted(SCRIPTS.glob("*.sh")):
        subprocess.run(["sh", "-e", script], check=True)
    if certificates := sorted(CERTIFICATES.rglob("*.crt")):
        CERTIFICATE_BUNDLE.parent.mkdir(parents=True, exist_ok=True)
        CERTIFICATE_BUNDLE.write_bytes(b"".join(path.read_bytes() for path in certificates))
    # Where it is mounted in other systems too. There is no /sys/kernel/debug.
    subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], check=True)
    raw = out / "raw"
    raw.mkdir()
    folder = HOME / args["folder_name"]
    _unpack(args.get("mininet"), Path("/opt/mininet"))
    _unpack(args["folder"], folder)
    before = _files(folder)
    environment = {**os.environ, **args["environment"]}
    session = _Session(raw / "output")
    code = session.run(args["argv"], folder, environment, args["deadline_ns"])
    (raw / "end.json").write_text(json.dumps({"exit_code": code, "time_ns": session.took_ns}))
    _keep_changes(folder, before, raw / "files")
    for number, path in enumerate(sorted(ports.NOTES.glob("*.json")), 1):
        shutil.copyfile(path, raw / f"ports-{number}.json")
    if ports.SENTENCES.exists():
        shutil.copyfile(ports.SENTENCES, raw / "notes")
    return code


def _unpack(packed: str | None, folder: Path) -> None:
    if packed is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed))) as archive:
        archive.extractall(folder, filter="tar")


def _files(folder: Path) -> dict[Path, str]:
    """Return the SHA-256 of each plain file in ``folder``, by its path there."""
    return {
        path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
    }


def _keep_changes(folder: Path, before: Mapping[Path, str], kept: Path) -> None:
    """Copy what is new or changed in ``folder``."""
    for path, digest in _files(folder).items():
        if before.get(path) != digest:
            target = kept.joinpath(*map(_printable, path.parts))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / path, target)


def _printable(name: str) -> str:
    """Return a name without control characters and bytes that are no text, for the host's disk."""
    return "".join(one if one.isprintable() else f"%{ord(one) & 0xFF:02x}" for one in name)


class _Session:
    """A command on a pseudo terminal, joined with the host's."""

    def __init__(self, output: Path) -> None:
        self._host = os.open(TERMINAL, os.O_RDWR)
        self._kept = output.open("wb")
        self._began_ns = self._asked_ns = 0
        self.took_ns = 0
        self._held_return = b""

    def run(
        self, argv: list[str], folder: Path, environment: Mapping[str, str], deadline_ns: int
    ) -> int:
        """Run the command to its end or its deadline, and return its exit code."""
        self._main, terminal = pty.openpty()
        self._name = os.ttyname(terminal)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", _ROWS, _COLUMNS, 0, 0))
        self._began_ns = time.monotonic_ns()
        with self._kept:
            try:
                process = subprocess.Popen(
                    argv, stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder,
                    env=environment, preexec_fn=_take_terminal, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                self._print(f"{argv[0]}: {(error.strerror or str(error)).lower()}\n".encode())
                return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED
            os.close(terminal)
            with process:
                code = self._follow(process, deadline_ns)
                self.took_ns = self._time_ns()
                self._flush()
        return code

    def _follow(self, process: subprocess.Popen[bytes], deadline_ns: int) -> int:
        """Pass on output and input until the command ends; return its exit code."""
        ended = os.pidfd_open(process.pid)
        poll = select.poll()
        for descriptor in (self._main, ended):
            poll.register(descriptor, select.POLLIN)
        wait_s = _QUIET_S
        while True:
            events = dict(poll.poll(wait_s * 1e3))
            if self._main in events:
                if not self._pass_on():
                    # Nobody holds the terminal's other side.
                    poll.unregister(self._main)
                elif self._time_ns() < deadline_ns:
                    wait_s = _QUIET_S
                    # A command that prints without a pause can be interrupted too; one with pauses
                    # is asked for in them, when it is ready for an interrupt.
                    if self._time_ns() - self._asked_ns > 2 * _POLL_S * 1e9:
                        self._type(self._answer("P"))
                    continue
            if ended in events:
                status = process.wait()
                return 128 - status if status < 0 else status
            if self._time_ns() >= deadline_ns:
                _end(process)
                # Nothing may be left, although a program in the background holds the terminal.
                if self._main in dict(poll.poll(0)):
                    self._pass_on()
                return DEADLINE
            self._type(self._answer("R") or _END_OF_INPUT if self._wants_line() else b"")
            self._type(self._answer("P"))
            left_s = (deadline_ns - self._time_ns()) / 1e9
            wait_s = max(_QUIET_S, min(2 * wait_s, _POLL_S, left_s))

    def _time_ns(self) -> int:
        return time.monotonic_ns() - self._began_ns

    def _pass_on(self) -> bool:
        """Pass on what the command printed, if anything."""
        with contextlib.suppress(OSError):
            if data := os.read(self._main, 1 << 16):
                self._print(data)
                return True
        return False

    def _print(self, data: bytes) -> None:
        """Keep the data and send it to the host, with the terminal's line ends as newlines."""
        data = self._held_return + data
        self._held_return = data[-1:] if data.endswith(b"\r") else b""
        data = data[: len(data) - len(self._held_return)].replace(b"\r\n", b"\n")
        self._kept.write(data)
        self._send("O", data)

    def _flush(self) -> None:
        self._kept.write(self._held_return)
        self._send("O", self._held_return)

    def _send(self, kind: str, payload: bytes) -> None:
        frame = kind.encode() + len(payload).to_bytes(4, "big") + payload
        while frame:
            frame = frame[os.write(self._host, frame) :]

    def _answer(self, kind: str) -> bytes:
        """Ask the host, and return what it answers; the guest stands still until it does."""
        self._asked_ns = self._time_ns()
        self._send(kind, str(self._asked_ns).encode())
        return self._receive(int.from_bytes(self._receive(4), "big"))

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = os.read(self._host, size - len(data))
            if not part:
                raise EOFError(f"{TERMINAL} was closed")
            data += part
        return data

    def _type(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._main, data) :]

    def _wants_line(self) -> bool:
        """Whether the command waits for a line: it edits one itself, or reads the terminal."""
        flags = termios.tcgetattr(self._main)[3]
        if not flags & termios.ICANON:
            return not flags & termios.ECHO
        group = _group(os.tcgetpgrp(self._main))
        return any(_reads_terminal(pid, self._name) for pid in group)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _group(group: int) -> list[int]:
    """Return the processes of a group."""
    members = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name before the last ")" may hold anything: state, parent and group follow.
            if int(path.read_text().rpartition(")")[2].split()[2]) == group:
                members.append(int(path.parent.name))
    return members


def _reads_terminal(pid: int, terminal: str) -> bool:
    """Whether a process is in read(2) of the terminal."""
    with contextlib.suppress(OSError, ValueError):
        number, descriptor = Path(f"/proc/{pid}/syscall").read_text().split()[:2]
        file = os.readlink(f"/proc/{pid}/fd/{int(descriptor, 16)}")
        return number == _READ and file == terminal
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command's process group, by force after a second."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_ENDS_S)
            return
