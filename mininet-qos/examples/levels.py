"""Ping beside bulk traffic in Figure 3a's network of QJump, at level 6 and at level 0.

Without root: ``qjump-mn mn levels.py``. With an installed Mininet: ``sudo python3 levels.py``.
"""

from mininet.net import Mininet
from mininet.topo import Topo

from mininet_qos import PrioritySwitch, VLANHost, WireLink


class Figure3a(Topo):  # type: ignore[misc]
    """Three racks of six, three and three hosts below one switch; ``bw`` is in Mbit/s."""

    def build(self, bw: float = 10) -> None:
        self.addSwitch("s0")
        for rack, hosts in {"s1": range(1, 7), "s2": range(7, 10), "s3": range(10, 13)}.items():
            self.addLink("s0", self.addSwitch(rack), bw=bw)
            for host in hosts:
                self.addLink(self.addHost(f"h{host}"), rack, bw=bw)


def main() -> None:
    """Start the network and three bulk flows, and ping beside them."""
    net = Mininet(Figure3a(), host=VLANHost, switch=PrioritySwitch, link=WireLink, controller=None)
    net.start()
    try:
        for sender, receiver in (("h7", "h10"), ("h9", "h11"), ("h1", "h12")):
            net[receiver].cmd("iperf3 --server --daemon")
            net[sender].cmd("iperf3 --time 20 --client", net[receiver].IP(), "> /dev/null &")
        net["h1"].cmd("sleep 2")
        # ARP has level 0 and would wait in the first ping.
        net["h8"].cmd("ping -c 1", net["h10"].IP())
        for tos, level in (("16", 6), ("0", 0)):
            printed = net["h8"].cmd("ping -c 20 -i 0.1 -q -Q", tos, net["h10"].IP())
            print(f"level {level}:", printed.strip().splitlines()[-1])
    finally:
        net.stop()


if __name__ == "__main__":
    main()
