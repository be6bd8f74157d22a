"""What a plan's figure and sentences may name."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from qjump_mn.analysis.check import check
from qjump_mn.errors import UsageError
from qjump_mn.model.experiment import PanelSpec, SentenceSpec
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import plan

PLAN = plan("fig3a", "smoke", [])


def with_figure(**changes: Any) -> Plan:
    figure = msgspec.structs.replace(PLAN.shown.figure, **changes)
    return msgspec.structs.replace(PLAN, shown=msgspec.structs.replace(PLAN.shown, figure=figure))


def bounded_by(*bounds: str) -> Plan:
    return with_figure(
        panels=[PanelSpec(measures=["ping.p50_ms"], label="L", bound=bound) for bound in bounds]
    )


def test_bound_is_a_constant_or_a_measure_of_an_arm() -> None:
    check(bounded_by("", "frame_ms", "idle.ping.p50_ms"))
    for bounds in (
        ("nosuch",),
        ("frame_ms", "idle.ping.nosuch"),
        ("idle.ping.p50_ms", "x.ping.p50_ms"),
    ):
        with pytest.raises(UsageError, match=f"there is no bound '{re.escape(bounds[-1])}'"):
            check(bounded_by(*bounds))


@pytest.mark.parametrize(
    ("sentences", "problem"),
    [
        ([("It was {value}.", "nosuch")], "sentence 1: of: character 1: 'nosuch' is not known"),
        (
            [("It was {value}.", "rate_mbps"), ("It was.", "rate_mbps")],
            "sentence 2: text has no {value}",
        ),
        ([("It was {value}.", "1 < 2")], "sentence 1: of: character 3: '1 < 2' is a condition"),
    ],
)
def test_sentence_names_a_number_and_where_it_goes(
    sentences: list[tuple[str, str]], problem: str
) -> None:
    made = [SentenceSpec(text=text, of=of) for text, of in sentences]
    with pytest.raises(UsageError) as refused:
        check(with_figure(sentences=made))
    assert problem.partition(": character")[0] in str(refused.value)
