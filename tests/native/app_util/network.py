"""Two namespaces with a cable between them, and what leaves the first one by priority."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.native.app_util.qjau import Words

HERE, THERE = "10.9.8.1", "10.9.8.2"
PORT = 7000
SYN, RST, ACK = 0x02, 0x04, 0x10

ANSWER_ONE = f"""
import socket
listener = socket.create_server(("{THERE}", {PORT})); print("ready", flush=True)
connection = listener.accept()[0]
while connection.recv(99): pass
connection.sendall(b"world")
"""

SERVER = f"""import socket, time
listener = socket.create_server(("{HERE}", {PORT})); time.sleep(0.1)
connection = listener.accept()[0]; connection.recv(9); connection.sendall(b"world"); connection.close()"""

ASK_ONE = f"""
import socket, time
for _ in range(1000):
    try: connection = socket.create_connection(("{HERE}", {PORT})); break
    except ConnectionRefusedError: time.sleep(0.01)
time.sleep(0.05)
connection.sendall(b"hello")
while connection.recv(99): pass
time.sleep(0.2)  # the other end's FIN is acknowledged alone, and ours finds it in TIME_WAIT
"""


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition; fail with what it was after a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.01)


class Capture:
    """The packets that left, as capture.py tells them."""

    packets: list[tuple[int, int, int]]

    @property
    def priorities(self) -> set[int]:
        return {priority for priority, _, _ in self.packets}

    def tcp(self, flags: int) -> Counter[int]:
        """The priorities of TCP's packets whose SYN and ACK are these."""
        of_tcp = [(priority, had) for priority, protocol, had in self.packets if protocol == 6]
        return Counter(priority for priority, had in of_tcp if had & (SYN | ACK) == flags)


class Network:
    def __init__(self) -> None:
        name = f"qjau{os.getpid()}"
        self.names = f"{name}a", f"{name}b"

    def here(self, *words: str | Path) -> Words:
        return ["ip", "netns", "exec", self.names[0], *words]

    def there(self, *words: str | Path) -> Words:
        return ["ip", "netns", "exec", self.names[1], *words]

    @contextmanager
    def captured(self) -> Iterator[Capture]:
        """What leaves while the block runs."""
        argv = self.here(sys.executable, Path(__file__).with_name("capture.py"), "q0")
        found, pipe = Capture(), subprocess.PIPE
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield found
            said, _ = process.communicate(timeout=20)
        found.packets = [tuple(packet) for packet in json.loads(said)]

    @contextmanager
    def serving(self, text: str = ANSWER_ONE) -> Iterator[subprocess.Popen[str]]:
        """A server at the other end that is ready, and ends by itself."""
        argv, pipe = self.there(sys.executable, "-c", text), subprocess.PIPE
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as server:
            assert server.stdout is not None and server.stdout.readline() == "ready\n"
            yield server
            server.communicate(timeout=20)


@contextmanager
def made() -> Iterator[Network]:
    network = Network()
    with ExitStack() as stack:
        for name in network.names:
            subprocess.run(["ip", "netns", "add", name], check=True)
            stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=True)
        a, b = network.names
        lines = [f"link add q0 netns {a} type veth peer name q0 netns {b}"]
        for name, address in ((a, HERE), (b, THERE)):
            lines += [f"-n {name} address add {address}/24 dev q0"]
            lines += [f"-n {name} link set {device} up" for device in ("lo", "q0")]
            # No routers' solicitations of the kernel's own.
            lines += [f"netns exec {name} sysctl -qw net.ipv6.conf.q0.disable_ipv6=1"]
        for line in lines:
            subprocess.run(["ip", *line.split()], check=True)
        yield network
