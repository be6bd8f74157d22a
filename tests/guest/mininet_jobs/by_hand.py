"""Runs in the guest: what somebody does by hand with the package: mn's command line, a mn that is
killed, links that come and go, a qdisc of one's own, mistakes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import stage

PRIO = "prio bands 8 priomap 7 6 5 4 3 2 1 0 0 0 0 0 0 0 0 0"


def mn(*options: str) -> list[str]:
    """The command line with the package's file."""
    file = subprocess.check_output([sys.executable, "-m", "mininet_qos"], text=True).strip()
    return ["mn", "--custom", file, *options]


def called(*options: str) -> dict[str, Any]:
    """mn, to its end."""
    stage.say(" ".join(options))
    before = stage.look()
    done = subprocess.run(mn(*options), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return {"code": done.returncode, "said": done.stdout + done.stderr, "left": stage.left(before)}


def killed(*options: str) -> dict[str, Any]:
    """mn, killed while it waits for a command, and what ``mn -c`` leaves then."""
    stage.say(f"killed: {' '.join(options)}")
    before = stage.look()
    pipe = subprocess.PIPE
    with subprocess.Popen(mn(*options), stdin=pipe, stderr=pipe, text=True) as process:
        assert process.stderr is not None
        while "Starting CLI" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    stayed = stage.left(before)
    done = subprocess.run(mn("-c"), capture_output=True, text=True, check=False)
    return {"stayed": sorted(stayed), "code": done.returncode, "left": stage.left(before)}


@contextmanager
def pair(link: Any, switch: Any, **params: Any) -> Iterator[Any]:
    """Two hosts and a switch, made by hand, without a Topo."""
    from mininet.net import Mininet

    from mininet_qos import VLANHost

    net = Mininet(host=VLANHost, switch=switch, link=link, controller=None, autoSetMacs=True)
    net.addSwitch("s1")
    for name in ("h1", "h2"):
        net.addLink(net.addHost(name), "s1", **params)
    net.start()
    try:
        yield net
    finally:
        net.stop()


def qdiscs(node: Any, device: str) -> dict[str, str]:
    """The qdiscs of a device, with their parents."""
    text, _, _ = node.pexec(["tc", "-j", "qdisc", "show", "dev", device])
    return {qdisc["kind"]: qdisc.get("parent", "root") for qdisc in json.loads(text)}


def came_and_went(link: Any, **params: Any) -> dict[str, Any]:
    """A host that is added while the network runs, and taken away."""
    from mininet_qos import PrioritySwitch

    before, rates = stage.look(), {}
    with pair(link, PrioritySwitch, **params) as net:
        added = net.addLink(net.addHost("h3"), "s1", **params)
        net["s1"].attach(added.intf2)
        net["h3"].configDefault()
        three = net.pingAll()
        rates["new port"] = qdiscs(net["s1"], added.intf2.name)
        mac = net["h3"].pexec(["cat", "/sys/class/net/h3-eth0.2/address"])[0].strip()
        net["s1"].detach(added.intf2)
        net.delLink(added)
        net.delHost(net["h3"])
        two = net.pingAll()
    return {"lost": [three, two], "qdiscs": rates, "mac": mac, "left": stage.left(before)}


def child() -> dict[str, Any]:
    """A qdisc of one's own below Mininet's shaper, before and after the rate has changed."""
    from mininet_qos import ChildLink, PrioritySwitch

    before, told = stage.look(), {}
    with pair(ChildLink, PrioritySwitch, bw=10, delay="1ms", params1={"child": PRIO}) as net:
        interface = net["h1"].intfList()[0]
        told["made"] = qdiscs(net["h1"], "h1-eth0")
        told["switch"] = qdiscs(net["s1"], "s1-eth1")
        interface.config(bw=5, child="qjump epoch 30ms level 7 1500")
        told["changed"] = qdiscs(net["h1"], "h1-eth0")
        interface.config(child="fq_codel")
        told["alone"] = qdiscs(net["h1"], "h1-eth0")
        lost = net.pingAll()
    return {"qdiscs": told, "lost": lost, "left": stage.left(before)}


def maps() -> dict[str, Any]:
    """Maps of one's own, and links of other numbers of queues, made in Mininet's slow way too."""
    from mininet.net import Mininet

    from mininet_qos import QueuedLink, VLANHost

    before = stage.look()
    net = Mininet(controller=None, link=QueuedLink)
    first = net.addHost("h1", cls=VLANHost, vlan=7, egress={0: 1, 6: 7}, ingress={7: 6})
    second = net.addHost("h2", cls=VLANHost, vlan=7)
    net.addLink(first, second)
    addresses = {f"params{end}": {"ip": f"10.1.0.{end}/24"} for end in (1, 2)}
    net.addLink(first, second, queues=4, fast=False, **addresses)
    net.build()
    lost = net.pingAll()
    text, _, _ = first.pexec(["ip", "-j", "-d", "addr", "show"])
    net.stop()
    devices = {one["ifname"]: one for one in json.loads(text)}
    return {"devices": devices, "lost": lost, "left": stage.left(before)}


def without_wire() -> dict[str, Any]:
    """A machine without sch_wire: of the guest's kernel it is a part, so that the plugin of tc is
    what is away."""
    from mininet.clean import cleanup

    from mininet_qos import PrioritySwitch, WireLink

    before = stage.look()
    plugin = next(Path("/usr/lib").rglob("q_wire.so"))
    away = plugin.rename(plugin.with_suffix(".away"))
    try:
        said = mistake(lambda: pair(WireLink, PrioritySwitch, bw=10).__enter__())
    finally:
        away.rename(plugin)
    cleanup()
    return {"said": said, "left": stage.left(before)}


def mistake(make: Callable[[], Any]) -> str:
    """The error that it is."""
    from mininet_qos import QosError

    try:
        make()
    except QosError as error:
        return str(error)
    return "no error"


def mistakes() -> dict[str, Any]:
    """What is refused before anything is made."""
    from mininet_qos import PrioritySwitch, QueuedLink, TbfLink, VLANHost, WireLink

    before = stage.look()
    said = {
        "no rate": mistake(lambda: WireLink(None, None)),
        "no number": mistake(lambda: WireLink(None, None, bw=float("nan"))),
        "endless": mistake(lambda: TbfLink(None, None, bw=float("inf"))),
        "below a bit": mistake(lambda: WireLink(None, None, bw=1e-7)),
        "a truth": mistake(lambda: WireLink(None, None, bw=True)),
        "delay": mistake(lambda: TbfLink(None, None, bw=10, delay=5)),
        "one end": mistake(lambda: WireLink(None, None, bw=10, params2={"buffer": 100})),
        "loss": mistake(lambda: TbfLink(None, None, bw=10, loss=1)),
        "more than all": mistake(lambda: WireLink(None, None, bw=10, loss=101)),
        "jitter": mistake(lambda: WireLink(None, None, bw=10, jitter=5)),
        "queues": mistake(lambda: QueuedLink(None, None, queues=0)),
        "vlan": mistake(lambda: VLANHost("h1", vlan=4095)),
        "true vlan": mistake(lambda: VLANHost("h1", vlan=True)),
        "egress": mistake(lambda: VLANHost("h1", egress={6: 8})),
        "name": mistake(lambda: VLANHost("calculator")),
        "qos": mistake(lambda: PrioritySwitch("s1", qos="wire")),
    }
    return {"said": said, "left": stage.left(before)}


def main() -> None:
    stage.bring_up()
    from mininet.link import TCLink

    from mininet_qos import TbfLink, WireLink

    ours = ("--host", "qjvlan", "--switch", "qjprio", "--controller", "none")
    pings = (*ours, "--topo", "linear,3", "--test", "pingall")
    by_ovs = "--host qjvlan --link tc,bw=10 --switch qjprio,qos=ovs --controller none".split()
    results = {
        "mn": {
            "qjwire": called(*pings, "--link", "qjwire"),
            "qjtbf": called(*pings, "--link", "qjtbf,bw=10,delay=1ms", "--mac", "--arp"),
            "qjtc": called(*pings, "--link", "qjtc,bw=10"),
            "ovs": called(*by_ovs, "--test", "pingall"),
            "no rate": called(*pings),
            "too fast": called(*pings, "--link", "tc,bw=2000"),
            "no bytes": called(*pings, "--link", "qjwire,buffer=10"),
            "no controller": called("--host", "qjvlan", "--link", "qjwire", "--switch", "qjprio"),
        },
        "killed": {"qjtbf": killed(*ours, "--link", "qjtbf,bw=10"), "ovs": killed(*by_ovs)},
        "came and went": {
            link.__name__: came_and_went(link, bw=10) for link in (WireLink, TbfLink, TCLink)
        },
        "child": child(),
        "maps": maps(),
        "mistakes": mistakes(),
        "without wire": without_wire(),
    }
    Path("results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
