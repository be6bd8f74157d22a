"""Link model wire: sch_wire delivers a frame when its last bit has arrived.

Waiting frames are served by level, in strict priority.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.links import commands
from qjump_mn.links.base import EDT, PARENT, Count, LinkModel, Qdisc, Shaping, Wait, root_of
from qjump_mn.model.link import Impairment, Link

MARKS = ("marked", "ecn_mark", "ce_mark")
"""The counters of marked packets in RED, CoDel and CAKE."""


Points = tuple[tuple[float, int], ...]
"""(per cent, ns)"""

PPB_PER_PERCENT = 10**7

_FULL_SHARE = 2**32 - 1
"""How the kernel reports a share of 100 % of the draws."""


class Wire(LinkModel):
    """sch_wire as the root qdisc.

    On links with flow control, switch ports pause their link partners; every wire obeys.
    """

    name = "wire"
    modules = ("sch_wire", "sch_qjump")
    serves_levels = True
    has_port_queues = True
    has_pause = True
    releases_early = True
    exact = True
    has_hosts = True
    cuts_segments = True

    has_impairments = True

    def check(self, where: str, link: Link) -> None:
        super().check(where, link)
        if link.host_jitter and link.impairment and link.impairment.jitter:
            raise UsageError(
                f"{where}: a wire draws from one distribution: leave out link.jitter or "
                "link.host_jitter, or set one of them for other links"
            )

    def shape(self, link: Link, device: str, *, on_switch: bool, seed: int) -> Shaping:
        points = _jitter(link, on_switch=on_switch)
        jitter = f" jitter {_quantiles(points)} seed {seed}" if points else ""
        pause = (
            f" pause {link.xoff_bytes} {link.xon_bytes}" if on_switch and link.xoff_bytes else ""
        )
        if pause and link.pfc:
            pause += f" pfc {','.join(map(str, theory.LEVELS))}"
        delay_ns = link.arrives_ns(from_host=not on_switch)
        shaping = commands.wire(device, link.rate_bps, link.buffer_bytes, delay_ns)
        (line,) = shaping.tc
        orphan = "orphan" if link.orphan else "noorphan"
        lines = [f"{line} {orphan}{pause}{jitter}"]
        if link.impairment and link.impairment.trace:
            lines.append(commands.traced(device, PARENT, link.buffer_bytes, link.mtu_bytes))
        shaping = shaping._replace(tc=tuple(lines))
        if not link.impairment or not link.impairment.at_receiver:
            return shaping
        # Other draws than the jitter's, which has the seed itself.
        netem = _netem(link, link.impairment, zlib.crc32(f"received {seed}".encode()))
        try:
            return commands.received(shaping, device, netem)
        except commands.QosError as error:
            raise UsageError(f"link.loss and link.reorder: {error}") from None

    def differences(self, qdiscs: Sequence[Qdisc], link: Link, *, on_switch: bool) -> list[str]:
        if differing := super().differences(qdiscs, link, on_switch=on_switch):
            return differing
        root = root_of(qdiscs) or {}
        options = root.get("options", {})
        planned: dict[str, object] = {
            "rate_bps": link.rate_bps,
            "limit": link.buffer_bytes,
            "delay_ns": link.arrives_ns(from_host=not on_switch),
        }
        planned |= {"classify": "pcp", "orphan": link.orphan}
        if on_switch and link.xoff_bytes:
            planned |= {"xoff": link.xoff_bytes, "xon": link.xon_bytes}
            planned["pfc"] = list(theory.LEVELS) if link.pfc else None
        if points := _jitter(link, on_switch=on_switch):
            planned["jitter"] = [
                {"share": round(percent * _FULL_SHARE / 100), "ns": ns} for percent, ns in points
            ]
        differing = [
            f"its wire's {key} is {options.get(key)}, not {value}"
            for key, value in planned.items()
            if options.get(key) != value
        ]
        gates = [qdisc for qdisc in qdiscs if qdisc.get("handle") == commands.TRACED]
        if bool(gates) != bool(link.impairment and link.impairment.trace):
            differing.append(f"it has {len(gates)} gates for a trace")
        return differing

    def counts(self, qdiscs: Sequence[Qdisc]) -> dict[int | None, Count]:
        """Return the counters by level; bytes include preamble and gap.

        If a scheme's queue replaces the levels, the wire knows neither the queue's length nor the
        counters of each level. If a limiter holds packets back, the queue's length is unknown,
        because the limiter does not count it.
        """
        root = root_of(qdiscs)
        if root is None or root["kind"] != self.name:
            return super().counts(qdiscs)
        limiter = next((qdisc for qdisc in qdiscs if qdisc["kind"] in ("qjump", EDT)), None)
        if len(qdiscs) > 1 and not limiter:
            # CAKE counts by tin.
            counting = [part for qdisc in qdiscs for part in (qdisc, *qdisc.get("tins", ()))]
            marks = sum(part.get(counter, 0) for part in counting for counter in MARKS)
            frames, size = (
                sum(level[key] for level in root["levels"]) for key in ("packets", "bytes")
            )
            return {None: Count(frames, size, root["drops"], marks, None)}
        # The wire never sees the packets that a limiter drops.
        dropped = {level["level"]: level["drops"] for level in limiter["levels"]} if limiter else {}
        return {
            level["level"]: Count(
                level["packets"],
                level["bytes"],
                level["drops"] + dropped.get(level["level"], 0),
                0,
                None if limiter else level["max_backlog"],
            )
            for level in root["levels"]
        }

    def waits(self, qdiscs: Sequence[Qdisc]) -> dict[int, Wait]:
        root = root_of(qdiscs)
        if root is None or root["kind"] != self.name:
            return {}
        return {
            level["level"]: Wait(level["packets"], level["max_wait_ns"], level["max_late_ns"])
            for level in root["levels"]
        }


def _jitter(link: Link, *, on_switch: bool) -> Points:
    """Return the jitter of frames that are sent here: the receiving host's, or the link's."""
    if on_switch and link.host_jitter:
        return link.host_jitter
    return link.impairment.jitter if link.impairment else ()


def _quantiles(points: Points) -> str:
    """Return a distribution in tc's syntax."""
    return ",".join(f"{percent:.7g}:{ns}ns" for percent, ns in points)


def _netem(link: Link, impairment: Impairment, seed: int) -> str:
    loss, reorder = (
        (ppb or 0) / PPB_PER_PERCENT for ppb in (impairment.loss_ppb, impairment.reorder_ppb)
    )
    return commands.impaired(link.rate_bps, loss, reorder, impairment.reorder_ns or 0, seed)
