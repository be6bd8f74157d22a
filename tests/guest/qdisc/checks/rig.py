"""Two network namespaces joined by a veth pair, and sockets that send and time-stamp frames.

Uses the standard library, `ip` and `tc` only, and runs as root. Frames go from a0 (namespace a) to
b0 (namespace b). The kernel stamps received frames (SO_TIMESTAMPNS, ns). A frame carries its number
in the first four bytes of its payload.
"""
import atexit
import ctypes
import json
import shutil
import socket
import struct
import subprocess
import sys
import time
from typing import Any

ETHERTYPE = 0x88B5  # IEEE 802 local experimental 1
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
SO_SNDBUFFORCE = 32


def run(command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command line (no quoting); if it fails, end the check with its message."""
    done = subprocess.run(command.split(), capture_output=True, text=True)
    if check and done.returncode:
        sys.exit(f"{command}: {done.stderr or done.stdout}")
    return done


def enter(namespace: str = "") -> None:
    """Enter a network namespace by name, or by default the initial one."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}" if namespace else "/proc/1/ns/net") as f:
        if libc.setns(f.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")


def build() -> None:
    """Create namespaces a and b with a0 <-> b0, eight queues, IPv6 off; remove them at exit."""
    for n in "ab":
        run(f"ip netns add {n}")
        atexit.register(run, f"ip netns del {n}", check=False)
    run("ip link add a0 netns a numtxqueues 8 numrxqueues 8 type veth"
        " peer name b0 netns b numtxqueues 8 numrxqueues 8")
    for n, address in (("a", "10.9.0.1/24"), ("b", "10.9.0.2/24")):
        run(f"ip -n {n} link set {n}0 addrgenmode none up")
        run(f"ip -n {n} link set lo up")
        run(f"ip -n {n} addr add {address} dev {n}0")
    for n, peer, other in (("a", "10.9.0.2", "b"), ("b", "10.9.0.1", "a")):
        run(f"ip -n {n} neigh replace {peer} lladdr {address_of(other)} dev {n}0 nud permanent")


def address_of(namespace: str) -> str:
    out = run(f"ip -n {namespace} -j link show dev {namespace}0").stdout
    return str(json.loads(out)[0]["address"])


def tc(arguments: str, namespace: str = "a", check: bool = True) -> subprocess.CompletedProcess[str]:
    return run(f"tc -n {namespace} {arguments}", check)


def qdisc(kind: str, namespace: str = "a") -> dict[str, Any]:
    """Return the qdisc of this kind from `tc -j -s qdisc show`."""
    out = tc(f"-j -s qdisc show dev {namespace}0", namespace).stdout
    return next(q for q in json.loads(out) if q["kind"] == kind)


def level(kind: str, p: int, namespace: str = "a") -> dict[str, int]:
    return next(x for x in qdisc(kind, namespace)["levels"] if x["level"] == p)


class Sender:
    """A packet socket on a0; frame sizes exclude the FCS and include an inline tag."""

    def __init__(self, priority: int = 0, sndbuf: int = 1 << 28) -> None:
        enter("a")
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.socket.bind(("a0", 0))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, sndbuf // 2)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
        head = bytes.fromhex(address_of("b").replace(":", ""))
        self.head = head + bytes.fromhex(address_of("a").replace(":", ""))

    def frame(self, size: int, number: int, pcp: int | None = None) -> bytes:
        tag = b"" if pcp is None else struct.pack("!HH", 0x8100, pcp << 13 | 2)
        data = self.head + tag + struct.pack("!HI", ETHERTYPE, number)
        return data.ljust(size, b"\0")

    def send(self, size: int, number: int = 0, pcp: int | None = None) -> bool:
        try:
            self.socket.send(self.frame(size, number, pcp))
            return True
        except OSError:  # ENOBUFS: dropped by the qdisc
            return False


def stamped(of: socket.socket) -> list[tuple[int, int]]:
    """Return stamp (ns) and number of each of our frames received since the last call.

    Skip frames that the kernel sends on its own, such as IPv6 group reports of a new device.
    """
    frames: list[tuple[int, int]] = []
    while True:
        try:
            data, extra, _, address = of.recvmsg(64, 64, socket.MSG_TRUNC)
        except BlockingIOError:
            return frames
        if address[2] != socket.PACKET_OUTGOING and data[12:14] == ETHERTYPE.to_bytes(2):
            seconds, ns = struct.unpack("qq", extra[0][2][:16])
            frames.append((seconds * 10**9 + ns, struct.unpack("!I", data[14:18])[0]))


class Receiver:
    """A packet socket on b0; take() returns (stamp in ns, number) of all frames so far.

    The kernel has already removed an inline tag.
    """

    def __init__(self) -> None:
        enter("b")
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.bind(("b0", 3))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 29)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setblocking(False)

    def take(self) -> list[tuple[int, int]]:
        return stamped(self.socket)

    def take_all(self, quiet: float = 0.2, longest: float = 60) -> list[tuple[int, int]]:
        """Call take() until nothing has arrived for `quiet` seconds."""
        frames: list[tuple[int, int]] = []
        deadline = time.monotonic() + longest
        while time.monotonic() < deadline:
            time.sleep(quiet)
            more = self.take()
            if not more:
                return frames
            frames += more
        sys.exit("frames still arrive at the deadline")


def most_in_window(frames: list[tuple[int, int]], window_ns: int) -> int:
    """Return the most bytes in any half-open window of this length; frames are (stamp, bytes)."""
    most = total = first = 0
    for stamp, size in frames:
        total += size
        while frames[first][0] + window_ns <= stamp:
            total -= frames[first][1]
            first += 1
        most = max(most, total)
    return most


def offloads_off() -> None:
    for n in "ab":
        if shutil.which("ethtool"):
            run(f"ip netns exec {n} ethtool -K {n}0 tso off gso off gro off")
        else:
            run(f"ip -n {n} link set {n}0 gso_max_segs 1")


def report(**values: Any) -> None:
    print(json.dumps(values), flush=True)


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_REALTIME)

