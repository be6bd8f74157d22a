"""What is typed into a command: a record of lines and interrupts, from which a session is repeated.

A file of it has a JSON object in each line: ``{"line": "h1 ping -c 1 h2"}``, ``{"end": true}`` for
the end of the input, and ``{"interrupt_ns": 1500000000}`` for Ctrl-C at that time of the command.
A line is typed when the command waits for one, so it has no time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from qjump_mn.errors import UsageError, reason_of

INTERRUPT = b"\x03"


class Typed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line that was typed, the end of the input, or an interrupt."""

    line: str | None = None
    end: bool = False
    interrupt_ns: int | None = None


def read(path: Path) -> tuple[Typed, ...]:
    """Read a record. Raises :class:`UsageError` if it cannot be read."""
    try:
        return tuple(
            msgspec.json.decode(line, type=Typed) for line in path.read_bytes().split(b"\n") if line
        )
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {reason_of(error)}") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is no record of a session: {error}") from None


def encode(record: Iterable[Typed]) -> bytes:
    """Return the bytes of a record's file."""
    return b"".join(msgspec.json.encode(one) + b"\n" for one in record)


class Replay:
    """Types a record again; after its end, the input ends."""

    def __init__(self, record: Sequence[Typed]) -> None:
        self._lines = deque(one for one in record if one.interrupt_ns is None)
        self._interrupts = deque(one.interrupt_ns for one in record if one.interrupt_ns is not None)

    def line(self, time_ns: int) -> bytes:
        """Return the next line with its newline; nothing at the end."""
        if interrupt := self.interrupt(time_ns):
            return interrupt
        one = self._lines.popleft() if self._lines else Typed(end=True)
        return b"" if one.line is None else one.line.encode() + b"\n"

    def close(self) -> None:
        """End a wait: there is none."""

    def interrupt(self, time_ns: int) -> bytes:
        """Return Ctrl-C if it was typed until now."""
        if self._interrupts and self._interrupts[0] <= time_ns:
            self._interrupts.popleft()
            return INTERRUPT
        return b""
