"""Mininet links whose ends have eight queues, and links that serve the levels."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from mininet.link import Intf, Link, TCIntf

from mininet_qos import commands
from mininet_qos.commands import BUFFER, LEVELS, End, QosError, Shaping
from mininet_qos.shell import batch, load_ifb, run

NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
NOT_HERE = frozenset(
    "speedup use_hfsc use_tbf latency_ms enable_ecn enable_red max_queue_size".split()
)
"""Further parameters of Mininet's TC link; each adds a qdisc where the eight queues are."""

ONLY_WIRE = frozenset({"jitter", "loss", "trace"})


class Wanted(NamedTuple):
    """The settings of one end of a link: bit/s, bytes of each level, ns, ns, per cent; the
    full-size frames that may leave in each ms of a trace, if it follows one."""

    rate: int
    buffer: int
    delay: int
    jitter: int = 0
    loss: float = 0
    trace: tuple[int, ...] = ()


def wanted(link: str, params: dict[str, Any], refused: frozenset[str] = NOT_HERE) -> Wanted:
    """Parse the parameters of a link of this class, in Mininet's units. Raises QosError."""
    if wrong := sorted(name for name in refused & set(params) if params[name]):
        raise QosError(
            f"{link} has no {', '.join(wrong)}: use ChildLink or Mininet's TCLink, without levels"
        )
    bandwidth, buffer = params.get("bw"), params.get("buffer", BUFFER)
    # A bool is an int, and nan is neither below nor above anything.
    if (
        isinstance(bandwidth, bool)
        or not isinstance(bandwidth, (int, float))
        or not 1e-6 <= bandwidth < math.inf
    ):
        raise QosError(f"{link}: bw={bandwidth!r}: give the rate in Mbit/s, as in bw=10")
    if type(buffer) is not int or buffer < commands.FULL:
        raise QosError(
            f"{link}: buffer={buffer!r}: give the bytes of each level, at least one frame's "
            f"{commands.FULL}"
        )
    return Wanted(
        round(bandwidth * 10**6),
        buffer,
        _time(link, "delay", params.get("delay")),
        _time(link, "jitter", params.get("jitter")),
        _loss(link, params.get("loss")),
        _trace(link, params.get("trace")),
    )


def _time(link: str, name: str, value: Any) -> int:
    if not value:
        return 0
    number = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s)", str(value))
    if not number:
        raise QosError(
            f"{link}: {name}={value!r}: give a number and its unit, ns, us, ms or s, as in "
            f"{name}='1ms'"
        )
    return round(float(number[1]) * NS[number[2]])


def _loss(link: str, loss: Any) -> float:
    if loss is None or loss is False:
        return 0
    if isinstance(loss, bool) or not isinstance(loss, (int, float)) or not 0 <= loss <= 100:
        raise QosError(f"{link}: loss={loss!r}: give a percentage of the frames, as in loss=0.5")
    return loss


def _trace(link: str, path: Any) -> tuple[int, ...]:
    if not path:
        return ()
    try:
        return commands.opportunities(Path(path).read_text())
    except (OSError, TypeError, UnicodeDecodeError) as error:
        raise QosError(
            f"{link}: trace={path!r}: {error}: name a file in the format of mahimahi"
        ) from None
    except ValueError as error:
        raise QosError(f"{link}: trace={path!r}{error}") from None


class LevelIntf(TCIntf):  # type: ignore[misc]
    """The end of a link that serves the levels; a subclass has the commands.

    It is a TCIntf because Mininet's switches configure these again, after Open vSwitch has removed
    their qdiscs.
    """

    serves_levels = True
    refused = NOT_HERE | ONLY_WIRE

    def shaping(self, asked: Wanted) -> Shaping:
        """Return the commands that make this interface an end of the link."""
        raise NotImplementedError

    def config(self, **params: Any) -> dict[str, Any]:
        """Shape the interface: ``bw`` in Mbit/s; ``buffer`` in bytes for each level; ``delay``,
        such as '1ms'; and the parameters of Mininet's Intf. Raises QosError."""
        asked = wanted(type(self).__name__, params, self.refused)
        if asked.loss:
            load_ifb()
        shaping = self.shaping(asked)
        result: dict[str, Any] = Intf.config(self, **params)
        run(commands.offloads(self.name), self.node)
        self._undo(shaping)
        batch("ip", shaping.ip, self.node)
        batch("tc", shaping.tc, self.node)
        return result

    def delete(self) -> None:
        """Delete the interface, and the devices made for it."""
        shaping = self.shaping(wanted(type(self).__name__, self.params, self.refused))
        batch("ip", shaping.undo_ip, self.node, force=True)
        super().delete()

    def _undo(self, shaping: Shaping) -> None:
        batch("tc", shaping.undo_tc, self.node, force=True)
        batch("ip", shaping.undo_ip, self.node, force=True)


