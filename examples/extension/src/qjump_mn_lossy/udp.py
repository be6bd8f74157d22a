"""Datagrams that are sent back. Hosts run the text of this file, for they need not have this
package:

    python3 -c TEXT serve PORT
    python3 -c TEXT ask ADDRESS PORT COUNT INTERVAL_NS BYTES

`ask` prints a line for each datagram: its number, from 1, and its round trip in us, or "lost".
"""

import socket
import struct
import sys
import time

HEAD = struct.Struct("!Iq")
"""The number of a datagram, and when it was sent, in ns."""

LINGER_NS = 10**9
"""How long the last replies are waited for."""


def serve(port: int) -> None:
    """Send every datagram back, until somebody ends this program."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(("", port))
        while True:
            datagram, sender = end.recvfrom(65535)
            end.sendto(datagram, sender)


def ask(address: str, port: int, count: int, interval_ns: int, size: int) -> None:
    """Send `count` datagrams, one every `interval_ns` whether or not the others came back."""
    trips_us: dict[int, float] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.connect((address, port))
        began_ns = time.monotonic_ns()
        for number in range(1, count + 1):
            end.send(HEAD.pack(number, time.monotonic_ns()).ljust(size, b"\0"))
            listen(end, began_ns + number * interval_ns, count, trips_us)
        listen(end, time.monotonic_ns() + LINGER_NS, count, trips_us)
    for number in range(1, count + 1):
        print(number, f"{trips_us[number]:.3f}" if number in trips_us else "lost")


def listen(end: socket.socket, until_ns: int, count: int, trips_us: dict[int, float]) -> None:
    """Note the round trips of what comes back until then, or until all have come back."""
    while len(trips_us) < count and (left_ns := until_ns - time.monotonic_ns()) > 0:
        end.settimeout(left_ns / 1e9)
        try:
            number, sent_ns = HEAD.unpack(end.recv(65535)[: HEAD.size])
        except TimeoutError:
            return
        trips_us[number] = (time.monotonic_ns() - sent_ns) / 1e3


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        ask(sys.argv[2], *map(int, sys.argv[3:]))
