"""A part of the measurement in which every frame on every wire is recorded, for the player."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model.units import Duration

USUAL = "usual"
"""The option's value where none is given: see :func:`parse`."""


class Watch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """From ``start_ns`` after the beginning of the measurement, for ``length_ns``."""

    start_ns: int
    length_ns: int


def parse(text: str, duration_ns: int) -> Watch | None:
    """Return the part that ``START:LENGTH`` names, such as 2.5s:100ms; None for "".

    :data:`USUAL` is from a quarter of the measurement to its end. Raises :class:`UsageError` for a
    part that is not within the measurement, which lasts ``duration_ns``.
    """
    if not text:
        return None
    if text == USUAL:
        start_ns = duration_ns // 4
        return Watch(start_ns=start_ns, length_ns=duration_ns - start_ns)
    start, colon, length = text.partition(":")
    if not colon:
        raise UsageError(f"--watch: {text!r} is not a part: write START:LENGTH, such as 2s:100ms")
    try:
        watch = Watch(start_ns=int(Duration.parse(start)), length_ns=int(Duration.parse(length)))
    except UsageError as error:
        raise UsageError(f"--watch: {error}") from None
    if not watch.length_ns or watch.start_ns + watch.length_ns > duration_ns:
        raise UsageError(
            f"--watch: {text} is not within the measurement, which lasts {Duration(duration_ns)}: "
            "choose an earlier or shorter part"
        )
    return watch


def check(watch: Watch | None, models: Mapping[str, str], backend: str) -> None:
    """Raise :class:`UsageError` if frames are to be recorded where that is not possible.

    ``models`` is the model of the links by arm.
    """
    if watch is None:
        return
    if backend != "guest":
        raise UsageError(
            f"--watch records frames in the guest, and this run is for the {backend}: leave it out"
        )
    for arm, model in models.items():
        if model != "wire":
            raise UsageError(
                f"--watch records frames on wires, and arm {arm} has links of the model "
                f"{model!r}: leave it out, or choose other arms with --arms"
            )