class WireIntf(LevelIntf):
    """The end of a :class:`WireLink`.

    ``loss`` is the share of frames, in per cent, that it does not receive. ``jitter``, such as
    '1ms', makes the delay of each frame that it sends up to so much shorter or longer; frames of a
    flow stay in order. ``trace`` is a file whose lines are times in ms, as mahimahi has them: at
    each of them one full-size frame may leave this end, and at the last one the trace begins again.
    """

    refused = NOT_HERE
    _follower: Any = None

    def config(self, **params: Any) -> dict[str, Any]:
        self._unfollow()
        result = super().config(**params)
        asked = wanted(type(self).__name__, params, self.refused)
        if asked.trace:
            lines = {
                count: commands.opportunity(self.name, commands.PARENT, count, asked.buffer)
                for count in {*asked.trace} - {0}
            }
            self._follower = self.node.popen(
                [sys.executable, str(Path(__file__).with_name("follow.py"))], stdin=subprocess.PIPE
            )
            with self._follower.stdin as pipe:
                pipe.write(json.dumps([asked.trace, lines]).encode())
        return result

    def delete(self) -> None:
        self._unfollow()
        super().delete()

    def _unfollow(self) -> None:
        if self._follower:
            self._follower.kill()
            self._follower.wait()
            self._follower = None

    def shaping(self, asked: Wanted) -> Shaping:
        least = max(0, asked.delay - asked.jitter)
        shaping = commands.wire(self.name, asked.rate, asked.buffer, least)
        if asked.jitter:
            (line,) = shaping.tc
            spread = asked.delay + asked.jitter - least
            seed = int.from_bytes(os.urandom(7), "big")
            shaping = shaping._replace(tc=(f"{line} jitter 0:0ns,100:{spread}ns seed {seed}",))
        if asked.trace:
            gate = commands.traced(self.name, commands.PARENT, asked.buffer)
            levels = commands.priorities(self.name, commands.GATED, asked.buffer)
            shaping = shaping._replace(tc=(*shaping.tc, gate, *levels))
        if not asked.loss:
            return shaping
        return commands.received(shaping, self.name, commands.impaired(asked.rate, asked.loss))


class TbfIntf(LevelIntf):
    """The end of a :class:`TbfLink`."""

    def shaping(self, asked: Wanted) -> Shaping:
        return commands.tbf(self.name, asked.rate, asked.buffer, asked.delay)

    def config(self, **params: Any) -> dict[str, Any]:
        load_ifb()
        return super().config(**params)


class ChildIntf(TCIntf):  # type: ignore[misc]
    """Mininet's TC interface with the user's own qdisc below its shaper."""

    @property
    def serves_levels(self) -> bool:
        """Whether a switch must leave this port alone, because it has a user's own qdisc."""
        return bool(self.params.get("child"))

    def config(self, child: str = "", **params: Any) -> dict[str, Any]:
        """Shape the interface: ``child`` is a qdisc in tc's syntax, without device, parent and
        handle; other parameters are TCIntf's. Raises QosError."""
        # Mininet takes a device with a prio anywhere for one without a qdisc, and fails to add one.
        batch("tc", [f"qdisc del dev {self} root"], self.node, force=True)
        result: dict[str, Any] = super().config(**params) or {"parent": " root "}
        run(commands.offloads(self.name), self.node)
        if child:
            batch(
                "tc",
                [f"qdisc add dev {self} {result['parent'].strip()} handle 20: {child}"],
                self.node,
            )
        return result


class QueuedLink(Link):  # type: ignore[misc]
    """A veth pair with several transmit and receive queues on both ends."""

    def __init__(self, node1: Any, node2: Any, queues: int = len(LEVELS), **params: Any) -> None:
        """Make a link with ``queues`` at each end; other parameters are Link's. Raises QosError."""
        if type(queues) is not int or not 1 <= queues <= 4096:
            raise QosError(f"queues={queues!r}: a veth has from 1 to 4096")
        self._queues = queues
        super().__init__(node1, node2, **params)

    def makeIntfPair(
        self,
        intfname1: str,
        intfname2: str,
        addr1: str | None = None,
        addr2: str | None = None,
        node1: Any = None,
        node2: Any = None,
        deleteIntfs: bool = True,
    ) -> None:
        """Make the pair, each end in its node's namespace."""
        first, second = (
            End(name, mac or "", str(node.pid) if node and node.inNamespace else "")
            for name, mac, node in ((intfname1, addr1, node1), (intfname2, addr2, node2))
        )
        if deleteIntfs:
            batch("ip", [f"link del {end.device}" for end in (first, second)], force=True)
        run(commands.veth(first, second, self._queues))


class WireLink(QueuedLink):
    """A link that behaves like a wire: it serves the levels, with a finite buffer for each. Needs
    the kernel module sch_wire and its tc plugin."""

    ends: type[LevelIntf] = WireIntf

    def __init__(self, node1: Any, node2: Any, **params: Any) -> None:
        """Check the settings of both ends: ``bw``, ``buffer``, ``delay`` as in
        :meth:`LevelIntf.config`, ``loss``, ``jitter`` and ``trace`` as in :class:`WireIntf`;
        ``params1`` and ``params2`` are for one end. Raises QosError."""
        name = type(self).__name__.partition("{")[0]  # mn's are called "WireLink{'bw': 10}"
        for own in ("params1", "params2"):
            wanted(name, {**(params.get(own) or {}), **params}, self.ends.refused)
        super().__init__(node1, node2, **{"cls1": self.ends, "cls2": self.ends, **params})


class TbfLink(WireLink):
    """The same link from tbf, prio, netem and ifb, which every Linux has. For an MTU of 1500
    bytes."""

    ends = TbfIntf


class ChildLink(QueuedLink):
    """Mininet's TC link with the qdisc ``child`` below its shaper."""

    def __init__(self, node1: Any, node2: Any, **params: Any) -> None:
        """Take the parameters of :meth:`ChildIntf.config` and :class:`QueuedLink`."""
        super().__init__(node1, node2, **{"cls1": ChildIntf, "cls2": ChildIntf, **params})
