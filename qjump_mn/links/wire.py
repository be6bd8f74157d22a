"""Link model wire: sch_wire delivers a frame when its last bit has arrived.

Waiting frames are served by level, in strict priority.
"""

from __future__ import annotations

from collections.abc import Sequence

from qjump_mn import theory
from qjump_mn.links import commands
from qjump_mn.links.base import EDT, Count, LinkModel, Qdisc, Shaping, Wait, root_of
from qjump_mn.model.topology import Link

MARKS = ("marked", "ecn_mark", "ce_mark")
"""The counters of marked packets in RED, CoDel and CAKE."""


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

    def shape(self, link: Link, device: str, *, on_switch: bool, seed: int) -> Shaping:
        jitter = f" jitter {_jitter(link)} seed {seed}" if on_switch and link.host_jitter else ""
        pause = (
            f" pause {link.xoff_bytes} {link.xon_bytes}" if on_switch and link.xoff_bytes else ""
        )
        if pause and link.pfc:
            pause += f" pfc {','.join(map(str, theory.LEVELS))}"
        delay_ns = link.arrives_ns(from_host=not on_switch)
        shaping = commands.wire(device, link.rate_bps, link.buffer_bytes, delay_ns)
        (line,) = shaping.tc
        orphan = "orphan" if link.orphan else "noorphan"
        return shaping._replace(tc=(f"{line} {orphan}{pause}{jitter}",))

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
        if on_switch and link.host_jitter:
            planned["jitter"] = [
                {"share": round(percent * _FULL_SHARE / 100), "ns": ns}
                for percent, ns in link.host_jitter
            ]
        return [
            f"its wire's {key} is {options.get(key)}, not {value}"
            for key, value in planned.items()
            if options.get(key) != value
        ]

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


def _jitter(link: Link) -> str:
    """Return a host's jitter in tc's syntax."""
    return ",".join(f"{percent:.7g}:{ns}ns" for percent, ns in link.host_jitter)
