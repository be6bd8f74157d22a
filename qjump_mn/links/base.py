"""What every model of a link has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.executor.steps import Run
from qjump_mn.links.commands import Shaping as Shaping  # what a model gives

if TYPE_CHECKING:  # a network asks the registry of models, which needs this module
    from qjump_mn.model.topology import Link, Network

QUEUES = len(theory.LEVELS)
"""Of an interface: transmit and receive queues, and bands, each one for a level."""

PARENT = "5:1"
"""Mininet's TC puts everything of ours below this class, whatever the model."""

HANDLE = "6:"
"""Of what stands below :data:`PARENT`."""

Qdisc = dict[str, Any]
"""One entry of ``tc -j -s qdisc show``."""


NOTHING = Shaping((), (), ())


class Count(NamedTuple):
    """Since a link's end was made: frames and bytes on the link, packets dropped and marked, most bytes that
    waited (None where nobody counts)."""

    frames: int
    bytes: int
    drops: int
    marks: int
    most_bytes: int | None

    def since(self, first: Count) -> Count:
        """What came after ``first``; ``most_bytes`` is as it is now."""
        return Count(
            self.frames - first.frames,
            self.bytes - first.bytes,
            self.drops - first.drops,
            self.marks - first.marks,
            self.most_bytes,
        )


class Wait(NamedTuple):
    """Since a link's end was made, of one level: frames sent, the longest that one of them waited before its
    own transmission, and by how much one was handed over late, in ns."""

    frames: int
    longest_ns: int
    late_ns: int


class LinkModel:
    """A model of a link; a subclass overrides what is otherwise.

    ``modules`` are the kernel's that it needs. ``serves_levels``: a host's end serves the levels in strict
    priority by itself. ``has_port_queues``: below the root of a switch's end a scheme may put queues of its
    own. ``has_pause``: it has flow control. ``releases_early``: a frame is no longer charged to its sender's
    socket once it has left. ``exact``: a frame takes its serialisation
    time to the nanosecond, so that an idle round trip is a constant. ``has_hosts``: what hosts take is part
    of it. ``cuts_segments``: what TCP hands down for a card with segmentation offload becomes frames.
    """

    name: ClassVar[str]
    modules: ClassVar[tuple[str, ...]]
    serves_levels: ClassVar[bool] = False
    has_port_queues: ClassVar[bool] = False
    has_pause: ClassVar[bool] = False
    releases_early: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    has_hosts: ClassVar[bool] = False
    cuts_segments: ClassVar[bool] = False

    def check(self, where: str, link: Link) -> None:
        """Raise :class:`UsageError` that begins with ``where`` for what this model cannot do."""
        if not link.orphan and not self.releases_early:
            raise UsageError(
                f"{where}: orphan = false is for links of model wire: {self.name} releases no packet early"
            )
        if link.xoff_bytes and not self.has_pause:
            raise UsageError(
                f"{where}: xoff = {link.xoff_bytes}B is for links of model wire: {self.name} knows no pause"
            )
        if link.tolerance_ppb and not self.exact:
            raise UsageError(
                f"{where}: link.tolerance is for links of model wire: {self.name} sends at no exact rate"
            )
        if (link.host_ns or link.host_jitter) and not self.has_hosts:
            raise UsageError(
                f"{where}: host_time and host_jitter are for links of model wire: {self.name} has no hosts "
                "that take time"
            )

    def shape(self, link: Link, device: str, *, on_switch: bool, seed: int) -> Shaping:
        """What makes ``device`` an end of ``link``; ``seed`` is of what is drawn here."""
        raise NotImplementedError

    def shapes(self, *, on_switch: bool) -> bool:
        """Whether the qdiscs at this end of a link are this model's, so that :meth:`differences` knows
        them."""
        return True

    def switches(self, network: Network) -> Iterator[Run]:
        """Steps for the switches as a whole, when their ports are shaped."""
        return iter(())

    def differences(self, qdiscs: Sequence[Qdisc], link: Link, *, on_switch: bool) -> list[str]:
        """How the qdiscs of an interface that were read back differ from its link, a sentence's end each."""
        root = root_of(qdiscs)
        if root is None or root.get("kind") != self.name:
            return [f"its root qdisc is {root.get('kind') if root else 'missing'}, not {self.name}"]
        return []

    def waits(self, qdiscs: Sequence[Qdisc]) -> dict[int, Wait]:
        """How long frames waited at one end, by level; none where nobody counts."""
        return {}

    def counts(self, qdiscs: Sequence[Qdisc]) -> dict[int | None, Count]:
        """What the qdiscs of an interface count, by level; None is all levels together. Raises KeyError or
        ValueError where they do not say."""
        root = root_of(qdiscs)
        if root is None:
            raise ValueError("no root qdisc")
        frames = root["packets"]
        return {None: Count(frames, root["bytes"] + theory.TAG_TO_GAP_BYTES * frames, root["drops"], 0, None)}


def root_of(qdiscs: Sequence[Qdisc]) -> Qdisc | None:
    """The root qdisc of an interface."""
    return next((qdisc for qdisc in qdiscs if qdisc.get("root")), None)
