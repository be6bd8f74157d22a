"""qjump below other qdiscs: what tests/guest/qdisc/checks/qjump_parents.py measured. A boot of its
own, for these say in the kernel's log that a child holds packets back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bench import marks, qdisc
from tests.guest.checks import EXPECTED_LOG, KERNELS, Guest, measured

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

PEEK = ("drr", "qfq", "ets", "hfsc rt", "tbf")
OTHERS = ("hfsc", "htb", "prio")
SENT = 60 * 21
HELD = re.compile(
    r"(drr_dequeue|qfq_dequeue|ets_qdisc_dequeue|qdisc_peek_len|HFSC|htb): qjump qdisc 6: is non-.*"
)
DOCUMENT = Path(__file__).parents[2] / "docs/qdisc.md"

Cases = dict[str, dict[str, Any]]


@pytest.fixture(scope="module", params=KERNELS)
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return measured(request.param, [["qjump_parents"]], tmp_path_factory.mktemp("parents"))


@pytest.fixture
def cases(guest: Guest) -> Cases:
    found: Cases = guest.values("qjump_parents")["cases"]
    assert tuple(found) == PEEK + OTHERS
    return found


def test_the_kernel_says_that_a_child_holds_packets_back_and_no_more(guest: Guest) -> None:
    log = [line for line in guest.results["log"] if not HELD.fullmatch(line)]
    if guest.kernel != "6.1":
        assert set(log) <= EXPECTED_LOG
        return
    # There qfq says it with a warning and a trace, once.
    (warning,) = (line for line in log if re.search(r"WARNING|BUG|Oops", line))
    assert re.match(r"WARNING: .* at net/sched/sch_qfq.c:\d+ qfq_dequeue", warning)


@pytest.mark.parametrize("parent", PEEK + OTHERS)
def test_as_root_everything_comes_in_order_and_within_its_budget(cases: Cases, parent: str) -> None:
    case = cases[parent]["plain"]
    assert (case["sent"], case["received"], case["ordered"]) == (SENT, SENT, True)
    assert case["most"] == 1
    assert case["child"] == {"packets": SENT, "bytes": SENT * 1042, "drops": 0}
    assert case["parent"] == SENT
    assert case["left"] == [[0, 0, 0], [0, 0, 0]]


def test_a_frame_that_a_busy_parent_has_taken_leaves_after_it_was_charged(cases: Cases) -> None:
    for name, case in cases.items():
        assert case["late"]["received"] == case["late"]["sent"] == SENT, name
        assert case["late"]["most"] == (1 + 1 / 8 if name in PEEK else 1), name


def test_one_frame_that_a_parent_has_taken_goes_before_an_urgent_one(cases: Cases) -> None:
    """drr and ets take none that they do not send at once, unless it is another class's turn."""
    for case in cases.values():
        assert all(case[key]["arrived"] == 100 for key in ("alone", "beside") if key in case)
    alone = {name: case["alone"]["passed"] for name, case in cases.items()}
    beside = {name: case["beside"]["passed"] for name, case in cases.items() if name != "tbf"}
    assert alone == {name: int(name in ("qfq", "hfsc rt", "tbf")) for name in cases}
    assert beside == {name: int(name in PEEK) for name in cases if name != "tbf"}
    for name, case in cases.items():
        if name not in ("tbf", "htb"):  # these hold it back themselves
            assert 0.9 < case["alone"]["wait"] - alone[name] < 1.05, name


def test_other_classes_wait_for_one_that_may_not_send(cases: Cases) -> None:
    """But those of htb and prio."""
    for name, case in cases.items():
        if name in ("htb", "prio"):
            assert 0 < case["blocked"] < 0.01, name
        elif name != "tbf":
            assert case["blocked"] > 1, name
    assert cases["qfq"]["blocked"] > 18, "until all 20 frames have left"


def test_the_document_has_the_table_of_parents(guest: Guest, cases: Cases) -> None:
    if guest.kernel != "6.12":
        pytest.skip("docs/qdisc.md has 6.12's")
    written = marks.read(DOCUMENT, "parents")
    assert written == qdisc.parents_table(cases), "python bench/qdisc.py --write"
