"""Published values, from plots/published/."""

from __future__ import annotations

import msgspec

from qjump_mn.model import loading

KIND = "plots/published"


class Median(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A published median in us, and the arm of the experiment that stands for it."""

    arm: str
    label: str
    us: float


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Values at ``rate_mbps``; ``measured`` says between what, ``ratio`` is that of the medians."""

    title: str
    source: str
    measured: str
    rate_mbps: float
    ratio: float
    medians: tuple[Median, ...]


def read(name: str) -> Published:
    """The published values called ``name``; raise :class:`UsageError` if there are none that fit."""
    return loading.convert(loading.read(KIND, name), Published, f"published figure {name!r}")
