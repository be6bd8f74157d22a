"""TCP options of all hosts, and a remark on congestion controls that Linux does not have."""

from __future__ import annotations

import msgspec

from qjump_mn.model import changes

OF_LINUX = (
    *(
        "reno",
        "cubic",
        "bbr",
        "bic",
        "cdg",
        "dctcp",
        "highspeed",
        "htcp",
        "hybla",
        "illinois",
        "lp",
        "nv",
    ),
    *("scalable", "vegas", "veno", "westwood", "yeah"),
)
"""The congestion controls in Linux's own sources (net/ipv4/tcp_*.c, 6.12)."""


def congestion_remarks(where: str, name: str | None) -> list[str]:
    """Return a remark on a congestion control that is not in Linux's own sources."""
    if name is None or name in OF_LINUX:
        return []
    return [f"{where}: Linux has no congestion control {name!r}: use a kernel that provides it"]


class Tcp(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """TCP options on every host, in addition to the scheme's. None keeps the default.

    ``tail_loss_probe`` is in Linux since 3.10 (``net.ipv4.tcp_early_retrans``). With
    ``segmentation_offload`` TCP passes down packets of up to 64 kB, and the host's link cuts them
    into frames, like a network card with TSO. By default hosts pass down one frame at a time.
    ``min_rto_us`` is the least retransmission timeout in us (``net.ipv4.tcp_rto_min_us``, since
    Linux 6.11), 200,000 by default; the kernel rounds timeouts up to ticks of 4 ms. The simulator
    has none of these options.
    """

    tail_loss_probe: bool | None = None
    segmentation_offload: bool | None = None
    min_rto_us: int | None = None

    @property
    def told(self) -> str:
        """The options that are set, in words; empty if there are none."""
        options = (
            (self.tail_loss_probe, "a tail-loss probe"),
            (self.segmentation_offload, "segmentation offload"),
        )
        parts = [
            f"{'with' if value else 'without'} {name}"
            for value, name in options
            if value is not None
        ]
        if self.min_rto_us is not None:
            parts.append(f"with timeouts from {self.min_rto_us / 1e3:g} ms")
        return f"TCP {' and '.join(parts)}" if parts else ""

    def over(self, other: Tcp) -> Tcp:
        """Return ``other`` with the options that are set here."""
        return changes.over(self, other)
