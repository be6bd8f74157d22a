"""Download files, and give up on hosts that hang.

A dead mirror refuses connections. A hanging one accepts them and sends nothing, or a byte now and
then, which would cost hours over hundreds of files.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator

SILENT_S = 30.0
"""So long an answer, or its next byte, may take."""

LEAST_BYTES = 10_000
"""What must come in that time."""

AT_ONCE = 8
"""Requests; and a host that so many in a row have waited for in vain is not asked any more."""

_CHUNK_BYTES = 1 << 20
_NOT_THERE = (400, 403, 404, 410)


class FetchError(Exception):
    """The server has no file for us: ``is_final`` if a retry is useless, ``was_silent`` if it
    hung."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error) or type(error).__name__)
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        is_unknown = isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME
        is_refused = isinstance(error, urllib.error.HTTPError) and error.code in _NOT_THERE
        self.is_final = (
            is_refused or is_unknown or isinstance(reason, (FileNotFoundError, ValueError))
        )
        self.was_silent = isinstance(reason, TimeoutError)


def chunks(address: str, most_bytes: int) -> Iterator[bytes]:
    """Yield the content at an address, ``most_bytes`` at most. Raises FetchError."""
    try:
        with urllib.request.urlopen(address, timeout=SILENT_S) as answer:
            since, came, left = time.monotonic(), 0, most_bytes
            # read1, for read would wait until all of it is there, however slowly it comes.
            while left and (data := answer.read1(min(left, _CHUNK_BYTES))):
                yield data
                left -= len(data)
                came += len(data)
                took_s = time.monotonic() - since
                if took_s > SILENT_S:
                    if came < LEAST_BYTES:
                        raise TimeoutError(f"{came} bytes in {took_s:.0f} s")
                    since, came = time.monotonic(), 0
    except (
        OSError,
        http.client.HTTPException,
        ValueError,
    ) as error:  # the last for what is no address
        raise FetchError(error) from error


class Silence:
    """Which hosts hang, shared by threads that download from them at once."""

    def __init__(self) -> None:
        self._lock, self._waits = threading.Lock(), Counter[str]()

    def keeps(self, address: str) -> bool:
        """Return whether the address's host was given up."""
        return self._waits[host(address)] >= AT_ONCE

    def note(self, address: str, *, was_silent: bool) -> bool:
        """Count the result of a request, and give up the host after too many that hung."""
        with self._lock:
            waits = self._waits[host(address)] + 1 if was_silent else 0
            self._waits[host(address)] = waits
            return waits == AT_ONCE


def host(address: str) -> str:
    """Return the host of an address; "" for a local file."""
    return urllib.parse.urlsplit(address).netloc
