"""Switches that serve the levels in strict priority, with a queue for each."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from mininet.clean import addCleanupCallback
from mininet.link import TCIntf
from mininet.node import OVSBridge
from mininet.util import errRun

from mininet_qos import commands
from mininet_qos.commands import BUFFER, QosError
from mininet_qos.shell import batch, run

TABLES = ("qos", "queue")


class PrioritySwitch(OVSBridge):  # type: ignore[misc]
    """An Open vSwitch learning switch without a controller, whose ports serve the levels.

    Ports of a WireLink or a TbfLink do so by themselves. A port of Mininet's TC link gets eight
    queues below its shaper (``qos="tc"``), or Open vSwitch's own in its place (``qos="ovs"``). The
    switch does not change a ChildLink's child.
    """

    def __init__(self, name: str, qos: str = "tc", buffer: int = BUFFER, **params: Any) -> None:
        """Check the settings. ``buffer``: bytes of each level at each port of a TC link. Raises
        QosError."""
        if qos not in ("tc", "ovs"):
            raise QosError(f"qos={qos!r}: a PrioritySwitch has 'tc' or 'ovs'")
        self._qos, self._buffer = qos, buffer
        super().__init__(name, **params)

    def start(self, controllers: Any) -> None:
        """Start the bridge, and let its ports serve the levels. Raises QosError."""
        super().start(controllers)
        if not self.batch:
            self._serve(self.intfList())

    @classmethod
    def batchStartup(cls, switches: Sequence[Any], run: Any = errRun) -> Sequence[Any]:
        """Start together the switches whose start was deferred."""
        # Mininet passes all switches, and would remove the queues of those that run.
        if late := [switch for switch in switches if switch.batch]:
            super().batchStartup(late, run)
            for switch in late:
                switch._serve(switch.intfList())
        return switches

    def attach(self, intf: Any) -> None:
        """Add a port to the running bridge. Raises QosError."""
        super().attach(intf)
        self._serve([intf])

    def stop(self, deleteIntfs: bool = True) -> None:
        """Delete the bridge, and its rows in Open vSwitch's database."""
        super().stop(deleteIntfs)
        destroy_rows(self.name)

    @classmethod
    def batchShutdown(cls, switches: Sequence[Any], run: Any = errRun) -> Sequence[Any]:
        """Delete several bridges and their rows."""
        super().batchShutdown(switches, run)
        for switch in switches:
            destroy_rows(switch.name)
        return switches

    def _serve(self, interfaces: Sequence[Any]) -> None:
        ports = [
            port
            for port in interfaces
            if self.ports[port] and not getattr(port, "serves_levels", False)
        ]
        for port in ports:
            if not isinstance(port, TCIntf) or not port.params.get("bw"):
                raise QosError(
                    f"{port} has no rate, so that nothing would queue there: give its link bw=, as "
                    "in link=WireLink, bw=10"
                )
            run(commands.offloads(port.name))
        if self._qos == "tc":
            for port in ports:
                batch("tc", commands.priorities(port.name, _below(port), self._buffer))
        elif ports:
            self._serve_by_ovs(ports)

    def _serve_by_ovs(self, ports: Sequence[Any]) -> None:
        for port in ports:
            if port.params.get("delay") or port.params.get("loss"):
                raise QosError(f"{port}: qos='ovs' takes the place of delay and loss: use qos='tc'")
        rates = {port.name: round(port.params["bw"] * 10**6) for port in ports}
        run(commands.ovs_qos(rates, commands.owned(self.name)))
        for device in rates:
            batch("tc", commands.ovs_buffers(device, self._buffer))
        flows = "".join(f"{rule}\n" for rule in commands.ovs_flows())
        run(["ovs-ofctl", "add-flows", self.name, "-"], text=flows)


def _below(port: Any) -> str:
    """Return the lowest class that Mininet has made at a port."""
    asked = port.params
    _, parent = port.bwCmds(
        bw=asked["bw"],
        enable_ecn=asked.get("enable_ecn", False),
        enable_red=asked.get("enable_red", False),
    )
    names = ("delay", "jitter", "loss", "max_queue_size")
    _, parent = port.delayCmds(parent, **{name: asked[name] for name in names if name in asked})
    name = str(parent.split()[-1])
    if name == "root":
        raise QosError(
            f"{port}: bw={asked['bw']}: Mininet's TC links have no rate above 1000 Mbit/s, so that "
            "nothing would queue there: use link=TbfLink or link=WireLink"
        )
    return name


def destroy_rows(switch: str = "") -> None:
    """Destroy the QoS rows of a switch in Open vSwitch's database, or all of our rows."""
    with contextlib.suppress(QosError):  # Open vSwitch does not run, so it has no rows
        rows = {
            table: run(commands.ovs_rows(table, commands.owned(switch))).split() for table in TABLES
        }
        if any(rows.values()):
            run(commands.ovs_destroy(rows))


addCleanupCallback(destroy_rows)
