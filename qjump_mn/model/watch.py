"""A part of the measurement in which every frame on every link is recorded, for the player."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.model import graph
from qjump_mn.model.topology import Network
from qjump_mn.model.units import Duration

USUAL = "usual"
"""The option's value where none is given: see :func:`parse`."""

MAX_FRAMES = 100_000
"""About so many frames and drops are recorded at most; the recording ends with the last one."""

MAX_LINKS = 32
"""Links between two layers of a network with several paths: more are not legible."""

SIMULATED = "simulator"
"""The backend whose trace of packets begins with the trial."""

_USUAL_PACKETS = 10_000
"""The usual part of a simulated measurement, in full-size packets of the slowest link."""


class Watch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """From ``start_ns`` after the beginning of the measurement, for ``length_ns``."""

    start_ns: int
    length_ns: int


def parse(text: str, duration_ns: int, simulated_ns: int = 0) -> Watch | None:
    """Return the part that ``START:LENGTH`` names, such as 2.5s:100ms; None for "".

    :data:`USUAL` is from a quarter of the measurement to its end; in the simulator, whose trace
    begins with the trial, the first ``simulated_ns`` (:func:`simulated_ns`). Raises
    :class:`UsageError` for a part that is not within the measurement, which lasts ``duration_ns``;
    0 if it ends by itself.
    """
    if not text:
        return None
    if text == USUAL:
        if simulated_ns:
            return Watch(start_ns=0, length_ns=min(simulated_ns, duration_ns or simulated_ns))
        start_ns = duration_ns // 4
        return Watch(start_ns=start_ns, length_ns=duration_ns - start_ns)
    start, colon, length = text.partition(":")
    if not colon:
        raise UsageError(f"--watch: {text!r} is not a part: write START:LENGTH, such as 2s:100ms")
    try:
        watch = Watch(start_ns=int(Duration.parse(start)), length_ns=int(Duration.parse(length)))
    except UsageError as error:
        raise UsageError(f"--watch: {error}") from None
    if not watch.length_ns or 0 < duration_ns < watch.start_ns + watch.length_ns:
        raise UsageError(
            f"--watch: {text} is not within the measurement, which lasts {Duration(duration_ns)}: "
            "choose an earlier or shorter part"
        )
    return watch


def simulated_ns(network: Network) -> int:
    """Return the length of the part that is usual in the simulator."""
    frame = theory.frame_bytes(network.mtu_bytes)
    return _USUAL_PACKETS * theory.occupancy_ns(frame, network.slowest_bps)


def check(watch: Watch | None, networks: Mapping[str, Network], backend: str) -> None:
    """Raise :class:`UsageError` if frames are to be recorded where that is not possible.

    ``networks`` are those of the arms.
    """
    if watch is None:
        return
    if backend not in ("guest", SIMULATED):
        raise UsageError(
            f"--watch records frames in the guest and in the simulator, and this run is for the "
            f"{backend}: leave it out"
        )
    for arm, network in networks.items():
        if reason := _not_drawn(network):
            raise UsageError(
                f"--watch draws switches in layers, and the network of arm {arm} "
                f"{reason}: leave it out, or choose other arms with --arms"
            )
        if backend == "guest" and network.model != "wire":
            raise UsageError(
                f"--watch records frames on wires, and arm {arm} has links of the model "
                f"{network.model!r}: leave it out, or choose other arms with --arms"
            )


def _not_drawn(network: Network) -> str:
    """Return why the player cannot draw a network with several paths; "" if it can."""
    if not network.multipath:
        return ""
    pairs = tuple(ends for ends, _ in network.wiring())
    layers = graph.layers(pairs, network.hosts)
    layer_of = {node: layer for layer, nodes in enumerate(layers) for node in nodes}
    counts = Counter(min(layer_of[end] for end in pair) for pair in pairs)
    if (most := max(counts.values())) > MAX_LINKS:
        return f"has {most} links between two layers, more than {MAX_LINKS}"
    for pair, count in Counter(map(frozenset, pairs)).items():
        first, second = sorted(pair)
        if count > 1:
            return f"joins {first} and {second} by {count} links"
        if layer_of[first] == layer_of[second]:
            return f"joins {first} and {second}, which are in one layer"
    return ""
