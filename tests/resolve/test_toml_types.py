"""Numbers that are none, wherever they are in a table."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from qjump_mn.errors import UsageError
from qjump_mn.resolve.toml_types import convert


class Table(msgspec.Struct):
    rows: Any = 0.0


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        (math.nan, "rows: nan"),
        ([0.5, -math.inf], r"rows\[1\]: -inf"),
        ({"a": {"b": math.inf}}, r"rows\.a\.b: inf"),
        ([{"a": math.nan}], r"rows\[0\]\.a: nan"),
    ],
)
def test_convert_refuses_numbers_that_are_not_finite(rows: Any, place: str) -> None:
    with pytest.raises(UsageError, match=f"here: {place} is not a finite number"):
        convert({"rows": rows}, Table, "here")


@pytest.mark.parametrize("rows", [1e308, -0.0, "nan", [1.5, {"a": 2}]])
def test_convert_keeps_other_values(rows: Any) -> None:
    assert convert({"rows": rows}, Table, "here").rows == rows
