"""Quantities with units, as written in TOML files and on the command line: ``10Mbit``, ``28.8ms``, ``1550B``.

A bare number is refused where a unit is due: a rate of "10" is how the published scripts came to be wrong by
a factor of ten.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, ClassVar, Self

from qjump_mn.errors import UsageError

_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ/]*)\s*")


class Quantity(int):
    """An integer number of base units, read from text with a unit."""

    base: ClassVar[str]
    units: ClassVar[dict[str, int]]
    sample: ClassVar[str]

    @classmethod
    def parse(cls, text: object) -> Self:
        """Read ``text`` (such as ``28.8ms``); raise :class:`UsageError` unless it is a whole number of base
        units."""
        name = cls.__name__.lower()
        match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
        if match is None or match[2] not in cls.units:
            units = ", ".join(cls.units)
            raise UsageError(
                f"{text!r} is not a {name}: write a number and one of the units {units}, such as "
                f"{cls.sample!r}"
            )
        value = Decimal(match[1]) * cls.units[match[2]]
        if value != value.to_integral_value():
            raise UsageError(f"{text!r} is not a whole number of {cls.base}")
        return cls(int(value))

    def __str__(self) -> str:
        for unit, size in sorted(self.units.items(), key=lambda item: -item[1]):
            if self >= size and (self * 1000) % size == 0:
                return f"{Decimal(int(self)) / size:f}{unit}"
        return f"{int(self)}{next(iter(self.units))}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class Rate(Quantity):
    """A link rate in bit/s, on the wire: with preamble, frame check sequence and inter-frame gap."""

    base = "bit/s"
    units: ClassVar[dict[str, int]] = {"bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9}
    sample = "10Mbit"


class Duration(Quantity):
    """A time in ns."""

    base = "ns"
    units: ClassVar[dict[str, int]] = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
    sample = "28.8ms"


class Size(Quantity):
    """A number of bytes."""

    base = "bytes"
    units: ClassVar[dict[str, int]] = {"B": 1, "kB": 10**3, "MB": 10**6}
    sample = "1500B"


class Tolerance(Quantity):
    """A share, in billionths."""

    base = "ppb"
    units: ClassVar[dict[str, int]] = {"ppb": 1, "ppm": 10**3}
    sample = "100ppm"


def told_rate(bps: float) -> str:
    """A rate in a sentence: "10 Mb/s", "10 Gb/s"."""
    return f"{bps / 1e9:.4g} Gb/s" if bps >= 1e9 else f"{bps / 1e6:.4g} Mb/s"


class Quantiles:
    """A time that is drawn: what so many per cent of the draws do not exceed, with straight lines between, as
    text such as ``0:25us,50:85us,100:126us``; empty: none.

    ``points`` are (per cent, ns), from 0 to 100.
    """

    __slots__ = ("points",)

    MOST = 32
    """Points."""

    def __init__(self, points: tuple[tuple[float, int], ...] = ()) -> None:
        self.points = points

    @classmethod
    def parse(cls, text: object) -> Self:
        """Read ``text``; raise :class:`UsageError` unless it has such points, which ascend."""
        if text == "":
            return cls()
        wrong = UsageError(
            f"{text!r} is no distribution: write per cent and time, from 0 to 100 and ascending, such as "
            "'0:25us,50:85us,100:126us'"
        )
        if not isinstance(text, str):
            raise wrong
        points = []
        for point in text.split(","):
            percent, colon, time = point.partition(":")
            if not colon or not re.fullmatch(r"\s*[0-9]+(\.[0-9]{1,4})?\s*", percent):
                raise wrong
            points.append((float(percent), int(Duration.parse(time))))
        shares, times = zip(*points, strict=True)
        if (shares[0], shares[-1]) != (0, 100) or len(points) > cls.MOST:
            raise wrong
        if list(shares) != sorted(set(shares)) or list(times) != sorted(times):
            raise wrong
        return cls(tuple(points))

    def __str__(self) -> str:
        return ",".join(f"{percent:.7g}:{Duration(ns)}" for percent, ns in self.points)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantiles) and self.points == other.points

    def __hash__(self) -> int:
        return hash(self.points)


def decode(kind: type, value: Any) -> Any:
    """``dec_hook`` for msgspec: read quantities from their text."""
    if issubclass(kind, Quantity | Quantiles):
        try:
            return kind.parse(value)
        except UsageError as error:  # msgspec adds the place to a ValueError, and to no other
            raise ValueError(str(error)) from None
    raise NotImplementedError(kind)


def encode(value: Any) -> Any:
    """``enc_hook`` for msgspec: write quantities as text that :func:`decode` reads back."""
    if isinstance(value, Quantity | Quantiles):
        return str(value)
    raise NotImplementedError(type(value))
