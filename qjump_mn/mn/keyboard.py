"""Type into a command what a person, a pipe or a file types, record it, and show what it prints."""

from __future__ import annotations

import itertools
import os
import select
import sys
import time
from typing import BinaryIO

from qjump_mn.mn.typed import INTERRUPT, Typed

PACE = 10.0
"""How many times faster than real time a command runs while a person types."""


class Keyboard:
    """Reads lines from a descriptor when a command wants one; all that was typed is ``record``."""

    def __init__(self, descriptor: int) -> None:
        self.record: list[Typed] = []
        self.is_person = os.isatty(descriptor)
        self._descriptor = descriptor
        self._woken, self._wake = os.pipe()
        self._unread = b""
        self._interrupts = 0
        self._is_closed = self._is_unread = False
        # When the command waited for a line last, on its clock, and when it went on, on ours.
        self._waited_ns: int | None = None
        self._waited_s = 0.0
        self._echo = b""

    def line(self, time_ns: int) -> bytes:
        """Wait for a line, and return it with its newline; nothing at the end of the input.

        An interrupt ends the wait.
        """
        self._waited_ns, self._waited_s = time_ns, 0.0
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self._descriptor, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 1)
                if self._interrupts or self._is_closed:
                    return self._typed_interrupt(time_ns)
                continue
            part = os.read(self._descriptor, 1 << 16)
            self._unread += part
            if not part:
                # A last line may lack its newline. A terminal goes on after Ctrl-D.
                self._unread += b"\n" if self._unread else b""
                break
        line, newline, self._unread = self._unread.partition(b"\n")
        if not newline:
            self.record.append(Typed(end=True))
            return b""
        text = line.decode(errors="replace")
        self.record.append(Typed(line=text))
        self._echo = text.encode() + b"\n" if self.is_person else b""
        return text.encode() + b"\n"

    def interrupt(self, time_ns: int) -> bytes:
        """Return Ctrl-C if it was pressed and not typed yet.

        For a person who has typed something the command is slowed down to :data:`PACE` times the
        real time, which it does not notice: otherwise an endless ping would be endless at once.
        """
        if self.is_person and self._waited_ns is not None:
            self._waited_s = self._waited_s or time.monotonic()
            due_s = self._waited_s + (time_ns - self._waited_ns) / 1e9 / PACE
            while not self._interrupts and (left_s := due_s - time.monotonic()) > 0:
                if select.select([self._woken], [], [], left_s)[0]:
                    os.read(self._woken, 1)
        return self._typed_interrupt(time_ns)

    def _typed_interrupt(self, time_ns: int) -> bytes:
        if not self._interrupts:
            return b""
        self._interrupts = 0
        self.record.append(Typed(interrupt_ns=time_ns))
        return INTERRUPT

    def press_interrupt(self) -> bool:
        """Let the command have Ctrl-C; return whether an earlier one still waits for that."""
        self._interrupts += 1
        os.write(self._wake, b"!")
        return self._interrupts > 1

    def close(self) -> None:
        """End a wait for a line, and all input."""
        self._is_closed = True
        os.write(self._wake, b"!")

    def show(self, data: bytes, stream: BinaryIO | None = None) -> None:
        """Print what the command prints, without the echo of what a person has just typed."""
        equal = (one == other for one, other in zip(self._echo, data, strict=False))
        shared = sum(itertools.takewhile(bool, equal))
        # As soon as it prints something else, it echoes nothing.
        self._echo = self._echo[shared:] if shared else b""
        if self._is_unread:
            return
        stream = stream or sys.stdout.buffer
        try:
            stream.write(data[shared:])
            stream.flush()
        except BrokenPipeError:
            # As after `| head`: the command goes on, and its output is in the run.
            self._is_unread = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
