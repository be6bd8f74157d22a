"""Units: times, bytes and packets that say what they are. Where a plain number stands it is of ps, or of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

NS = 1_000
US = 1_000_000
MS = 1_000_000_000
S = 1_000_000_000_000
"""Picoseconds of a nanosecond, microsecond, millisecond and second."""


class Time(int):
    """So many ps: a whole number, which as a limit or threshold is as many bytes as the link sends in that time: other ones for links of other rates.
    Sums, differences and multiples of one are times too."""

    __slots__ = ()

    @property
    def ps(self) -> int:
        """As a plain number."""
        return int(self)

    def __add__(self, other: int, /) -> Time:
        return Time(int(self) + other)

    def __sub__(self, other: int, /) -> Time:
        return Time(int(self) - other)

    def __mul__(self, other: int, /) -> Time:
        return Time(int(self) * other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __repr__(self) -> str:
        for name, unit in (("ms", MS), ("us", US), ("ns", NS)):
            if self and int(self) % unit == 0:
                return f"{name}({int(self) // unit})"
        return f"Time({int(self)})"


def ns(count: float) -> Time:
    """So many nanoseconds, to the nearest ps."""
    return Time(round(count * NS))


def us(count: float) -> Time:
    """So many microseconds, to the nearest ps."""
    return Time(round(count * US))


def ms(count: float) -> Time:
    """So many milliseconds, to the nearest ps."""
    return Time(round(count * MS))


@dataclass(frozen=True)
class Bytes:
    """So many bytes, as a plain number where bytes are meant."""

    count: int


@dataclass(frozen=True)
class Packets:
    """So many packets, with the one being sent; where a limit is of bytes, as those of `Priority` and `Pause`, so many full ones
    (`Transport.data_bytes`)."""

    count: int


Limit: TypeAlias = int | Bytes | Packets | Time
"""How long a queue may be, or is when something is done about it; a plain number is of bytes."""

Size: TypeAlias = int | Bytes | Packets
"""The same where it cannot be a time; a plain number is of bytes."""
