"""Units: times, bytes and packets as types. A plain number means ps, or bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, SupportsIndex, TypeAlias, overload

import numpy as np

from qjump_sim import _native

NS = 1_000
US = 1_000_000
MS = 1_000_000_000
S = 1_000_000_000_000
"""Picoseconds of a nanosecond, microsecond, millisecond and second."""

UNITS: dict[str, dict[str, str]] = _native.units()
"""The units of queues', transports' and congestion controls' settings, by class and field, as the
simulator has them: Duration (ps), Octets (bytes) or Size (bytes, or packets). Fields without a unit
are left out."""


Number: TypeAlias = float | np.integer[Any] | np.floating[Any]
"""A plain number, Python's or numpy's."""


def _plain(number: object) -> int | float | None:
    """As a plain Python number; None if it is not a single number, such as an array."""
    if isinstance(number, Integral):
        return int(number)
    return float(number) if isinstance(number, Real) else None


class Time(int):
    """A time in whole ps. As a limit or threshold it is as many bytes as the link sends in that
    time: it depends on the link's rate.

    Sums, differences, multiples, parts and remainders of one are times too, to the nearest ps; a plain number beside it is of ps. A time over a time is a
    plain number, and times multiplied are a TypeError. `0.5 * us(20)` is a float, for Python does not ask the second factor, and a float is refused as
    a limit: write `us(20) / 2`. With an array it yields an array, of plain numbers of ps.

    >>> us(5) + ns(3), us(20) / 2, us(20) / us(5)
    (ns(5003), us(10), 4.0)
    """

    __slots__ = ()
    # Between numpy's scalars, which leave it to this class what `np.int64(3) * us(1)` is, and its arrays, which do not.
    __array_priority__ = -1.0

    @property
    def ps(self) -> int:
        """As a plain number."""
        return int(self)

    def __add__(self, other: Number, /) -> Time:
        plain = _plain(other)
        return NotImplemented if plain is None else _nearest(int(self) + plain)

    def __sub__(self, other: Number, /) -> Time:
        plain = _plain(other)
        return NotImplemented if plain is None else _nearest(int(self) - plain)

    def __rsub__(self, other: Number, /) -> Time:  # type: ignore[misc]  # of numpy's scalars too, which leave it to this class
        plain = _plain(other)
        return NotImplemented if plain is None else _nearest(plain - int(self))

    def __mul__(self, other: Number, /) -> Time:
        plain = _plain(other)
        return NotImplemented if plain is None or isinstance(other, Time) else _nearest(int(self) * plain)

    __radd__ = __add__
    __rmul__ = __mul__

    @overload  # type: ignore[override]
    def __truediv__(self, other: Time, /) -> float: ...
    @overload
    def __truediv__(self, other: Number, /) -> Time: ...
    def __truediv__(self, other: Number, /) -> Time | float:
        plain = _plain(other)
        if plain is None:
            return NotImplemented
        return int(self) / plain if isinstance(other, Time) else _nearest(int(self) / plain)

    @overload  # type: ignore[override]
    def __floordiv__(self, other: Time, /) -> int: ...
    @overload
    def __floordiv__(self, other: Number, /) -> Time: ...
    def __floordiv__(self, other: Number, /) -> Time | int:
        plain = _plain(other)
        if plain is None:
            return NotImplemented
        return int(self) // int(plain) if isinstance(other, Time) else Time(int(self) // plain)

    # A plain number over a time, and what is left of it, are plain numbers.
    def __rtruediv__(self, other: Number, /) -> float:  # type: ignore[misc]  # of numpy's scalars too, as above
        plain = _plain(other)
        return NotImplemented if plain is None else plain / int(self)

    def __rfloordiv__(self, other: Number, /) -> int:  # type: ignore[misc]
        plain = _plain(other)
        return NotImplemented if plain is None else int(plain // int(self))

    def __rmod__(self, other: Number, /) -> float:  # type: ignore[misc,override]
        plain = _plain(other)
        return NotImplemented if plain is None else plain % int(self)

    def __rdivmod__(self, other: Number, /) -> tuple[int, float]:  # type: ignore[misc,override]
        plain = _plain(other)
        return NotImplemented if plain is None else (int(plain // int(self)), plain % int(self))

    def __mod__(self, other: Number, /) -> Time:
        plain = _plain(other)
        return NotImplemented if plain is None else _nearest(int(self) % plain)

    def __divmod__(self, other: Number, /) -> tuple[int, Time]:
        return NotImplemented if _plain(other) is None else (self // other, self % other)

    def __neg__(self) -> Time:
        return Time(-int(self))

    def __pos__(self) -> Time:
        return self

    def __abs__(self) -> Time:
        return Time(abs(int(self)))

    def __round__(self, digits: SupportsIndex = 0, /) -> Time:
        return Time(round(int(self), digits))

    __trunc__ = __floor__ = __ceil__ = __pos__

    # What numpy's scalars leave to this class has to be said of comparisons too.
    def __eq__(self, other: object, /) -> bool:
        return int(self) == other

    def __ne__(self, other: object, /) -> bool:
        return int(self) != other

    def __lt__(self, other: int, /) -> bool:
        return int(self) < other

    def __le__(self, other: int, /) -> bool:
        return int(self) <= other

    def __gt__(self, other: int, /) -> bool:
        return int(self) > other

    def __ge__(self, other: int, /) -> bool:
        return int(self) >= other

    __hash__ = int.__hash__

    def __repr__(self) -> str:
        for name, unit in (("ms", MS), ("us", US), ("ns", NS)):
            if self and int(self) % unit == 0:
                return f"{name}({int(self) // unit})"
        return f"Time({int(self)})"


def _nearest(ps: float) -> Time:
    try:
        return Time(round(ps))
    except (ValueError, OverflowError):  # not a number, or infinite
        raise ValueError(f"a time of {ps} ps: it must be a finite number") from None


def _time(unit: str, count: float, ps: int) -> Time:
    plain = _plain(count)
    if plain is None or not math.isfinite(plain):
        raise ValueError(f"{unit}({count!r}): it needs a finite number of {unit}")
    return Time(round(plain * ps))


def ns(count: float) -> Time:
    """A time in nanoseconds, to the nearest ps. Raises ValueError if it is not a finite number."""
    return _time("ns", count, NS)


def us(count: float) -> Time:
    """A time in microseconds, likewise."""
    return _time("us", count, US)


def ms(count: float) -> Time:
    """A time in milliseconds, likewise."""
    return _time("ms", count, MS)


@dataclass(frozen=True)
class Bytes:
    """A number of bytes, the same as a plain number where bytes are expected.

    >>> queue = DropTail(Bytes(9_000))
    """

    count: int


@dataclass(frozen=True)
class Packets:
    """A number of packets, including the one being sent; where a limit is in bytes, as in
    `Priority` and `Pause`, full packets (`Transport.data_bytes`).

    >>> queue = DropTail(Packets(6))
    """

    count: int


Limit: TypeAlias = int | Bytes | Packets | Time
"""A limit or threshold of a queue; a plain number means bytes."""

Size: TypeAlias = int | Bytes | Packets
"""A limit that cannot be a time; a plain number means bytes."""
