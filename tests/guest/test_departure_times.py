"""What sch_qjump and qjump-edt, QJump's budgets without a module of ours, let through in any
window, of frames of all sizes, as root and below others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import marks, qdisc
from qjump_mn.guest import Image
from tests.guest.departures import measured

pytestmark = pytest.mark.guest

DOCUMENT = Path(__file__).parents[2] / "docs/qdisc.md"
LEVELS = ("7", "4")


@pytest.fixture(scope="module")
def found(image: Image, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return measured(image, tmp_path_factory.mktemp("departures"))


def test_the_page_has_the_table(found: dict[str, Any]) -> None:
    assert marks.read(DOCUMENT, "edt") == qdisc.edt_table(found), "python bench/qdisc.py --write"


@pytest.fixture(scope="module")
def blast(image: Image, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return measured(image, tmp_path_factory.mktemp("blast"), "qjump_blast")


def test_the_page_has_the_table_of_the_blast(blast: dict[str, Any]) -> None:
    assert marks.read(DOCUMENT, "blast") == qdisc.blast_table(blast), (
        "python bench/qdisc.py --write"
    )


def test_no_level_of_a_blast_exceeds_its_budget_in_an_exact_epoch(blast: dict[str, Any]) -> None:
    assert list(blast["cases"]) == ["0", "25000"]
    for by_name in blast["cases"].values():
        assert len(by_name) == 6
        for name, case in by_name.items():
            assert case["received"] == case["sent"] > 2000, name
            assert max(case["most"]) <= 1, name
            assert min(case["longer"]) > 1, name


def test_nothing_is_lost_and_levels_keep_their_order(found: dict[str, Any]) -> None:
    for name, case in found["cases"].items():
        assert case["received"] == case["sent"] > 500, name
        assert [case[level]["disordered"] for level in LEVELS] == [0, 0], name


def test_where_nothing_is_behind_no_window_of_an_epoch_has_more_than_a_budget(
    found: dict[str, Any],
) -> None:
    for name in ("qjump root", "qjump-edt root", "qjump wire"):
        assert all(0.9 < found["cases"][name][level]["exact"] <= 1 for level in LEVELS), name
    assert found["cases"]["qjump-edt root"]["told"]["levels"][7]["throttled"] > 50


def test_below_a_busy_link_a_budget_leaves_in_an_epoch_less_what_a_frame_waits_at_its_host(
    found: dict[str, Any],
) -> None:
    """Times are given before frames wait for the link; sch_qjump charges when they leave."""
    case = found["cases"]["qjump-edt wire"]
    assert case["7"]["exact"] > 1, "else this says nothing"
    assert all(case[level]["less"] <= 1 for level in LEVELS)
    assert 0.9 < found["cases"]["slack"]["7"]["exact"] <= 1


def test_an_urgent_frame_waits_for_one_frame_as_with_the_qdisc(found: dict[str, Any]) -> None:
    waits = [found["cases"][name]["wait_ns"] for name in ("qjump wire", "qjump-edt wire")]
    assert all(0.99 < wait / found["frame_ns"] < 1.01 for wait in waits), waits


def test_what_has_no_room_and_what_costs_too_much_is_dropped_and_counted(
    found: dict[str, Any],
) -> None:
    """One leaves at once, ten wait."""
    full = found["full"]
    assert (full["taken"], full["arrived"], full["packets"]) == (11, 11, 11)
    assert (full["drops"], full["oversize"]) == (20, 1)


def test_what_cannot_be_is_refused_in_a_sentence(found: dict[str, Any]) -> None:
    assert found["refused"] == {
        "none": "qjump-edt: qjump-edt is not attached to a0\n",
        "epoch": "qjump-edt: give an epoch and at least one level with a budget\n",
        "small": "qjump-edt: level 7: the smallest frame costs 84 bytes, more than its budget of 70\n",
        "device": "qjump-edt: there is no device nobody\n",
    }
