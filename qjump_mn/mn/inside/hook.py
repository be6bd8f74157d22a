"""Mend and watch Mininet when a script imports it. Every Python of the machine imports this.

- `Mininet.iperf` of 2.3.0 waits for ever: iperf 2.2 prints no line for the connection by which
  Mininet finds out that the server listens.
- `Mininet.stop` notes the ports first.
- `TCLink` is another class of links, if QJUMP_MN_LINK names one.
- `CPULimitedHost` is a host: code takes no time here, so a share of the processor limits nothing.
- `NAT` and `LinuxBridge` say what the kernel lacks, because Mininet takes no notice of it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from . import ports

_LISTENS_S = 10


def _mend_net(net: ModuleType) -> None:
    stop = net.Mininet.stop

    def noted_stop(network: Any) -> None:
        ports.note(network)
        stop(network)

    net.Mininet.stop = noted_stop
    # 2.3.1 reads iperf's lines of comma-separated values.
    if not hasattr(net.Mininet, "_iperfVals"):
        net.Mininet.iperf = _iperf


def _iperf(
    network: Any,
    hosts: Sequence[Any] | None = None,
    l4Type: str = "TCP",
    udpBw: str = "10M",
    fmt: str | None = None,
    seconds: int = 5,
    port: int = 5001,
) -> list[str]:
    """Run iperf between two hosts, as Mininet.iperf does, and return its results."""
    from mininet.log import output
    from mininet.util import waitListening

    client, server = hosts or (network.hosts[0], network.hosts[-1])
    if l4Type not in ("TCP", "UDP"):
        raise Exception(f"Unexpected l4 type: {l4Type}")
    output(f"*** Iperf: testing {l4Type} bandwidth between {client} and {server} \n")
    common = ["iperf", "-p", str(port), *(["-u"] if l4Type == "UDP" else [])]
    common += ["-f", fmt] if fmt else []
    bandwidth = ["-b", udpBw] if l4Type == "UDP" else []
    serving = server.popen([*common, "-s"])
    try:
        if l4Type == "TCP" and not waitListening(client, server.IP(), port, timeout=_LISTENS_S):
            raise Exception(f"Could not connect to iperf on port {port}")
        sent = client.cmd(*common, "-t", str(seconds), "-c", server.IP(), *bandwidth)
    finally:
        # It prints the last result when the client closes the connection.
        serving.terminate()
        received = serving.communicate()[0].decode()
    result = [network._parseIperf(received), network._parseIperf(sent)]
    result = [udpBw, *result] if l4Type == "UDP" else result
    output(f"*** Results: {result}\n")
    return result


def _replace_links(link: ModuleType) -> None:
    name = os.environ.get("QJUMP_MN_LINK")
    if name:
        from . import links

        links.stand_for_tclink(link, name)


def _mend_node(node: ModuleType) -> None:
    base: Any = node.Host

    class CPULimitedHost(base):  # type: ignore[misc]
        """Takes what Mininet's CPULimitedHost does."""

        def __init__(self, name: str, sched: str = "cfs", **params: Any) -> None:
            ports.tell("CPULimitedHost is a Host here, because code takes no time in this machine")
            super().__init__(name, **params)

        @classmethod
        def init(cls) -> None:
            """Mininet prepares control groups here."""

        def config(self, cpu: float = -1, cores: object = None, **params: Any) -> Any:
            return super().config(**params)

        def setCPUFrac(self, f: float, sched: str | None = None) -> None:
            """Limit nothing."""

        def setCPUs(self, cores: object, mems: int = 0) -> None:
            """Limit nothing."""

        def cgroupSet(self, param: str, value: object, resource: str = "cpu") -> object:
            return value

    node.CPULimitedHost = CPULimitedHost  # type: ignore[attr-defined]


_NEEDS = {
    "NAT": ("iptables -t nat -S", "translates no addresses", "netfilter"),
    "LinuxBridge": ("brctl addbr probe && brctl delbr probe", "forwards nothing", "bridge"),
}
"""Classes by what fails if the kernel lacks a part, what then happens, and that part."""


def _mend_nodelib(nodelib: ModuleType) -> None:
    for name, (probe, effect, part) in _NEEDS.items():
        sentence = f"{name} {effect}: the machine's kernel has no {part}"
        _check_first(getattr(nodelib, name), probe, sentence)


def _check_first(node: Any, probe: str, sentence: str) -> None:
    """Tell the user the sentence if the command ``probe`` fails when such a node is made."""
    make = node.__init__

    def checked(self: Any, *words: Any, **params: Any) -> None:
        if subprocess.run(["sh", "-c", probe], capture_output=True).returncode:
            ports.tell(sentence)
        make(self, *words, **params)

    node.__init__ = checked


_MENDS: dict[str, Callable[[ModuleType], None]] = {
    "mininet.net": _mend_net,
    "mininet.link": _replace_links,
    "mininet.node": _mend_node,
    "mininet.nodelib": _mend_nodelib,
}


class _Finder(importlib.abc.MetaPathFinder):
    """Finds a module as usual, and mends it once it has been executed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        mend = _MENDS.pop(name, None)
        if mend is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def executed(module: ModuleType) -> None:
            execute(module)
            mend(module)

        spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, _Finder())
