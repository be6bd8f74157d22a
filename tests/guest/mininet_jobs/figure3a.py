"""Runs in the guest: Figure 3a's network by the twelve lines of the package's README, and with
other links.

Each is read back; urgent and other pings are taken beside three iperf3; three senders of UDP offer
more than a link takes; and it is looked whether anything stays."""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import stage

BULK = (("h7", "h10"), ("h9", "h11"), ("h1", "h12"))
"""Three flows over the link from s0 to s3, which the ping from h8 to h10 shares with them."""

URGENT = ("-Q", "16")
"""Linux makes priority 6 of this TOS, and VLANHost PCP 6 of that; the reply has none."""

PINGS = 100
OFFERED_MBPS = 9.6
SECONDS = 4


def ping(net: Any, *options: str) -> list[float]:
    """Round trips of h8 to h10 in ms, without the first, which Open vSwitch sends to user space."""
    text, _, _ = net["h8"].pexec(
        ["ping", "-n", "-i", "0.02", "-c", str(PINGS + 1), *options, net["h10"].IP()]
    )
    return [float(ms) for ms in re.findall(r"time=([\d.]+) ms", text)][1:]


class Bulk:
    """iperf3 from one host to another, three times, TCP or as ``options`` have it."""

    def __init__(self, net: Any, *options: str) -> None:
        self.servers = [net[sink].popen(["iperf3", "-s", "-1"]) for _, sink in BULK]
        for _, sink in BULK:
            while not net[sink].pexec(["ss", "-Htln", "sport = :5201"])[0]:
                time.sleep(0.1)
        self.clients = [
            net[source].popen(["iperf3", "-J", "-c", net[sink].IP(), "-t", str(SECONDS), *options])
            for source, sink in BULK
        ]

    def sent_mbps(self) -> list[float]:
        """What each sender has sent when all have ended, in Mb/s of payload."""
        texts = [client.communicate()[0] for client in self.clients]
        for server in self.servers:
            server.communicate()
        ends = [json.loads(text)["end"] for text in texts]
        return [
            round((end.get("sum_sent") or end["sum"])["bits_per_second"] / 1e6, 3) for end in ends
        ]


def read_back(net: Any) -> dict[str, Any]:
    """What was built, of a host and of switches' ports, as tc, ip, ethtool and Open vSwitch tell
    it."""
    told: dict[str, Any] = {}
    for node, device in (("h10", "h10-eth0"), ("s0", "s0-eth3"), ("s3", "s3-eth2")):
        tc, _, _ = net[node].pexec(["tc", "-j", "-s", "qdisc", "show", "dev", device])
        link, _, _ = net[node].pexec(["ip", "-j", "-d", "link", "show", "dev", device])
        offloads, _, _ = net[node].pexec(["ethtool", "-k", device])
        told[device] = {"qdiscs": json.loads(tc), "link": json.loads(link)[0], "offloads": offloads}
    addresses, _, _ = net["h10"].pexec(["ip", "-j", "-d", "addr"])
    told["addresses"] = {address["ifname"]: address for address in json.loads(addresses)}
    told["flows"], _, _ = net["s0"].pexec(["ovs-ofctl", "dump-flows", "s0"])
    told["qos"], _, _ = net["s0"].pexec(["ovs-vsctl", "--bare", "--columns=type", "list", "qos"])
    return told


def shown(name: str, make: Callable[[], Any]) -> dict[str, Any]:
    """One network from its start to its end."""
    before = stage.look()
    stage.say(f"{name}: start")
    net = make()
    shows: dict[str, Any] = {"idle": ping(net, *URGENT)}
    stage.say(f"{name}: load")
    for kind, options in {"urgent": URGENT, "other": ()}.items():
        bulk = Bulk(net)
        time.sleep(1)
        shows[kind] = ping(net, *options)
        shows[f"beside {kind}"] = bulk.sent_mbps()
    shows["built"] = read_back(net)
    shows["offered"] = Bulk(net, "-u", "-b", f"{OFFERED_MBPS}M").sent_mbps()
    net.stop()
    return {**shows, "left": stage.left(before)}


def main() -> None:
    stage.bring_up()
    from mininet.link import TCLink
    from mininet.net import Mininet

    from mininet_qos import PrioritySwitch, TbfLink, VLANHost

    lines: dict[str, Any] = {}

    def by_the_readme() -> Any:
        exec((stage.HOME / "lines.py").read_text(), lines)
        return lines["net"]

    def otherwise(link: Any, switch: Any = PrioritySwitch) -> Any:
        net = Mininet(lines["Fig3a"](), host=VLANHost, switch=switch, link=link, controller=None)
        net.start()
        return net

    makes: dict[str, Callable[[], Any]] = {
        "WireLink": by_the_readme,
        "TbfLink": lambda: otherwise(TbfLink),
        "TCLink": lambda: otherwise(TCLink),
        "TCLink, delay='1ms'": lambda: otherwise(functools.partial(TCLink, delay="1ms")),
        "TCLink, qos='ovs'": lambda: otherwise(
            TCLink, functools.partial(PrioritySwitch, qos="ovs")
        ),
    }
    results = {name: shown(name, make) for name, make in makes.items()}
    Path("results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
