"""What hosts' TCP does otherwise than this project's hosts do by themselves."""

from __future__ import annotations

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.links import registry
from qjump_mn.model import changes
from qjump_mn.model.topology import Network

OF_LINUX = (
    *("reno", "cubic", "bbr", "bic", "cdg", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv"),
    *("scalable", "vegas", "veno", "westwood", "yeah"),
)
"""The congestion controls that Linux's own sources have (net/ipv4/tcp_*.c, 6.12)."""


def congestion_remarks(where: str, name: str | None) -> list[str]:
    """A remark on a congestion control that only another kernel than Linux's own can have."""
    if name is None or name in OF_LINUX:
        return []
    return [f"{where}: Linux's own sources have no congestion control {name!r}: the kernel must bring it"]


class Tcp(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """TCP on every host, beside what the arm's scheme asks of it; None leaves it as it is.

    ``tail_loss_probe`` is Linux's since 3.10 (``net.ipv4.tcp_early_retrans``). With ``segmentation_offload``
    TCP hands down packets of up to 64 kB, which the host's own link cuts into frames, as it does above a
    network card with TSO; by themselves hosts hand down one frame at a time. The simulator has neither.
    """

    tail_loss_probe: bool | None = None
    segmentation_offload: bool | None = None

    def check(self, where: str, network: Network) -> None:
        """Raise :class:`UsageError` that begins with ``where`` if ``network`` cannot do it."""
        if self.segmentation_offload and not registry.of(network.model).cuts_segments:
            raise UsageError(
                f"{where}: tcp.segmentation_offload: only links of model wire cut TCP's packets into frames, "
                f"not those of model {network.model}: leave it out, or choose that model"
            )

    @property
    def told(self) -> str:
        """What is given, in words; empty where that is nothing."""
        given = (
            (self.tail_loss_probe, "a tail-loss probe"),
            (self.segmentation_offload, "segmentation offload"),
        )
        parts = [f"{'with' if value else 'without'} {name}" for value, name in given if value is not None]
        return f"TCP {' and '.join(parts)}" if parts else ""

    def over(self, other: Tcp) -> Tcp:
        """``other`` with what is given here."""
        return changes.over(self, other)
