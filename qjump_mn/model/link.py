"""The types of a link: as a file describes it, an arm's changes of it, and in plain numbers."""

from __future__ import annotations

import msgspec

from qjump_mn.model import changes
from qjump_mn.model.units import Duration, Quantiles, Rate, Share, Size, Tolerance


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

    ``loss`` is the share of frames that are lost on each link, in each direction, after they have
    taken their time on it, as if their checksum were wrong. ``jitter`` is a further delay of each
    frame; frames of a flow stay in order. ``reorder`` is the share of frames that arrive later by
    ``reorder_by``, so that others overtake them. ``loss_of``, ``jitter_of`` and ``reorder_of``
    override them for single links, each named after the host or switch at its lower end. All are
    drawn from the trial's seed, only in the guest and on hosts, and need model wire.

    ``trace`` and ``trace_of`` let the rate from a switch down a link follow a trace: the name of a
    file NAME.trace in a folder topologies/, in mahimahi's format. Each of its lines is the time in
    ms of an opportunity to send one full-size frame; after the last one it begins again. ``rate``
    is the most.
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
    loss: Share = Share(0)
    loss_of: dict[str, Share] = {}
    jitter: Quantiles = Quantiles()
    jitter_of: dict[str, Quantiles] = {}
    reorder: Share = Share(0)
    reorder_of: dict[str, Share] = {}
    reorder_by: Duration = Duration(0)
    trace: str = ""
    trace_of: dict[str, str] = {}


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
    loss: Share | None = None
    loss_of: dict[str, Share] | None = None
    jitter: Quantiles | None = None
    jitter_of: dict[str, Quantiles] | None = None
    reorder: Share | None = None
    reorder_of: dict[str, Share] | None = None
    reorder_by: Duration | None = None
    trace: str | None = None
    trace_of: dict[str, str] | None = None

    def over(self, link: LinkSpec) -> LinkSpec:
        """Return ``link`` with these changes."""
        return changes.over(self, link)


class Impairment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a link treats its frames badly, in each direction; None and empty where it does not.

    ``loss_ppb`` and ``reorder_ppb`` are shares of frames in billionths, ``reorder_ns`` is how much
    later reordered frames arrive, ``jitter`` has (per cent, ns). ``trace`` has the full-size frames
    that may leave the upper end in each ms, and begins again at its end.
    """

    loss_ppb: int | None = None
    jitter: tuple[tuple[float, int], ...] = ()
    reorder_ppb: int | None = None
    reorder_ns: int | None = None
    trace: tuple[int, ...] = ()

    @property
    def at_receiver(self) -> bool:
        """Whether frames are lost or reordered, which happens where they are received."""
        return bool(self.loss_ppb or self.reorder_ppb)

    @property
    def told(self) -> str:
        """This in words, to follow the word "links"."""
        parts = (
            f"lose {Share(self.loss_ppb or 0)} of frames" if self.loss_ppb else "",
            f"delay them by {Quantiles(self.jitter)} more" if self.jitter else "",
            f"delay {Share(self.reorder_ppb)} by {Duration(self.reorder_ns or 0)}, out of order"
            if self.reorder_ppb
            else "",
            f"follow a trace of {len(self.trace) / 1e3:g} s" if self.trace else "",
        )
        return ", ".join(filter(None, parts))


SOUND = Impairment()
"""A link without impairment."""


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """:class:`LinkSpec` in plain numbers. ``buffer_bytes`` is per level and port. ``xoff_bytes``
    and ``xon_bytes`` are 0 on links that are never paused, ``host_ns`` is 0 between switches.
    ``host_jitter`` has (per cent, ns). ``switch_ns`` is a switch's time for frames from a host;
    between switches it is in ``delay_ns``. ``pfc``, ``tolerance_ppb``, ``switch_ns`` and
    ``impairment`` are None where they are off, so that plans without them keep their hash.
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
    impairment: Impairment | None = None

    def arrives_ns(self, *, from_host: bool) -> int:
        """Return the time from a frame's last bit out of one end until the other end has it: until
        a switch can queue it, or a host receives it without jitter."""
        return self.delay_ns + self.host_ns + ((self.switch_ns or 0) if from_host else 0)


def told_tolerance(link: Link) -> str:
    """Return the tolerance of a link's rate in words, to follow the rate; empty for an exact
    link."""
    return f" (up to {link.tolerance_ppb / 1e3:g} ppm more)" if link.tolerance_ppb else ""
