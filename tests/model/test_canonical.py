"""What counts for a hash of plans, and what does not."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from qjump_mn.model import identity


class Plain(msgspec.Struct):
    number: float = 0
    text: str = ""
    parts: tuple[Any, ...] = ()
    table: dict[str, Any] = {}
    label: str = ""
    NOT_RUN: ClassVar[tuple[str, ...]] = ("label",)


class Tagged(Plain, tag="kind-of-it", tag_field="kind"):
    pass


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        (Plain(number=12.0, label="any"), {"number": 12}),
        (Plain(number=0.5, text="t"), {"number": 0.5, "text": "t"}),
        (Tagged(number=1), {"number": 1, "kind": "kind-of-it"}),
        (Plain(number=1, parts=(Plain(2.0), None)), {"number": 1, "parts": [{"number": 2}, None]}),
        ({1: (1.0, "")}, {"1": [1, ""]}),
        (2.0**53, 2.0**53),
        (-(2.0**53) + 1, -(2**53) + 1),
        (True, True),
        ("text", "text"),
    ],
)
def test_canonical_is_equal_for_equal_runs(value: Any, canonical: Any) -> None:
    found = identity.canonical(value)
    assert (found, repr(found)) == (canonical, repr(canonical))


def test_sha256_ignores_order_of_keys_and_of_fields_left_out() -> None:
    assert identity.sha256({"b": 1, "a": 2.0}) == identity.sha256({"a": 2, "b": 1})
    assert identity.sha256({"a": [1, 2]}) != identity.sha256({"a": [2, 1]})
    # printf '{"a":1}' | sha256sum
    of_one = "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    assert identity.sha256({"a": 1.0}) == of_one
