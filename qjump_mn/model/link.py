"""The types of a link: as a file describes it, an arm's changes of it, and in plain numbers."""

from __future__ import annotations

import msgspec

from qjump_mn.model import changes
from qjump_mn.model.units import Duration, Quantiles, Rate, Size, Tolerance


class LinkSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The behaviour of every link of the network. ``buffer`` is in bytes per level and port,
    ``delay`` is the propagation delay in one direction.

    ``trunk_rate``, ``trunk_buffer`` and ``trunk_delay`` are for links between switches; the
    defaults are those of the hosts' links.

    ``orphan``: a frame that has left its sender is no longer charged to its socket, as with a real
    network card; with false, it is charged as with HTB and TBF. ``xoff`` and ``xon`` set Ethernet
    flow control (802.3x): a switch port pauses its link partner when ``xoff`` bytes that it
    received wait in the switch, and resumes it at ``xon`` bytes; 0 is off. ``pfc`` counts and
    pauses each level separately (802.1Qbb). All of these need model wire.

    ``tolerance`` is by how much a link may be faster than its rate, because oscillators differ. The
    trial's seed draws each link's excess uniformly; no link is slower. Two Ethernet links may
    differ by 200 ppm (IEEE 802.3: 100 ppm each). It needs model wire; the default is 0.

    ``host_time`` is the time that a host takes for each frame between program and link, in each
    direction. ``host_jitter`` is a further time for received frames, drawn for each frame from the
    trial's seed. ``host_jitter_of`` overrides it for single hosts. Frames of a flow stay in order.
    Sent frames have no jitter: it would act after the host's limiter, and undo its spacing. These
    need model wire; the default is 0, because emulated hosts take almost no time.

    ``switch_time`` is the time that a switch takes for each frame, from its last bit in until it
    can wait at a port. It needs model wire.
    """

    model: str
    rate: Rate
    buffer: Size
    delay: Duration
    trunk_rate: Rate | None = None
    trunk_buffer: Size | None = None
    trunk_delay: Duration | None = None
    orphan: bool = True
    xoff: Size = Size(0)
    xon: Size = Size(0)
    pfc: bool = False
    tolerance: Tolerance = Tolerance(0)
    host_time: Duration = Duration(0)
    host_jitter: Quantiles = Quantiles()
    host_jitter_of: dict[str, Quantiles] = {}
    switch_time: Duration = Duration(0)


class LinkChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes to the links of one arm or scheme. None changes nothing."""

    model: str | None = None
    rate: Rate | None = None
    buffer: Size | None = None
    delay: Duration | None = None
    trunk_rate: Rate | None = None
    trunk_buffer: Size | None = None
    trunk_delay: Duration | None = None
    orphan: bool | None = None
    xoff: Size | None = None
    xon: Size | None = None
    pfc: bool | None = None
    tolerance: Tolerance | None = None
    host_time: Duration | None = None
    host_jitter: Quantiles | None = None
    host_jitter_of: dict[str, Quantiles] | None = None
    switch_time: Duration | None = None

    def over(self, link: LinkSpec) -> LinkSpec:
        """Return ``link`` with these changes."""
        return changes.over(self, link)


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """:class:`LinkSpec` in plain numbers. ``buffer_bytes`` is per level and port. ``xoff_bytes``
    and ``xon_bytes`` are 0 on links that are never paused, ``host_ns`` is 0 between switches.
    ``host_jitter`` has (per cent, ns). ``switch_ns`` is a switch's time for
    frames from a host; between switches it is in ``delay_ns``. ``pfc``, ``tolerance_ppb`` and
    ``switch_ns`` are None where they are off, so that plans without them keep their hash.
    """

    model: str
    rate_bps: int
    buffer_bytes: int
    delay_ns: int
    mtu_bytes: int
    orphan: bool
    xoff_bytes: int
    xon_bytes: int
    pfc: bool | None = None
    tolerance_ppb: int | None = None
    host_ns: int = 0
    host_jitter: tuple[tuple[float, int], ...] = ()
    switch_ns: int | None = None

    def arrives_ns(self, *, from_host: bool) -> int:
        """Return the time from a frame's last bit out of one end until the other end has it: until
        a switch can queue it, or a host receives it without jitter."""
        return self.delay_ns + self.host_ns + ((self.switch_ns or 0) if from_host else 0)


def told_tolerance(link: Link) -> str:
    """Return the tolerance of a link's rate in words, to follow the rate; empty for an exact
    link."""
    return f" (up to {link.tolerance_ppb / 1e3:g} ppm more)" if link.tolerance_ppb else ""
