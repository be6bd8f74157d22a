"""tbf: the wire from tc's own parts, for hosts where no module may be loaded."""

from __future__ import annotations

from collections.abc import Sequence

from qjump_mn import theory
from qjump_mn.links.base import PARENT, QUEUES, LinkModel, Qdisc, Shaping, root_of
from qjump_mn.model.topology import Link
from qjump_mn.theory import LEVELS


class Tbf(LinkModel):
    """The sender is paced by a bucket of one frame (so that priorities are decided before the wire, frame by
    frame) and the receiver's ingress serialises through an ifb, since tbf lets a frame go before its time on
    the wire, not after."""

    name = "tbf"
    modules = ("act_mirred", "cls_matchall", "sch_tbf", "sch_prio", "sch_netem", "ifb")

    def shape(self, link: Link, device: str, *, on_switch: bool, seed: int) -> Shaping:
        full = theory.frame_bytes(link.mtu_bytes)
        headers = theory.PREAMBLE_BYTES + theory.FCS_BYTES + theory.VLAN_TAG_BYTES
        smallest = theory.MINIMUM_FRAME_BYTES + theory.AROUND_FRAME_BYTES
        packets, mirror = max(1, link.buffer_bytes // full), ifb_name(device)
        lines = [
            f"qdisc add dev {device} root handle 5: tbf rate {link.rate_bps}bit burst {full + 8} "
            f"limit {link.buffer_bytes * len(LEVELS)} overhead {theory.TAG_TO_GAP_BYTES} mpu {smallest}"
        ]
        if on_switch:
            lines.append(
                f"qdisc add dev {device} parent {PARENT} handle 10: prio bands {QUEUES} priomap" + " 7" * 16
            )
            for level in LEVELS:
                lines += [
                    f"qdisc add dev {device} parent 10:{8 - level} handle 1{level + 1}: pfifo limit "
                    f"{packets}",
                    f"filter add dev {device} parent 10: protocol 802.1q prio {level + 1} "
                    f"flower vlan_prio {level} classid 10:{8 - level}",
                ]
        lines += [
            f"qdisc add dev {mirror} root netem rate {link.rate_bps}bit {headers} limit 1000"
            + (f" delay {link.delay_ns}ns" if link.delay_ns else ""),
            f"qdisc add dev {device} ingress",
            f"filter add dev {device} parent ffff: matchall action mirred egress redirect dev {mirror}",
        ]
        return Shaping(
            ip=(f"link add name {mirror} type ifb", f"link set {mirror} up"),
            tc=tuple(lines),
            undo_tc=(f"qdisc del dev {device} root", f"qdisc del dev {device} ingress"),
            undo_ip=(f"link del {mirror}",),
        )

    def differences(self, qdiscs: Sequence[Qdisc], link: Link, *, on_switch: bool) -> list[str]:
        if wrong := super().differences(qdiscs, link, on_switch=on_switch):
            return wrong
        rate = (root_of(qdiscs) or {}).get("options", {}).get("rate")
        wrong = [] if rate == link.rate_bps // 8 else [f"its rate is {rate} B/s, not {link.rate_bps // 8}"]
        queues = sum(qdisc.get("kind") == "pfifo" for qdisc in qdiscs)
        return wrong + ([f"it has {queues} queues, not {QUEUES}"] if on_switch and queues != QUEUES else [])


def ifb_name(device: str) -> str:
    """The ifb that delays what ``device`` receives (interface names have at most 15 characters)."""
    return f"i-{device}"[:15]
