"""The host's side of a guest's terminal, /dev/host-tty: what a command prints, and what is typed.

The guest's side, and the form of what passes between them, is qjump_mn/mn/inside/runner.py. The
guest stands still while it waits for an answer, so its results do not depend on how long one takes.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

Show = Callable[[bytes], None]
"""Called with what the command printed."""

Ask = Callable[[int], bytes]
"""Called with the command's time in ns; returns what is typed then, nothing for the input's end."""


class Terminal:
    """Shows what a guest's command prints, and types what it asks for."""

    def __init__(
        self,
        show: Show,
        line: Ask,
        interrupt: Ask = lambda time_ns: b"",
        close: Callable[[], None] = lambda: None,
    ) -> None:
        """``line`` returns a line of input, or nothing for its end; ``interrupt`` what is typed
        while the command runs. ``close`` ends a wait of either when the guest has ended."""
        self._show, self._close = show, close
        self._answers = {b"R": line, b"P": interrupt}
        self._error: BaseException | None = None

    @contextlib.contextmanager
    def serving(self) -> Iterator[int]:
        """Serve a guest within the block; yields the descriptor that the guest gets.

        Raises what showing or asking raised.
        """
        ours, guests = socket.socketpair()
        thread = threading.Thread(target=self._serve, args=(ours,), name="terminal", daemon=True)
        with ours, guests:
            thread.start()
            try:
                yield guests.fileno()
            finally:
                # Only the guest's programs held it otherwise: this is the end of the stream.
                guests.shutdown(socket.SHUT_RDWR)
                self._close()
                thread.join()
        if self._error:
            raise self._error

    def _serve(self, ours: socket.socket) -> None:
        try:
            with ours.makefile("rb") as stream:
                while len(head := stream.read(5)) == 5:
                    payload = stream.read(int.from_bytes(head[1:], "big"))
                    if answer := self._answers.get(head[:1]):
                        typed = answer(int(payload))
                        # If the guest is gone, the next read says so.
                        with contextlib.suppress(OSError):
                            ours.sendall(len(typed).to_bytes(4, "big") + typed)
                    else:
                        self._show(payload)
        except BaseException as error:
            self._error = error
        finally:
            # A guest that still asks reads the end of the stream, and fails.
            with contextlib.suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)
