"""Steps that read a network back with tc, ip, Open vSwitch's tools and ethtool, kept verbatim."""

from __future__ import annotations

from collections.abc import Iterator

from qjump_mn.executor.steps import MACHINE, Read, ReadSettings
from qjump_mn.model import filenames
from qjump_mn.model.plan import ArmPlan
from qjump_mn.model.topology import SWITCHES, Network
from qjump_mn.steps.apply_arm import transport

BEFORE = "asbuilt/before"
"""Folder of what was read back once everything was set up."""


def built(arm: ArmPlan) -> Iterator[Read | ReadSettings]:
    """Read ip-NODE.json, ethtool-NODE.txt, tc-NODE.json, ovs.txt and flows-SWITCH.txt.

    Also tcp-HOST.txt if the arm changes TCP.
    """
    network = arm.network
    keys = tuple(transport(arm))
    for node, name in _nodes(network):
        yield Read(
            node=node, argv=("ip", "-j", "-d", "addr", "show"), output=f"{BEFORE}/ip-{name}.json"
        )
        # All devices in one command: starting a program is what takes time.
        yield Read(node=node, argv=("ethtool", "-k", "*"), output=f"{BEFORE}/ethtool-{name}.txt")
        if keys and node != MACHINE:
            yield ReadSettings(node=node, keys=keys, output=f"{BEFORE}/tcp-{name}.txt")
    yield Read(argv=("ovs-vsctl", "show"), output=f"{BEFORE}/ovs.txt")
    for switch in network.switches:
        yield Read(argv=("ovs-ofctl", "dump-flows", switch), output=f"{BEFORE}/flows-{switch}.txt")
    yield from counters(arm, "before")


def counters(arm: ArmPlan, when: str) -> Iterator[Read]:
    """Read tc-NODE.json, every qdisc with its statistics, into asbuilt/``when``.

    If the arm's limiter sets departure times, also read its rule and counters, edt-HOST.json.
    """
    for node, name in _nodes(arm.network):
        yield Read(
            node=node,
            argv=("tc", "-j", "-s", "qdisc", "show"),
            output=filenames.counters(when, name),
        )
        if arm.departure_times and node != MACHINE:
            yield Read(
                node=node,
                argv=("qjump-edt", "show", f"{node}-eth0"),
                output=filenames.departure_times(when, name),
            )


def _nodes(network: Network) -> list[tuple[str, str]]:
    """Return every node with the name that it has in file names."""
    return [(MACHINE, SWITCHES), *((host, host) for host in network.hosts)]
