"""Quantities and distributions: what their text says, and what is refused."""

from __future__ import annotations

import msgspec
import pytest

from qjump_mn.errors import UsageError
from qjump_mn.model import units
from qjump_mn.model.units import Duration, Quantiles, Rate, Size, Tolerance


@pytest.mark.parametrize(
    ("quantity", "number", "text"),
    [
        (Rate.parse("10Mbit"), 10**7, "10Mbit"),
        (Rate.parse(" 2.5 Gbit "), 2_500_000_000, "2.5Gbit"),
        (Rate.parse("999kbit"), 999_000, "999kbit"),
        (Rate.parse("1500001bit"), 1_500_001, "1500.001kbit"),
        (Duration.parse("28.8ms"), 28_800_000, "28.8ms"),
        (Duration.parse("1000us"), 10**6, "1ms"),
        (Duration.parse("1.234567s"), 1_234_567_000, "1234.567ms"),
        (Duration.parse("0ns"), 0, "0ns"),
        (Size.parse("1MB"), 10**6, "1MB"),
        (Size.parse("1522B"), 1522, "1.522kB"),
        (Tolerance.parse("100ppm"), 100_000, "100ppm"),
        (Tolerance.parse("5ppb"), 5, "5ppb"),
    ],
)
def test_quantity_is_in_base_units_and_prints_its_largest_unit(
    quantity: units.Quantity, number: int, text: str
) -> None:
    assert (int(quantity), str(quantity)) == (number, text)


@pytest.mark.parametrize(
    ("bps", "text"),
    [
        (10**7, "10 Mb/s"),
        (10**9, "1 Gb/s"),
        (999_900_000, "999.9 Mb/s"),
        (13_333_333, "13.33 Mb/s"),
    ],
)
def test_told_rate_is_in_gigabits_from_one_on(bps: int, text: str) -> None:
    assert units.told_rate(bps) == text


MANY = ",".join(f"{number}:{number}us" for number in range(Quantiles.MAX_POINTS - 1)) + ",100:1ms"


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("", ()),
        ("0:25us, 50.5:85us,100:126us", ((0, 25_000), (50.5, 85_000), (100, 126_000))),
        ("0:1us,99.9999:1us,100:1us", ((0, 1000), (99.9999, 1000), (100, 1000))),
    ],
)
def test_quantiles_ascend_from_0_to_100(text: str, points: tuple[tuple[float, int], ...]) -> None:
    made = Quantiles.parse(text)
    assert made.points == points
    assert made == Quantiles.parse(str(made)) and hash(made) == hash(Quantiles.parse(str(made)))
    assert made != Quantiles(((0, 1),)) and made != points
    assert len(Quantiles.parse(MANY).points) == Quantiles.MAX_POINTS


@pytest.mark.parametrize(
    "text",
    [
        "0:1us",
        "1:1us,100:1us",
        "0:1us,99:1us",
        "0:1us,50:3us,100:2us",
        "0:1us,60:2us,50:2us,100:3us",
        "0:1us,50:2us,50:2us,100:3us",
        "0:1us,100",
        "x:1us,100:1us",
        "0:1us,99.99999:1us,100:1us",
        f"0:1ns,0.5:1ns,{MANY[6:]}",
        "0.0001:1us,100:1us",
        5,
        None,
    ],
)
def test_quantiles_that_are_no_distribution_are_refused(text: object) -> None:
    with pytest.raises(UsageError, match="is not a distribution"):
        Quantiles.parse(text)


def test_codec_reads_what_it_writes_and_nothing_else() -> None:
    for value in (Rate(10**6), Quantiles(((0.0, 1), (100.0, 2)))):
        assert units.decode(type(value), units.encode(value)) == value
    with pytest.raises(msgspec.ValidationError, match="'10' is not a rate: "):
        msgspec.convert(["10"], list[Rate], dec_hook=units.decode)
    with pytest.raises(NotImplementedError):
        units.decode(complex, "1")
    with pytest.raises(NotImplementedError):
        units.encode(1j)
