"""The base class of link models, and what their counters are turned into."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.executor.steps import Run
from qjump_mn.links import commands
from qjump_mn.links.commands import Shaping as Shaping  # for link models of extensions
from qjump_mn.model.topology import Link, Network

QUEUES = len(theory.LEVELS)
"""Transmit queues, receive queues and bands of an interface: one each for a level."""

PARENT = commands.PARENT
"""The class that limiters and queues are put below; the same in every link model."""

HANDLE = "6:"
"""The handle of the qdisc below :data:`PARENT`."""

Qdisc = dict[str, Any]
"""One entry of ``tc -j -s qdisc show``."""

EDT = "qjump-edt"
"""The kind of an entry for the program that gives departure times above an interface's qdiscs."""


HOOKS = ("ingress", "clsact")
"""Kinds of entries that hold filters, and no frames."""

NETEM_SHARE = 1e-9
"""netem has shares in units of 2^-32, and tc prints ten digits of them."""

NOTHING = Shaping((), (), ())


class Count(NamedTuple):
    """Counters of one end of a link, since it was created.

    Frames and bytes on the link, packets dropped and marked, and the longest queue in bytes (None
    if it is not counted).
    """

    frames: int
    bytes: int
    drops: int
    marks: int
    most_bytes: int | None

    def since(self, first: Count) -> Count:
        """Return the increase since ``first``; ``most_bytes`` stays as it is."""
        return Count(
            self.frames - first.frames,
            self.bytes - first.bytes,
            self.drops - first.drops,
            self.marks - first.marks,
            self.most_bytes,
        )


class Wait(NamedTuple):
    """Waiting times of one level at one end of a link, since it was created, in ns.

    Frames sent, the longest wait of a frame before its own transmission, and how late a frame was
    handed over at most.
    """

    frames: int
    longest_ns: int
    late_ns: int


class LinkModel:
    """A link model; a subclass sets the attributes and overrides the methods that differ.

    ``modules``: the kernel modules that it needs.
    ``serves_levels``: a host's end serves the levels in strict priority by itself.
    ``has_port_queues``: a scheme may put its own queues below the root of a switch's end.
    ``has_pause``: it has flow control.
    ``releases_early``: a frame is no longer charged to its sender's socket once it has left.
    ``exact``: a frame takes its serialisation time to the nanosecond, so that an idle round trip
    is constant.
    ``has_hosts``: it can delay frames by a host's processing time.
    ``has_impairments``: it can lose, delay and reorder frames.
    ``cuts_segments``: it segments the large packets that TCP sends to a card with segmentation
    offload.
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
    has_impairments: ClassVar[bool] = False

    def check(self, where: str, link: Link) -> None:
        """Raise :class:`UsageError`, beginning with ``where``, for what this model cannot do."""
        unsupported = (
            (
                not link.orphan and not self.releases_early,
                "orphan = false is",
                "releases no packet early",
            ),
            (
                link.xoff_bytes and not self.has_pause,
                f"xoff = {link.xoff_bytes}B is",
                "has no flow control",
            ),
            (link.tolerance_ppb and not self.exact, "link.tolerance is", "has no exact rate"),
            (
                (link.host_ns or link.host_jitter) and not self.has_hosts,
                "host_time and host_jitter are",
                "does not delay frames at hosts",
            ),
            (
                link.switch_ns and not self.has_hosts,
                "switch_time is",
                "does not delay frames at switches",
            ),
            (
                link.impairment and not self.has_impairments,
                "loss, jitter, reorder and trace are",
                "neither loses nor delays single frames",
            ),
        )
        for applies, setting, reason in unsupported:
            if applies:
                raise UsageError(
                    f"{where}: {setting} for links of model wire: {self.name} {reason}"
                )

    def shape(self, link: Link, device: str, *, on_switch: bool, seed: int) -> Shaping:
        """Return what makes ``device`` an end of ``link``; ``seed`` is for random draws there."""
        raise NotImplementedError

    def shapes(self, *, on_switch: bool) -> bool:
        """Whether this model makes the qdiscs at this end, so that :meth:`differences` applies."""
        return True

    def switches(self, network: Network) -> Iterator[Run]:
        """Yield further steps for the switches, to run once their ports are shaped."""
        return iter(())

    def differences(self, qdiscs: Sequence[Qdisc], link: Link, *, on_switch: bool) -> list[str]:
        """Return how an interface's qdiscs, as read back, differ from its link.

        Each is the end of a sentence about the interface.
        """
        root = root_of(qdiscs)
        if root is None or root.get("kind") != self.name:
            return [f"its root qdisc is {root.get('kind') if root else 'missing'}, not {self.name}"]
        return []

    def received_differences(self, qdiscs: Sequence[Qdisc], link: Link) -> list[str]:
        """Return how the qdiscs for what an interface receives differ from its link's impairment.

        ``qdiscs`` are those of :func:`commands.ifb`'s device.
        """
        if not link.impairment or not link.impairment.at_receiver:
            return []
        options = (root_of(qdiscs) or {}).get("options", {})
        built = {
            "loss": options.get("loss-random", {}).get("loss", 0),
            "delay": options.get("delay", {}).get("delay", 0),
            "reorder": 1 - options.get("reorder", {}).get("reorder", 1),
        }
        planned = {
            "loss": (link.impairment.loss_ppb or 0) / 1e9,
            "delay": (link.impairment.reorder_ns or 0) / 1e9,
            "reorder": (link.impairment.reorder_ppb or 0) / 1e9,
        }
        return [
            f"the {key} of what it receives is {built[key]}, not {value}"
            for key, value in planned.items()
            if not math.isclose(built[key], value, abs_tol=NETEM_SHARE)
        ]

    def waits(self, qdiscs: Sequence[Qdisc]) -> dict[int, Wait]:
        """Return how long frames waited at one end, by level; empty if it is not counted."""
        return {}

    def counts(self, qdiscs: Sequence[Qdisc]) -> dict[int | None, Count]:
        """Return an interface's counters by level; the key None means all levels together.

        Raises KeyError or ValueError if the qdiscs do not have them.
        """
        root = root_of(qdiscs)
        if root is None:
            raise ValueError("no root qdisc")
        frames = root["packets"]
        wire_bytes = root["bytes"] + theory.TAG_TO_GAP_BYTES * frames
        drops = root["drops"] + sum(qdisc["drops"] for qdisc in qdiscs if qdisc["kind"] == EDT)
        return {None: Count(frames, wire_bytes, drops, 0, None)}


def root_of(qdiscs: Sequence[Qdisc]) -> Qdisc | None:
    """Return the root qdisc among those of an interface."""
    return next((qdisc for qdisc in qdiscs if qdisc.get("root")), None)
