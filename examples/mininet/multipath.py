"""Two ways of 10 Mb/s between two hosts: 16 TCP flows that a router spreads over both, and one
MPTCP connection that uses both.

    qjump-mn mn examples/mininet/multipath.py
"""

import json
import time

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import Node

MPTCP = """
import socket, sys, time
def sock():
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)  # IPPROTO_MPTCP
if sys.argv[1] == "receive":
    server = sock()
    server.bind(("", 5000))
    server.listen()
    peer, _ = server.accept()
    total = 0
    began = time.monotonic()
    while data := peer.recv(1 << 16):
        total += len(data)
    print(f"{total * 8 / (time.monotonic() - began) / 1e6:.1f}")
else:
    client = sock()
    client.connect((sys.argv[2], 5000))
    end = time.monotonic() + 5
    while time.monotonic() < end:
        client.sendall(bytes(1 << 16))
    client.close()
"""


class Router(Node):
    """A node that forwards, and chooses among equal ways by a flow's addresses and ports."""

    def config(self, **parameters):
        super().config(**parameters)
        self.cmd("sysctl -w net.ipv4.ip_forward=1 net.ipv4.fib_multipath_hash_policy=1")


def build():
    """h1 - r1 = r2 - h2, with two links of 10 Mb/s in the middle."""
    net = Mininet(controller=None, link=TCLink)
    r1, r2 = (net.addHost(name, cls=Router, ip=None) for name in ("r1", "r2"))
    for way in (1, 2):
        ends = [{"ip": f"10.0.{way}.{number}/24"} for number in (1, 2)]
        net.addLink(r1, r2, bw=10, delay="1ms", max_queue_size=50, params1=ends[0], params2=ends[1])
    for number, router in ((1, r1), (2, r2)):
        via = f"via 10.{number}.0.1"
        host = net.addHost(f"h{number}", ip=f"10.{number}.0.2/24", defaultRoute=via)
        net.addLink(host, router, bw=100, delay="10us", params2={"ip": f"10.{number}.0.1/24"})
    return net


def sent_bytes(router):
    return [
        int(router.cmd(f"cat /sys/class/net/{router.name}-eth{way}/statistics/tx_bytes"))
        for way in (0, 1)
    ]


def flows(net, ways):
    """Print what 16 flows get for 5 s over the first so many ways."""
    for number, router in enumerate(("r1", "r2"), 1):
        hops = " ".join(f"nexthop via 10.0.{way}.{3 - number}" for way in range(1, ways + 1))
        net[router].cmd(f"ip route replace 10.{3 - number}.0.0/24 {hops}")
    before = sent_bytes(net["r1"])
    done = json.loads(net["h1"].cmd("iperf3 -c 10.2.0.2 -P 16 -t 5 -J"))
    sent = [after - first for first, after in zip(before, sent_bytes(net["r1"]), strict=True)]
    shares = ", ".join(f"{100 * one / sum(sent):.0f} %" for one in sent)
    goodput = done["end"]["sum_received"]["bits_per_second"] / 1e6
    print(f"16 flows over {ways} way{'s'[: ways - 1]}: {goodput:.1f} Mb/s; of r1's bytes {shares}")


def connection(subflows):
    """Print what one MPTCP connection gets for 5 s with so many subflows."""
    net = Mininet(controller=None, link=TCLink)
    h1, h2 = (net.addHost(f"h{number}", ip=f"10.0.1.{number}/24") for number in (1, 2))
    for way in (1, 2):
        ends = [{"ip": f"10.0.{way}.{number}/24"} for number in (1, 2)]
        net.addLink(h1, h2, bw=10, delay="1ms", max_queue_size=50, params1=ends[0], params2=ends[1])
    net.start()
    for host in (h1, h2):
        host.cmd("ip mptcp limits set subflow 2 add_addr_accepted 2")
    if subflows == 2:
        h2.cmd("ip mptcp endpoint add 10.0.2.2 dev h2-eth1 signal")
    server = h2.popen(["python3", "-c", MPTCP, "receive"], text=True)
    time.sleep(0.5)
    h1.popen(["python3", "-c", MPTCP, "send", "10.0.1.2"]).wait()
    received = server.communicate()[0].strip()
    print(f"an MPTCP connection with {subflows} subflow{'s'[: subflows - 1]}: {received} Mb/s")
    net.stop()


def main():
    net = build()
    net.start()
    net["h2"].cmd("iperf3 -s -D")
    for ways in (1, 2):
        flows(net, ways)
    net["h2"].cmd("kill %iperf3; pkill iperf3")
    net.stop()
    for subflows in (1, 2):
        connection(subflows)


main()
