"""Three routers in a triangle run OSPF (FRR); a link loses everything, and a ping says how long
it takes until they notice: their dead interval is 3 s.

    qjump-mn mn --packages frr examples/mininet/ospf.py

h1 - r1 - r2 - h2, and r1 - r3 - r2 as the way around. Every prefix is known by OSPF alone.
"""

import re
import shutil
import subprocess
import time
from pathlib import Path

from mininet.net import Mininet
from mininet.node import Node

FRR = "/usr/lib/frr"
LINKS = {("r1", "r2"): "10.0.12", ("r1", "r3"): "10.0.13", ("r3", "r2"): "10.0.32"}
CONFIGURATION = """
router ospf
 ospf router-id 1.1.1.{number}
 network 10.0.0.0/8 area 0
 timers throttle spf 10 100 1000
interface {interface}
 ip ospf hello-interval 1
 ip ospf dead-interval 3
 ip ospf network point-to-point
"""


class Router(Node):
    """A node that forwards, with FRR's zebra and ospfd."""

    def start(self, number):
        self.cmd("sysctl -w net.ipv4.ip_forward=1")
        folder = Path(f"/run/frr/{self.name}")
        folder.mkdir(parents=True, exist_ok=True)
        lines = CONFIGURATION.partition("interface")
        text = lines[0].format(number=number) + "".join(
            ("interface" + lines[2]).format(interface=name) for name in self.intfNames()
        )
        (folder / "ospfd.conf").write_text(text)
        shutil.chown(folder, "frr", "frr")
        for program in ("zebra", "ospfd"):
            files = f"-i {folder}/{program}.pid -z {folder}/zebra.sock --vty_socket {folder}"
            configuration = f"-f {folder}/ospfd.conf" if program == "ospfd" else "-f /dev/null"
            print(self.cmd(f"{FRR}/{program} -d {files} {configuration}"), end="")


def build():
    net = Mininet(controller=None)
    routers = {name: net.addHost(name, cls=Router, ip=None) for name in ("r1", "r2", "r3")}
    for (one, other), prefix in LINKS.items():
        ends = [{"ip": f"{prefix}.{number}/24"} for number in (1, 2)]
        net.addLink(one, other, params1=ends[0], params2=ends[1])
    for number in (1, 2):
        host = net.addHost(
            f"h{number}", ip=f"10.{number}.0.2/24", defaultRoute=f"via 10.{number}.0.1"
        )
        net.addLink(host, routers[f"r{number}"], params2={"ip": f"10.{number}.0.1/24"})
    return net


def main():
    net = build()
    net.start()
    for number, name in enumerate(("r1", "r2", "r3"), 1):
        net[name].start(number)
    began = time.monotonic()
    while " 0 received" in net["h1"].cmd("ping -c 1 -W 0.2 10.2.0.2"):
        time.sleep(0.1)
        if time.monotonic() - began > 120:
            raise SystemExit("OSPF found no way in 120 s")
    print(f"h2 can be reached after {time.monotonic() - began:.1f} s")
    print(net["h1"].cmd("traceroute -n -q 1 10.2.0.2"), end="")

    ping = net["h1"].popen("ping -i 0.1 -c 100 10.2.0.2", stdout=subprocess.PIPE, text=True)
    time.sleep(3)
    for name in ("r1", "r2"):
        net[name].cmd(f"tc qdisc add dev {name}-eth0 root netem loss 100%")
    printed = ping.communicate()[0]
    (received,) = re.findall(r"(\d+) received", printed)
    print(
        f"the link of r1 and r2 fails: of 100 pings {100 - int(received)} are lost, one each 0.1 s"
    )
    print(net["h1"].cmd("traceroute -n -q 1 10.2.0.2"), end="")
    for name in ("r1", "r2", "r3"):
        net[name].cmd(f"kill $(cat /run/frr/{name}/*.pid)")
    net.stop()


main()
