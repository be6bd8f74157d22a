"""GSO: one packet of 20 UDP datagrams of 1400 B through a wire of 10 Mb/s.

- `handed_over`: the lengths that leave a0, for each root qdisc; `pfifo` must pass the packet whole,
  otherwise this check proves nothing.
- `wire`: the datagrams received, and the gaps between them in frame times.
- `urgent`: the position at which a datagram of level 7 arrived that was sent just after the packet.
- `full`: with queues of five frames, the datagrams received and the drops of the level.
- `child`: the datagrams that come through a pfifo below the wire.
- `left`: packets and bytes waiting at the end.
"""

import contextlib
import itertools
import socket
import struct

import rig

SEGMENTS, SIZE = 20, 1400
FRAME = SIZE + 8 + 20 + 14
UDP_SEGMENT = 103
FRAME_NS = (FRAME + 4 + 20) * 8e9 / 10e6


def sender(priority: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
    made.connect(("10.9.0.2", 9))
    return made


def everything(source: socket.socket, quiet_s: float = 0.1) -> list[tuple[int, int]]:
    """Return stamp (ns) and length of each datagram or frame until none arrives for quiet_s."""
    found = []
    source.settimeout(quiet_s)
    with contextlib.suppress(TimeoutError):
        while True:
            data, extra, _, _ = source.recvmsg(1 << 16, 64)
            seconds, ns = struct.unpack("qq", extra[0][2][:16])
            found.append((seconds * 10**9 + ns, len(data)))
    return found


def send_packet() -> list[tuple[int, int]]:
    bulk.send(bytes(SEGMENTS * SIZE))
    return everything(receiver)


def root(line: str) -> None:
    rig.tc("qdisc del dev a0 root", check=False)
    rig.tc(f"qdisc add dev a0 root handle 5: {line}")


rig.build()
rig.enter("b")
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.setsockopt(socket.SOL_SOCKET, rig.SO_RCVBUFFORCE, 1 << 24)
receiver.setsockopt(socket.SOL_SOCKET, rig.SO_TIMESTAMPNS, 1)
receiver.bind(("10.9.0.2", 9))
rig.enter("a")
watcher = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
watcher.setsockopt(socket.SOL_SOCKET, rig.SO_TIMESTAMPNS, 1)
watcher.bind(("a0", 3))
bulk, urgent = sender(0), sender(7)
bulk.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, SIZE)

handed_over = {}
for kind, line in (("pfifo", "pfifo"), ("wire", "wire rate 10mbit classify priority")):
    root(line)
    came = send_packet()
    handed_over[kind] = [length for _, length in everything(watcher) if length > SIZE]
gaps = [(after - before) / FRAME_NS for (before, _), (after, _) in itertools.pairwise(came)]

bulk.send(bytes(SEGMENTS * SIZE))
urgent.send(b"now")
place = [length for _, length in everything(receiver)].index(3)

root(f"wire rate 10mbit classify priority limit {5 * (FRAME + 4)}")
full = {"received": len(send_packet()), "drops": rig.level("wire", 0)["drops"]}

rig.tc("qdisc add dev a0 parent 5:1 handle 6: pfifo limit 100")
child = len(send_packet())
rig.report(
    handed_over=handed_over,
    received=[length for _, length in came],
    gaps=gaps,
    urgent=place,
    full=full,
    child=child,
    left=[[state["qlen"], state["backlog"]] for state in map(rig.qdisc, ("wire", "pfifo"))],
)
