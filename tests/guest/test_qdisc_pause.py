"""Ethernet flow control of sch_wire in a guest: what wire_pause.py and wire_pause_children.py in tests/guest/qdisc/checks
measured, against the exact values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.guest.checks import EXPECTED_LOG, KERNELS, Guest, measured

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

CHECKS = [["wire_pause"], ["wire_pause_children"]]
ON = "pause 30360 15180"
ALONE = f"{ON} pfc 0"
XOFF = 20 * 1518


@pytest.fixture(scope="module", params=KERNELS)
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return measured(request.param, CHECKS, tmp_path_factory.mktemp("pause"))


def test_the_log_of_the_kernel_is_clean(guest: Guest) -> None:
    assert set(guest.results["log"]) <= EXPECTED_LOG


def paused(guest: Guest, by: str, what: str) -> dict[str, Any]:
    """What a check has of the link's pauses, or of those of one level."""
    values: dict[str, Any] = guest.values("wire_pause")
    found: dict[str, Any] = (values["alone"] if by == "level" else values)[what]
    return found[ON] if (by, what) == ("link", "lossless") else found


BY = pytest.mark.parametrize("by", ["link", "level"])


@BY
def test_with_pauses_nothing_is_dropped_and_each_ingress_gets_a_third(
    guest: Guest, by: str
) -> None:
    case = paused(guest, by, "lossless")
    assert (case["arrived"], case["drops"]) == (3 * 200, 0)
    half = case["half"]
    assert sum(half) == 300 and all(85 <= count <= 115 for count in half), half
    for sent, obeyed in zip(case["pauses"], case["obeyed"], strict=True):
        assert sent["sent"] == obeyed["received"] >= 5 and obeyed["paused_ns"] > 0


def test_without_pauses_the_congested_port_drops(guest: Guest) -> None:
    case = guest.values("wire_pause")["lossless"]["none"]
    assert case["arrived"] + case["drops"] == 3 * 200
    assert case["drops"] > 200
    assert case["pauses"] == case["obeyed"] == [{}] * 3, "tc does not mention what is off"


@BY
def test_accounts_are_exact(guest: Guest, by: str) -> None:
    case = paused(guest, by, "lossless")
    assert case["accounts"] == [0] * 5
    # One frame was on its way.
    assert [port["max_ingress"] for port in case["pauses"]] == [XOFF + 1518] * 3


@BY
def test_a_pause_holds_the_next_frame_and_a_resume_lets_it_go_to_the_ns(
    guest: Guest, by: str
) -> None:
    values = guest.values("wire_pause")
    frame, slow, case = values["frame_ns"], 10 * values["frame_ns"], paused(guest, by, "gap")
    assert (case["arrived"], case["sent"]["sent"], case["obeyed"]["received"]) == (6, 1, 1)
    assert case["sent"]["max_ingress"] == 4 * 1518
    *others, gap = case["gaps"]
    # A stamp may be held up for what the switch does with one packet, 5.6 us: by 4.5 us on 7.3.
    assert all(abs(other - frame) < 7000 for other in others) and len(others) == 4
    # From the fifth frame's start, 4 frames after the first's, which had arrived at the switch (12 bytes less
    # than a frame) by then.
    expected = (frame - 12 * 800) + 3 * slow + values["control_ns"] - 4 * frame
    assert 0 < gap - expected < 15_000, "the switch takes 5.6 us (6.12)"
    assert abs(case["obeyed"]["paused_ns"] - 3 * (slow - frame)) < 2000, "23 ns on 6.12"


