"""Repeat the last progress message if nothing has been printed for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERVAL_S = 20.0
"""The longest time without a line, in s."""


@contextmanager
def heartbeat(
    say: Callable[[str], None], interval_s: float = INTERVAL_S
) -> Iterator[Callable[[str], None]]:
    """Give a function that passes lines on to ``say``, from any thread, and repeats them in
    silence.

    After each silence of ``interval_s``, the last line of every living thread is printed again,
    with the time since then.
    """
    lock, over = threading.Lock(), threading.Event()
    last: dict[threading.Thread, tuple[str, float]] = {}
    said_s = time.monotonic()

    def pass_on(line: str) -> None:
        nonlocal said_s
        with lock:
            said_s = time.monotonic()
            last[threading.current_thread()] = (line, said_s)
            say(line)

    def repeat() -> None:
        nonlocal said_s
        while not over.wait(max(0.01, said_s + interval_s - time.monotonic())):
            with lock:
                now = time.monotonic()
                if now - said_s < interval_s or over.is_set():
                    continue
                said_s = now
                going_on = [entry for thread, entry in last.items() if thread.is_alive()]
                if going_on:
                    say(
                        "; ".join(f"{line}: {now - since:.0f} s so far" for line, since in going_on)
                    )

    thread = threading.Thread(target=repeat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield pass_on
    finally:
        with lock:  # a line that is being written is written whole
            over.set()
        thread.join()
