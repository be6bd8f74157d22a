"""Send datagrams, or answer them; this runs on the hosts, with their Python:

    answer PORT
    ask ADDRESS PORT COUNT INTERVAL_NS BYTES

`ask` prints a line for each datagram: its number, from 1, and its round-trip time in us, or "lost".
"""

import socket
import sys
import time


def answer(port: int) -> None:
    """Send every datagram back, until this process is ended."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(("", port))
        while True:
            datagram, sender = end.recvfrom(65535)
            end.sendto(datagram, sender)


def ask(address: str, port: int, count: int, interval_ns: int, size: int) -> None:
    """Send `count` datagrams, one every `interval_ns`, without waiting for answers."""
    away_us: dict[int, float] = {}
    sent_ns: dict[int, int] = {}

    def listen(until_ns: int) -> None:
        while len(away_us) < count and (left_ns := until_ns - time.monotonic_ns()) > 0:
            end.settimeout(left_ns / 1e9)
            try:
                number = int.from_bytes(end.recv(65535)[:4], "big")
            except TimeoutError:
                return
            away_us[number] = (time.monotonic_ns() - sent_ns[number]) / 1e3

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.connect((address, port))
        began_ns = time.monotonic_ns()
        for number in range(1, count + 1):
            sent_ns[number] = time.monotonic_ns()
            end.send(number.to_bytes(4, "big").ljust(size, b"\0"))
            listen(began_ns + number * interval_ns)
        listen(time.monotonic_ns() + 10**9)
    for number in range(1, count + 1):
        print(number, f"{away_us[number]:.3f}" if number in away_us else "lost")


if __name__ == "__main__":
    if sys.argv[1] == "answer":
        answer(int(sys.argv[2]))
    else:
        ask(sys.argv[2], *map(int, sys.argv[3:]))
