"""Runs in the guest: what leaves a host through a VLAN device with an egress map, as tcpdump sees
it on the cable, for programs that no library reaches. test_levels.py judges what it leaves."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE, THERE, PORT = "10.0.0.1", "10.0.0.2", 7000
HOSTS = {"a": HERE, "b": THERE}

# Raw system calls, as a language without the C library makes them.
RAW = f"""
import ctypes, socket, struct
call = ctypes.CDLL(None).syscall
fd = call(41, 2, 1, 0)
assert call(42, fd, struct.pack("=H", 2) + struct.pack("!H", {PORT}) + socket.inet_aton("{THERE}") + bytes(8), 16) == 0
assert call(1, fd, b"hello", 5) == 5
call(48, fd, 1)
while call(0, fd, ctypes.create_string_buffer(64), 64) > 0: pass
"""
SERVER = """
import socket
l = socket.create_server(("ADDRESS", PORT)); c = l.accept()[0]
while c.recv(99): pass
c.sendall(b"world")
"""
# Closes first, so that the kernel answers for it in TIME_WAIT.
HASTY = SERVER.replace("while c.recv(99): pass", "c.recv(9)")
CLIENT = """
import socket, time
c = socket.create_connection(("ADDRESS", PORT)); time.sleep(0.1); c.sendall(b"hello")
while c.recv(99): pass
time.sleep(0.2)  # the server's end is acknowledged alone, and ours finds it in TIME_WAIT
"""


def python(text: str, address: str) -> list[str]:
    return [sys.executable, "-c", text.replace("ADDRESS", address).replace("PORT", str(PORT))]


def shell(line: str) -> None:
    subprocess.run(["sh", "-ec", line], check=True)


def network() -> None:
    shell("ip netns add a; ip netns add b; ip link add e netns a type veth peer name e netns b")
    for name, address in HOSTS.items():
        levels = " ".join(f"{level}:{level}" for level in range(8))
        shell(f"""ip netns exec {name} sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
            ip -n {name} link set lo up; ip -n {name} link set e up
            ip -n {name} link add link e name e.2 type vlan id 2 egress-qos-map {levels}
            ip -n {name} addr add {address}/24 dev e.2; ip -n {name} link set e.2 up""")


def in_host(host: str, argv: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["ip", "netns", "exec", host, *argv])


def is_heard(host: str) -> bool:
    argv = ["ip", "netns", "exec", host, "cat", "/proc/net/tcp"]
    return (
        f":{PORT:04X} 00000000:0000 0A"
        in subprocess.run(argv, capture_output=True, text=True).stdout
    )


def capture(name: str, here: list[str], there: list[str], *, listens: str) -> None:
    """Run one program at each end until both have ended well, the server first; what host a sends
    lies in a file."""
    with open(f"{name}.txt", "wb") as output:
        argv = f"ip netns exec a tcpdump -l -n -e -Q out -i e vlan and tcp port {PORT}".split()
        tap = subprocess.Popen(argv, stdout=output, stderr=subprocess.PIPE)
        assert tap.stderr is not None
        while b"listening" not in tap.stderr.readline():
            assert tap.poll() is None
        programs = {"a": here, "b": there}
        started = [in_host(listens, programs.pop(listens))]
        while not is_heard(listens):
            assert started[0].poll() is None
            time.sleep(0.01)
        started += [in_host(host, argv) for host, argv in programs.items()]
        assert [program.wait(60) for program in started] == [0, 0], name
        time.sleep(0.5)
        tap.terminate()
        tap.wait()


def main() -> None:
    network()
    static = Path("/tmp/job/static")
    static.write_bytes(gzip.decompress(base64.b64decode(Path("/tmp/job/static.txt").read_text())))
    static.chmod(0o755)
    answering = python(SERVER, THERE)
    asking = python(CLIENT, HERE)
    clients = {"raw": python(RAW, THERE), "static": [str(static)]}
    level = ["qjau", "-p", "6", "--"]
    for name, argv in clients.items():
        capture(f"{name}.plain", argv, answering, listens="b")
        capture(name, [*level, "nice", *argv], answering, listens="b")
    capture("server.plain", python(HASTY, HERE), asking, listens="a")
    capture("server", [*level, *python(HASTY, HERE)], asking, listens="a")
    by_user = [
        "setpriv",
        "--reuid",
        "65534",
        "--clear-groups",
        "qjau",
        "-p",
        "6",
        "nice",
        str(static),
    ]
    refused = subprocess.run(by_user, capture_output=True, text=True, check=False)
    time.sleep(0.5)
    left = [name for name in os.listdir("/proc") if name.isdigit() and comm(name) == "qjau-watch"]
    said = {"refused": [refused.returncode, refused.stderr], "left": left}
    Path("said.json").write_text(json.dumps(said))


def comm(process: str) -> str:
    try:
        return Path("/proc", process, "comm").read_text().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    main()
