"""Panels that show an arm relative to another: each value of a sweep to the other's at the same
value, in figures and in the report's tables."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.figure
import numpy as np
import pytest

from qjump_mn import resolve
from qjump_mn.model.plan import Plan
from qjump_mn.report import ratios
from qjump_mn.report.figures import variations
from qjump_mn.results import panels
from qjump_mn.results.outcome import ArmSummary, Spread
from tests.support import synthetic


@pytest.fixture(scope="module")
def plan() -> Plan:
    return resolve.plan("hadoop-sensitivity", "smoke", [], replicates=2)


def summaries(plan: Plan, runtimes: Mapping[str, tuple[float, float]]) -> dict[str, ArmSummary]:
    """Arms with these runtimes of seeds 1 and 2, by name."""
    labels = {arm.name: arm.label for arm in plan.arms}
    return {
        name: ArmSummary(
            name=name,
            label=labels[name],
            scheme="",
            planned=2,
            done=2,
            flows={},
            measures={"job": {"runtime_s": Spread.of(dict(enumerate(values, start=1)))}},
        )
        for name, values in runtimes.items()
    }


RUNTIMES = {
    "droptail_as_chosen": (2.0, 4.0),
    "droptail_links_of_20_us": (5.0, 0.0),
    "ecn_ack_as_chosen": (1.0, 3.0),
    "ecn_ack_links_of_20_us": (4.0, 7.0),
    "ecn_default_as_chosen": (3.0, 6.0),
}


def test_a_series_is_relative_to_the_other_at_the_same_value(plan: Plan) -> None:
    arms, panel = summaries(plan, RUNTIMES), plan.shown.figure.panels[0]

    def ratio(arm: str) -> Spread | None:
        return panels.value(plan, panel, "job.runtime_s", arm, arms)

    chosen, far = ratio("ecn_ack_as_chosen"), ratio("ecn_ack_links_of_20_us")
    assert chosen is not None and chosen.values == (0.5, 0.75)
    assert far is not None and (far.seeds, far.values) == ((1,), (0.8,)), "there is no ratio to 0"
    assert ratio("ecn_ack_first_window_of_10") is None
    assert panels.value(plan, panel, "job.latency_ms", "ecn_ack_as_chosen", arms) is None


def test_an_arm_that_is_no_series_is_divided_by_at_every_value() -> None:
    red = resolve.plan("hadoop", "smoke", [])
    arms = summaries(
        red, {"droptail": (2.0, 2.0), "ecn_ack_100us": (1.0, 1.0), "ecn_ack_500us": (3.0, 3.0)}
    )
    found = [
        panels.value(red, red.shown.figure.panels[0], "job.runtime_s", name, arms)
        for name in ("ecn_ack_100us", "ecn_ack_500us")
    ]
    assert [spread.median for spread in found if spread] == [0.5, 1.5]


def test_the_report_has_a_row_for_each_value_with_data(plan: Plan) -> None:
    arms = tuple(summaries(plan, RUNTIMES).values())
    (runtime,) = ratios.tables(plan, synthetic.outcome(arms))
    assert runtime.title.endswith("relative to drop tail")
    assert runtime.heads == ("TCP-ECN, RED", "TCP-ECN, ACK+SYN")
    assert runtime.rows == (
        ("as chosen", "1.5", "0.625 [0.5..0.75]"),
        ("links of 20 us", "–", "0.8"),
    )


def test_the_figure_has_a_row_for_each_value(plan: Plan) -> None:
    rows = {
        arm.x or 0.0: row
        for row, arm in enumerate(arm for arm in plan.arms if arm.series == "ecn_ack")
    }
    axis = matplotlib.figure.Figure().add_subplot()
    variations._panel(axis, plan, plan.shown.figure.panels[0], summaries(plan, RUNTIMES), rows)
    lines = {str(line.get_label()): line for line in axis.get_lines()}
    drawn = {
        label: np.column_stack(line.get_data()).tolist()
        for label, line in lines.items()
        if not label.startswith("_")
    }
    assert list(drawn) == ["TCP-ECN, RED", "TCP-ECN, ACK+SYN"], "of DCTCP there is nothing"
    places = {panels.point(arm): rows[arm.x or 0.0] for arm in plan.arms if arm.series == "ecn_ack"}
    assert [x for x, _ in drawn["TCP-ECN, ACK+SYN"]] == [0.625, 0.8]
    assert [y for _, y in drawn["TCP-ECN, ACK+SYN"]] == [
        places["as chosen"],
        places["links of 20 us"],
    ], "the middle one of three is on the row"
