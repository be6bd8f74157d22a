"""Link model htb: Mininet's TC link at hosts, Open vSwitch's linux-htb QoS at switches.

It has no serialisation delay.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from qjump_mn.executor.steps import OWNER, Run
from qjump_mn.links import commands
from qjump_mn.links.base import NOTHING, PARENT, LinkModel, Shaping
from qjump_mn.model.topology import Link, Network

COOKIE = "0x716a"
"""The cookie that identifies our flows."""

_DESTROY = f"""for table in qos queue; do
    for row in $(ovs-vsctl --bare --columns=_uuid find $table {OWNER}); do
        ovs-vsctl destroy $table $row
    done
done"""


class Htb(LinkModel):
    """At a host, what Mininet's TCIntf does for ``bw`` and ``delay``.

    At a switch, eight queues per port, selected by PCP.
    """

    name = "htb"
    modules = ("sch_htb", "sch_prio", "sch_netem", "sch_qjump")

    def shape(self, link: Link, device: str, *, on_switch: bool, seed: int) -> Shaping:
        if on_switch:
            return NOTHING  # Open vSwitch shapes its ports by itself: see `switches`
        rate = f"rate {link.rate_bps / 1e6:f}Mbit"
        lines = [
            f"qdisc add dev {device} root handle 5:0 htb default 1",
            f"class add dev {device} parent 5:0 classid 5:1 htb {rate} burst 15k",
        ]
        if link.delay_ns:
            netem = f"netem delay {link.delay_ns}ns"
            lines.append(f"qdisc add dev {device} parent {PARENT} handle 10: {netem}")
        return Shaping((), tuple(lines), (f"qdisc del dev {device} root",), ())

    def switches(self, network: Network) -> Iterator[Run]:
        """Yield steps for Open vSwitch's QoS, and for the flows that select the queue."""
        links, ports = network.by_device(), network.switch_ports()
        rates = {device: links[device].rate_bps for device in ports}
        clear = " ".join(f"-- clear port {shlex.quote(device)} qos" for device in ports)
        yield Run(
            argv=tuple(commands.ovs_qos(rates, [OWNER])),
            undo=Run(argv=("sh", "-c", f"ovs-vsctl {clear}\n{_DESTROY}")),
        )
        for switch in network.switches:
            undo = Run(argv=("ovs-ofctl", "del-flows", switch, f"cookie={COOKIE}/-1"))
            yield Run(
                argv=("ovs-ofctl", "add-flows", switch, "-"),
                stdin="".join(f"{rule}\n" for rule in commands.ovs_flows(COOKIE)),
                undo=undo,
            )
