"""How much slower than the processor's the clock of an emulated network runs."""

from __future__ import annotations

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model.topology import Network
from qjump_mn.model.units import told_rate

MOST = 4000
"""The kernel's module (kmod-clock/dilate.c) takes no more."""

PLAIN_BPS = 10**7
"""Up to this rate an undilated processor is quick enough: it adds 45 us to an idle round trip of eight links,
a twenty-seventh of a full-size frame."""

CHOICES = (1, 10, 100, 1000)
"""What is chosen from: the least that leaves the processor's share of a frame what it is at 10 Mb/s."""


PROCESSOR_NS = 120_000
"""Allowed for the one processor on an urgent packet's way there and back, on its own clock: it takes 45 us of
an idle round trip of eight links, the most that the fidelity check of such lets pass is this."""

BACKEND = "guest"
"""The one that has such a clock; for any other a dilation has no meaning, and none is planned."""

TIMELESS = "simulator"
"""The one whose hosts and switches take no time."""


class ClockSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``dilation``: an instruction takes 1/dilation ns of the network's time; without it, it is chosen by the
    rate of the fastest link."""

    dilation: int | None = None


NONE = ClockSpec(dilation=1)


def dilation(where: str, spec: ClockSpec, network: Network) -> int | None:
    """The dilation for a network, None for none; raise :class:`UsageError` for one that cannot be."""
    if spec.dilation is not None:
        if not 1 <= spec.dilation <= MOST:
            raise UsageError(
                f"{where}: clock.dilation = {spec.dilation} is out of range: use 1 (none) to {MOST}"
            )
        chosen = spec.dilation
    else:
        fastest_bps = max(network.link.rate_bps, network.trunk.rate_bps)
        chosen = next((choice for choice in CHOICES if choice * PLAIN_BPS >= fastest_bps), CHOICES[-1])
    return None if chosen == 1 else chosen


def processor_ns(backend: str, dilation: int) -> int:
    """What is allowed for the processor on an urgent packet's way, in the network's time."""
    return 0 if backend == TIMELESS else PROCESSOR_NS // dilation


def remark(dilation: int, network: Network, *, given: bool) -> str:
    """What was chosen, and why, in a sentence."""
    why = "as asked for" if given else f"chosen for links of {told_rate(network.link.rate_bps)}"
    return (
        f"The guest's clock is dilated by {dilation} ({why}): an instruction takes {1000 / dilation:g} ps, "
        "and what the processor does takes so much less of the network's time."
    )
