"""Transmit time stamps: SO_TIMESTAMPING of UDP datagrams through a wire of 10 Mb/s.

Measured with and without orphan.

The frames are redirected through a wire of 100 Mb/s on a second veth in the other namespace, which
must not stamp them again. Three datagrams of 1000 B are sent alone, then one just after a frame of
1514 B. The stamps are of the clock that the sender reads (CLOCK_REALTIME). `after_send_ns`: from
sendto() to the stamp; `on_wires_ns`: from there to the receiver's stamp; `gap_ns`: from the stamp
of the frame before. `jitter`: 20 datagrams to each of two addresses, of which `overtook` arrive
before one sent earlier.
"""
import socket
import struct
import time

import rig

SO_TIMESTAMPING = 37
TX_SOFTWARE, SOFTWARE, OPT_ID, OPT_TSONLY = 1 << 1, 1 << 4, 1 << 7, 1 << 11
SOL_IP, IP_RECVERR = 0, 11


def stamps(sender: socket.socket) -> list[tuple[int, int]]:
    """Return number and stamp (ns) of every message in the socket's error queue."""
    found: list[tuple[int, int]] = []
    while True:
        try:
            _, extra, _, _ = sender.recvmsg(1, 512, socket.MSG_ERRQUEUE)
        except BlockingIOError:
            return found
        values = {kind: data for _, kind, data in extra}
        seconds, ns = struct.unpack("qq", values[SO_TIMESTAMPING][:16])
        found.append((struct.unpack("=IBBBBII", values[IP_RECVERR][:16])[6], seconds * 10**9 + ns))


def arrival(receiver: socket.socket) -> int:
    """Return the kernel's stamp of the next datagram."""
    _, extra, _, _ = receiver.recvmsg(2000, 64)
    seconds, ns = struct.unpack("qq", extra[0][2][:16])
    return int(seconds * 10**9 + ns)


def stamping(address: str) -> socket.socket:
    """Create a sender of datagrams with transmit time stamps."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, TX_SOFTWARE | SOFTWARE | OPT_ID | OPT_TSONLY)
    sender.setblocking(False)
    sender.connect((address, 9))
    return sender


rig.build()
rig.run("ip link add b1 netns b type veth peer name c1 netns b")
rig.run("ip -n b addr del 10.9.0.2/24 dev b0")
rig.run("ip -n b addr add 10.9.0.2/24 dev c1")
rig.run(f"ip -n b link set c1 address {rig.address_of('b')}")
for link in ("b1", "c1"):
    rig.run(f"ip -n b link set {link} addrgenmode none up")
rig.run("ip -n b addr add 10.9.0.3/24 dev c1")
rig.run(f"ip -n a neigh add 10.9.0.3 lladdr {rig.address_of('b')} nud permanent dev a0")
rig.tc("qdisc add dev b0 ingress", "b")
rig.tc("filter add dev b0 ingress matchall action mirred egress redirect dev b1", "b")
rig.enter("b")
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("", 9))
receiver.settimeout(1)
receiver.setsockopt(socket.SOL_SOCKET, rig.SO_TIMESTAMPNS, 1)
results = {}
for mode in ("orphan", "noorphan"):
    rig.tc(f"qdisc replace dev a0 root handle 5: wire rate 10mbit {mode} jitter none")
    rig.tc(f"qdisc replace dev b1 root handle 5: wire rate 100mbit {mode}", "b")
    rig.enter("a")
    sender = stamping("10.9.0.2")
    sent, came = [], []
    for _ in range(3):
        sent.append(rig.now())
        sender.send(bytes(1000 - 42))
        came.append(arrival(receiver))
        time.sleep(0.01)
    sender.send(bytes(1514 - 42))
    sender.send(bytes(1000 - 42))
    for _ in range(2):
        arrival(receiver)
    time.sleep(0.05)
    numbers, times = zip(*stamps(sender), strict=True)
    results[mode] = {"numbers": numbers, "after_send_ns": [times[i] - sent[i] for i in range(3)],
                     "on_wires_ns": [came[i] - times[i] for i in range(3)],
                     "gap_ns": times[4] - times[3]}
    rig.tc(f"qdisc replace dev a0 root handle 5: wire rate 10mbit {mode} jitter 0:0us,100:20ms seed 7")
    senders = [stamping(f"10.9.0.{host}") for host in (2, 3)]
    for number in range(40):
        senders[number % 2].send(bytes([number]) * 100)
        time.sleep(0.001)
    order = [receiver.recv(2000)[0] for _ in range(40)]
    time.sleep(0.05)
    results[mode]["jitter"] = {"numbers": [[number for number, _ in stamps(sender)] for sender in senders],
                               "overtook": sum(number < max(order[:place], default=0) for place, number in enumerate(order))}
rig.report(modes=results)