def test_control_frames_go_first_and_cut_no_frame_short(guest: Guest) -> None:
    values = guest.values("wire_pause")
    frame, case = values["frame_ns"], values["control"]
    assert (case["arrived"], case["sent"]["sent"], len(case["others"])) == (6, 1, 99)
    # Half a control frame longer: a kernel thread holds one stamp up for 22 us on 7.3.
    longer = [gap for gap in case["others"] if gap > frame + 42 * 800]
    # A stamp may be held up for what the switch does with one packet, 5.6 to 7.8 us; 84 bytes take 67.2.
    assert len(longer) == 2 and all(abs(gap - frame - 84 * 800) < 10_000 for gap in longer), longer
    # The pause waits for a frame, and so does the resume: whole frames and the 84 bytes of the first.
    starts = (case["obeyed"]["paused_ns"] - 84 * 800) / frame
    assert abs(starts - round(starts)) < 0.002 and round(starts) == 27, starts


def test_a_pause_blocks_what_goes_elsewhere_too(guest: Guest) -> None:
    with_, without = (guest.values("wire_pause")["blocking"][key] for key in (ON, "none"))
    assert with_["free"] - with_["congested"] <= 21, "no more than wait at the congested port"
    assert without["free"] > 2 * without["congested"]
    assert with_["free"] < 0.8 * without["free"]


def test_no_sender_stays_paused_when_a_wire_goes(guest: Guest) -> None:
    cases = guest.values("wire_pause")["gone"]
    for name, case in cases.items():
        assert (case["before"]["received"], case["account"]) == (1, 0), name
        assert case["before"]["paused_ns"] > 5_000_000, name
    arrived = {name: case["arrived"] for name, case in cases.items()}
    # A sender whose link goes down, or whose wire is replaced, loses the 25 frames it has not sent; a
    # congested port the four that wait.
    lost = {"replaced": 0, "deleted": 0, "off": 0, "down": 25, "sender": 25, "congested": 4}
    assert arrived == {name: 40 - count for name, count in lost.items()}
    received = {name: case["after"]["received"] for name, case in cases.items()}
    assert received.pop("deleted") == received.pop("off") == 1
    assert min(received.values()) > 1, "paused anew"


def test_no_sender_stays_paused_when_the_last_that_pauses_goes(guest: Guest) -> None:
    for name, case in guest.values("wire_pause")["last"].items():
        assert min(case["paused"]) > 1_000_000, (name, "both are held")
        assert (case["stays_ns"], case["arrived"]) == ([0, 0], 60), name
        sent, obeyed, arrived = case["anew"]
        assert sent["sent"] > 1 and obeyed["received"] > 1 and arrived == 30, (name, "paused anew")


def test_no_level_stays_paused_when_a_wire_goes_or_pauses_others(guest: Guest) -> None:
    cases = guest.values("wire_pause")["alone"]["gone"]
    for name, case in cases.items():
        assert (case["before"]["received"], case["account"], case["arrived"]) == (1, 0, 40), name
        assert case["before"]["paused_ns"] > 5_000_000, name
    received = {name: case["after"]["received"] for name, case in cases.items()}
    assert received.pop("replaced") > 1 and received == {"off": 1, "others": 1}


def test_a_level_that_is_not_paused_goes_past_one_that_is(guest: Guest) -> None:
    values = guest.values("wire_pause")
    link, level = values["urgent"][ON], values["urgent"][ALONE]
    for case in (link, level):
        assert (case["arrived"], case["urgent"], case["drops"]) == (600, list(range(20)), 0)
        assert case["packets"] == 20
        assert case["paused_ns"][0] > 100_000_000
    # One frame: the one that is being sent.
    assert level["paused_ns"][1] == 0 and 0 < level["wait_ns"] <= values["frame_ns"]
    assert link["paused_ns"][1] == link["paused_ns"][0] and link["wait_ns"] > 5 * values["frame_ns"]
    assert level["accounts"][0] > XOFF and level["accounts"][1] == 0


@pytest.mark.parametrize("case", ["urgent", "epoch"])
def test_a_frame_below_a_control_frame_starts_right_behind_it(guest: Guest, case: str) -> None:
    held = guest.values("wire_pause")["held"][case]
    assert held["sent"] == 1
    assert held["late_ns"] is not None, "it never left"
    assert 0 <= held["late_ns"] < 50_000, held


