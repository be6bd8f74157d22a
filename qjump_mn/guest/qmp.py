"""QEMU's control protocol (QMP) on a socket: commands, answers, events."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

from qjump_mn.errors import LostError


class Qmp:
    """A connection to one QEMU. Every wait has a deadline; LostError when QEMU refuses, hangs up or is
    late."""

    def __init__(self, connection: socket.socket, deadline_s: float = 60.0) -> None:
        self.socket = connection
        self._buffer = b""
        self._deadline_s = deadline_s
        self._message(time.monotonic() + deadline_s)  # the greeting
        self.command("qmp_capabilities")

    def command(self, name: str, **arguments: Any) -> Any:
        """Send a command and return what it answers; events in between are dropped, for all waits are for a
        state."""
        until = time.monotonic() + self._deadline_s
        try:
            self.socket.sendall(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
        except OSError as error:
            raise LostError(f"QEMU ended before {name}") from error
        while True:
            message = self._message(until)
            if "error" in message:
                raise LostError(f"QEMU refused {name}: {message['error'].get('desc', message['error'])}")
            if "return" in message:
                return message["return"]

    def status(self) -> str:
        """The machine's run state: running, guest-panicked, inmigrate, paused …"""
        return str(self.command("query-status")["status"])

    def drain(self) -> bool:
        """Drop what has come unasked; False when QEMU has hung up. Does not wait."""
        self.socket.setblocking(False)
        try:
            while data := self.socket.recv(65536):
                self._buffer = (self._buffer + data).rpartition(b"\n")[2]
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            self.socket.setblocking(True)
        return False

    def _message(self, until: float) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            self.socket.settimeout(max(0.001, until - time.monotonic()))
            try:
                data = self.socket.recv(65536)
            except TimeoutError as error:
                raise LostError(f"QEMU did not answer within {self._deadline_s:g} s") from error
            except OSError as error:
                raise LostError("QEMU ended while it was asked") from error
            if not data:
                raise LostError("QEMU ended while it was asked")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message
