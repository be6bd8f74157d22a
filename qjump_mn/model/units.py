"""Parse and print quantities with units, as in TOML files and on the command line: ``10Mbit``,
``28.8ms``.

A number without a unit is an error: a rate of "10" made the published scripts wrong by a factor of
ten.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, ClassVar, Self

from qjump_mn.errors import UsageError

_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ/%]*)\s*")


class Quantity(int):
    """An integer number of base units, read from text with a unit."""

    base: ClassVar[str]
    units: ClassVar[dict[str, int]]
    sample: ClassVar[str]

    @classmethod
    def parse(cls, text: object) -> Self:
        """Parse ``text`` (such as ``28.8ms``). Raise :class:`UsageError` unless it is a whole
        number of base units.
        """
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
            raise UsageError(f"{text!r} is not a whole number of {cls.base}: round it")
        return cls(int(value))

    def __str__(self) -> str:
        for unit, size in sorted(self.units.items(), key=lambda item: -item[1]):
            if self >= size and (self * 1000) % size == 0:
                return f"{Decimal(int(self)) / size:f}{unit}"
        return f"{int(self)}{next(iter(self.units))}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class Rate(Quantity):
    """A link rate in bit/s on the wire, including preamble, frame check sequence and inter-frame
    gap.
    """

    base = "bit/s"
    units: ClassVar[dict[str, int]] = {"bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9}
    sample = "10Mbit"


class Duration(Quantity):
    """A duration in ns."""

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


class Share(Quantity):
    """A share of frames, in billionths."""

    base = "ppb"
    units: ClassVar[dict[str, int]] = {"ppb": 1, "ppm": 10**3, "%": 10**7}
    sample = "0.1%"

    def __str__(self) -> str:
        return f"{Decimal(int(self)) / self.units['%']:f}%"


def told_rate(bps: float) -> str:
    """Return a rate as text for a sentence: "10 Mb/s", "10 Gb/s"."""
    return f"{bps / 1e9:.4g} Gb/s" if bps >= 1e9 else f"{bps / 1e6:.4g} Mb/s"


def told_time(ns: float) -> str:
    """Return a time as text for a sentence, with three digits: "5 us", "1.23 ms"."""
    unit = next((unit for unit in ("s", "ms", "us") if ns >= Duration.units[unit]), "ns")
    return f"{ns / Duration.units[unit]:.3g} {unit}"


class Quantiles:
    """A distribution of times by its quantiles, with linear interpolation, as text such as
    ``0:25us,50:85us,100:126us``: half of the drawn times are at most 85us. Empty text: no time.

    ``points`` are (per cent, ns), from 0 to 100.
    """

    __slots__ = ("points",)

    MAX_POINTS = 32

    def __init__(self, points: tuple[tuple[float, int], ...] = ()) -> None:
        self.points = points

    @classmethod
    def parse(cls, text: object) -> Self:
        """Parse ``text``. Raise :class:`UsageError` unless its points ascend from 0 to 100 per
        cent.
        """
        if text == "":
            return cls()
        malformed = UsageError(
            f"{text!r} is not a distribution: write per cent and time, from 0 to 100 and "
            "ascending, such as '0:25us,50:85us,100:126us'"
        )
        if not isinstance(text, str):
            raise malformed
        points = []
        for point in text.split(","):
            percent, colon, time = point.partition(":")
            if not colon or not re.fullmatch(r"\s*[0-9]+(\.[0-9]{1,4})?\s*", percent):
                raise malformed
            points.append((float(percent), int(Duration.parse(time))))
        shares, times = zip(*points, strict=True)
        if (shares[0], shares[-1]) != (0, 100) or len(points) > cls.MAX_POINTS:
            raise malformed
        if list(shares) != sorted(set(shares)) or list(times) != sorted(times):
            raise malformed
        return cls(tuple(points))

    @property
    def told(self) -> str:
        """Range and median, in words."""
        least, most = self.points[0][1], self.points[-1][1]
        after = next(n for n, (percent, _) in enumerate(self.points) if percent >= 50)
        (low, start), (high, end) = self.points[after - 1], self.points[after]
        median = start + (end - start) * (50 - low) / (high - low)
        return f"{told_time(least)} to {told_time(most)} (median {told_time(median)})"

    def __str__(self) -> str:
        return ",".join(f"{percent:.7g}:{Duration(ns)}" for percent, ns in self.points)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantiles) and self.points == other.points

    def __hash__(self) -> int:
        return hash(self.points)


def decode(kind: type, value: Any) -> Any:
    """``dec_hook`` for msgspec: parse quantities from text."""
    if issubclass(kind, Quantity | Quantiles):
        try:
            return kind.parse(value)
        except UsageError as error:  # msgspec adds the location to a ValueError only
            raise ValueError(str(error)) from None
    raise NotImplementedError(kind)


def encode(value: Any) -> Any:
    """``enc_hook`` for msgspec: write quantities as text that :func:`decode` reads back."""
    if isinstance(value, Quantity | Quantiles):
        return str(value)
    raise NotImplementedError(type(value))
