"""IPv6 alone: a router announces its prefixes, hosts make their own addresses, and TCP uses them.

    qjump-mn mn --packages radvd examples/mininet/ipv6.py

h1 - r1 - h2. Mininet gives IPv4 addresses only, so there are none.
"""

import json
import re
import time
from pathlib import Path

from mininet.link import TCLink
from mininet.net import Mininet

ANNOUNCES = """
interface r1-eth{number} {{
    AdvSendAdvert on;
    MinRtrAdvInterval 3;
    MaxRtrAdvInterval 4;
    prefix 2001:db8:{number}::/64 {{}};
}};
"""


def address(host):
    """Return the address that the host has made, once it knows that no other has it."""
    for _ in range(100):
        told = host.cmd(f"ip -6 -j addr show dev {host.name}-eth0 scope global -tentative")
        if found := re.search(r"2001:db8:[0-9a-f:]+", told):
            return found[0]
        time.sleep(0.1)
    raise SystemExit(f"{host.name} has no address after 10 s:\n{told}")


def main():
    net = Mininet(controller=None, link=TCLink)
    h1, r1, h2 = (net.addHost(name, ip=None) for name in ("h1", "r1", "h2"))
    for host in (h1, h2):
        net.addLink(r1, host, bw=10, delay="1ms", max_queue_size=50)
    net.start()
    r1.cmd("sysctl -w net.ipv6.conf.all.forwarding=1")
    for number in (0, 1):
        r1.cmd(f"ip addr add 2001:db8:{number}::1/64 dev r1-eth{number}")
    Path("/tmp/radvd.conf").write_text("".join(ANNOUNCES.format(number=n) for n in (0, 1)))
    print(r1.cmd("radvd -C /tmp/radvd.conf -p /tmp/radvd.pid -m stderr"), end="")
    began = time.monotonic()
    found = {host.name: address(host) for host in (h1, h2)}
    print(f"after {time.monotonic() - began:.1f} s: {found}")
    print(h1.cmd(f"ping -6 -c 3 {found['h2']}").splitlines()[-1])
    h2.cmd("iperf3 -s -D")
    done = json.loads(h1.cmd(f"iperf3 -6 -c {found['h2']} -t 5 -J"))
    print(f"TCP: {done['end']['sum_received']['bits_per_second'] / 1e6:.2f} Mb/s")
    print(h1.cmd(f"traceroute -6 -n -q 1 {found['h2']}"), end="")
    h2.cmd("pkill iperf3")
    r1.cmd("kill $(cat /tmp/radvd.pid)")
    net.stop()


main()