CHILD = pytest.mark.parametrize("child", ["pfifo", "prio", "htb", "netem", "fq_codel", "qjump"])
URGENT = 100
"""The number of a frame of priority 7 that comes to a child while it is held."""


def children(guest: Guest, by: str, child: str, what: str) -> dict[str, Any]:
    values = guest.values("wire_pause_children")["children"]["link" if by == "link" else "pfc 0"]
    found: dict[str, Any] = values[child][what]
    return found


@BY
@CHILD
def test_a_child_starts_no_frame_while_its_wire_is_paused(
    guest: Guest, by: str, child: str
) -> None:
    case = children(guest, by, child, "obeys")
    assert (case["before"], case["passed"]) == ([0, 1], 0)
    assert case["obeyed"]["received"] == case["sent"]["sent"] == case["reckoned"] >= 6
    assert case["sent"]["max_ingress"] == 4 * 1518, "one frame was on its way, and no other"


@BY
@CHILD
def test_pauses_of_a_child_are_those_that_its_frames_tell_of(
    guest: Guest, by: str, child: str
) -> None:
    case = children(guest, by, child, "obeys")
    assert case["inside"] == []
    # One is reckoned from the frame's arrival, and the switch takes 5.6 us.
    assert abs(case["reckoned_ns"] - case["obeyed"]["paused_ns"]) < 15_000 * case["reckoned"]


@BY
@CHILD
def test_what_a_child_held_in_a_pause_leaves_in_its_order(
    guest: Guest, by: str, child: str
) -> None:
    case = children(guest, by, child, "obeys")
    frames = [number for number in case["numbers"] if number != URGENT]
    assert frames == sorted(set(frames)) and len(frames) + case["drops"] == 20
    # It drops after 100 ms in which all wait longer than 5 ms.
    assert case["drops"] == 0 or child == "fq_codel"
    ahead = case["numbers"].index(URGENT)
    # Two leave between a pause and the next, but qjump holds them back itself.
    assert ahead <= 6 if child in ("prio", "qjump") else ahead == len(frames)


@BY
@CHILD
def test_a_child_loses_nothing_below_the_port_that_pauses(
    guest: Guest, by: str, child: str
) -> None:
    case = children(guest, by, child, "sends")
    assert (case["numbers"], case["back"], case["drops"]) == ([*range(20)], [*range(60)], 0)
    assert case["obeyed"]["received"] == case["sent"]["sent"] >= 6
    # The control frame waits for one frame, and one more comes meanwhile.
    assert 4 * 1518 <= case["sent"]["max_ingress"] <= 5 * 1518


@BY
@CHILD
def test_nothing_stays_in_a_child_or_on_an_account(guest: Guest, by: str, child: str) -> None:
    for what in ("obeys", "sends"):
        case = children(guest, by, child, what)
        assert (case["left"], case["sent"]["ingress"]) == ([[0, 0], [0, 0]], 0), what


def test_a_resume_does_not_pass_its_pause_when_the_delay_is_shortened(guest: Guest) -> None:
    case = guest.values("wire_pause")["shortened"]
    assert (case["arrived"], case["sent"], case["obeyed"]["received"]) == (6, 1, 1)
    assert case["obeyed"]["paused_ns"] == 0


def test_what_waits_in_a_child_is_on_no_account(guest: Guest) -> None:
    case = guest.values("wire_pause_children")["uncounted"]
    assert case["arrived"] == 20
    assert (case["sent"]["sent"], case["sent"]["max_ingress"]) == (0, 0)


def test_two_ends_that_pause_each_other_do_not_stop_for_ever(guest: Guest) -> None:
    case = guest.values("wire_pause")["both"]
    assert case["arrived"] == [40, 40]
    for port in case["pauses"]:
        assert port["sent"] > 5 and port["received"] > 5 and port["ingress"] == 0
