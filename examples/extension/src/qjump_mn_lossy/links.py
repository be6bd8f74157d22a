"""The link model `lossy`: the kernel's netem, which serialises frames, delays them, and loses
some."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from qjump_mn import theory
from qjump_mn.links.base import LinkModel, Qdisc, Shaping, root_of
from qjump_mn.model.topology import Link

LOSS_PERCENT = 1


class Lossy(LinkModel):
    """Each end of a link loses one frame of a hundred of those that it sends: the same ones every
    time.

    Levels wait in one queue: netem decides when a frame is sent as soon as it has it. Needs Linux
    6.6 and its iproute2, whose netem has a seed.
    """

    name = "lossy"
    modules = ("sch_netem",)

    def shape(self, link: Link, device: str, *, on_switch: bool, seed: int) -> Shaping:
        line = (
            f"qdisc add dev {device} root handle 5: netem limit {_packets(link)} "
            f"delay {link.delay_ns}ns loss {LOSS_PERCENT}% seed {_seed(device)} "
            f"rate {link.rate_bps}bit {theory.TAG_TO_GAP_BYTES}"
        )
        return Shaping((), (line,), (f"qdisc del dev {device} root",), ())

    def differences(self, qdiscs: Sequence[Qdisc], link: Link, *, on_switch: bool) -> list[str]:
        root = root_of(qdiscs) or {}
        options = root.get("options", {})
        built = {
            "kind": root.get("kind"),
            "limit": options.get("limit"),
            "delay": options.get("delay", {}).get("delay", 0),
            "loss": options.get("loss-random", {}).get("loss"),
            "seed": options.get("seed"),
            "rate": options.get("rate", {}).get("rate"),
        }
        planned: dict[str, Any] = {
            "kind": "netem",
            "limit": _packets(link),
            "delay": link.delay_ns / theory.NS_PER_S,
            "loss": LOSS_PERCENT / 100,
            "seed": _seed(str(root.get("dev"))),
            "rate": link.rate_bps // 8,
        }
        return [
            f"its netem's {key} is {built[key]}, not {value}"
            for key, value in planned.items()
            if built[key] != value
        ]


def _packets(link: Link) -> int:
    """netem's queue is counted in packets."""
    return max(1, link.buffer_bytes // theory.frame_bytes(link.mtu_bytes))


def _seed(device: str) -> int:
    """Each interface loses other frames than the others."""
    return zlib.crc32(device.encode())
