"""Link model tbf: a wire made of stock qdiscs, for hosts where our modules cannot be loaded."""

from __future__ import annotations

from collections.abc import Sequence

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.links import commands
from qjump_mn.links.base import PARENT, QUEUES, LinkModel, Qdisc, Shaping, root_of
from qjump_mn.model.topology import Link


class Tbf(LinkModel):
    """A token bucket of one frame at the sender, and an ifb at the receiver's ingress.

    The bucket holds one frame so that priorities are decided frame by frame, just before the
    wire. tbf releases a frame before its time on the wire instead of after it, so the ifb adds the
    serialisation delay.
    """

    name = "tbf"
    modules = ("act_mirred", "cls_matchall", "sch_tbf", "sch_prio", "sch_netem", "ifb")

    def shape(self, link: Link, device: str, *, on_switch: bool, seed: int) -> Shaping:
        packets = max(1, link.buffer_bytes // theory.frame_bytes(link.mtu_bytes))
        queue_lines = commands.priorities(device, PARENT, queue=f"pfifo limit {packets}", handle=10)
        try:
            return commands.paced(
                device,
                link.rate_bps,
                link.buffer_bytes,
                link.delay_ns,
                queue_lines if on_switch else [],
                link.mtu_bytes,
            )
        except commands.QosError as error:
            raise UsageError(f"links of model tbf: {error}") from None

    def differences(self, qdiscs: Sequence[Qdisc], link: Link, *, on_switch: bool) -> list[str]:
        if differing := super().differences(qdiscs, link, on_switch=on_switch):
            return differing
        rate, planned = (root_of(qdiscs) or {}).get("options", {}).get("rate"), link.rate_bps // 8
        if rate != planned:
            differing.append(f"its rate is {rate} B/s, not {planned}")
        queues = sum(qdisc.get("kind") == "pfifo" for qdisc in qdiscs)
        if on_switch and queues != QUEUES:
            differing.append(f"it has {queues} queues, not {QUEUES}")
        return differing
