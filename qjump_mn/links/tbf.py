"""tbf: the wire from tc's own parts, for hosts where no module may be loaded."""

from __future__ import annotations

from collections.abc import Sequence

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.links import commands
from qjump_mn.links.base import PARENT, QUEUES, LinkModel, Qdisc, Shaping, root_of
from qjump_mn.model.topology import Link


class Tbf(LinkModel):
    """The sender is paced by a bucket of one frame (so that priorities are decided before the wire, frame by
    frame) and the receiver's ingress serialises through an ifb, since tbf lets a frame go before its time on
    the wire, not after."""

    name = "tbf"
    modules = ("act_mirred", "cls_matchall", "sch_tbf", "sch_prio", "sch_netem", "ifb")

    def shape(self, link: Link, device: str, *, on_switch: bool, seed: int) -> Shaping:
        packets = max(1, link.buffer_bytes // theory.frame_bytes(link.mtu_bytes))
        queues = commands.priorities(device, PARENT, queue=f"pfifo limit {packets}", handle=10)
        try:
            return commands.paced(
                device,
                link.rate_bps,
                link.buffer_bytes,
                link.delay_ns,
                queues if on_switch else [],
                link.mtu_bytes,
            )
        except commands.QosError as error:
            raise UsageError(f"links of model tbf: {error}") from None

    def differences(self, qdiscs: Sequence[Qdisc], link: Link, *, on_switch: bool) -> list[str]:
        if wrong := super().differences(qdiscs, link, on_switch=on_switch):
            return wrong
        rate = (root_of(qdiscs) or {}).get("options", {}).get("rate")
        wrong = [] if rate == link.rate_bps // 8 else [f"its rate is {rate} B/s, not {link.rate_bps // 8}"]
        queues = sum(qdisc.get("kind") == "pfifo" for qdisc in qdiscs)
        return wrong + ([f"it has {queues} queues, not {QUEUES}"] if on_switch and queues != QUEUES else [])
