"""A qdisc of one's own below Mininet's shaper: fq_codel keeps a ping short beside a bulk flow.

Without root: ``qjump-mn mn queues.py``. With an installed Mininet: ``sudo python3 queues.py``.
"""

from mininet.net import Mininet
from mininet.node import OVSBridge

from mininet_qos import ChildLink


def measured(child: str) -> str:
    """Return what ping prints beside a TCP flow through a slow link with this qdisc."""
    net = Mininet(switch=OVSBridge, link=ChildLink, controller=None)
    switch, h1, h2 = net.addSwitch("s1"), net.addHost("h1"), net.addHost("h2")
    net.addLink(h1, switch, bw=100, delay="1ms")
    net.addLink(h2, switch, bw=10, params2={"child": child})
    net.start()
    try:
        h2.cmd("iperf3 --server --daemon")
        h1.cmd("iperf3 --time 10 --client", h2.IP(), "> /dev/null &")
        printed = h1.cmd("sleep 2; ping -c 20 -i 0.1 -q", h2.IP())
        return str(printed).strip().splitlines()[-1]
    finally:
        net.stop()


if __name__ == "__main__":
    for qdisc in ("pfifo limit 1000", "fq_codel"):
        print(f"{qdisc}:", measured(qdisc))
