"""What can limit a level, scheme by scheme: what docs/qdisc.md says of its table. Three boots, four
minutes together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.guest.checks import COMPARED, EXPECTED_LOG, Guest, measured

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

LOG = EXPECTED_LOG | {
    "htb: prio qdisc 6: is non-work-conserving?",
    "sch_tbf: burst 1042 is lower than device a0 mtu (1514) !",
}
BY_FRAMES = {"prio + tbf, burst of a frame", "prio + fq, paced sockets", "prio + cbs"}
TIMED = "prio + etf, timed by the program"
KEEP = {"qjump", "bpf qdisc", "prio + tbf, burst of a frame"}  # a budget, wherever they stand
HOLD = {"qjump", "prio + tbf", "htb", "bpf times + prio, fq", "bpf qdisc", TIMED, *BY_FRAMES}
EPOCH_NS = 10_000_000


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> list[Guest]:
    return [
        measured(kernel, [check], tmp_path_factory.mktemp("compare"))
        for kernel, check in COMPARED.items()
    ]


@pytest.fixture(scope="module")
def cases(guests: list[Guest]) -> dict[str, dict[str, Any]]:
    every = [guest.values("qdisc_compare")["cases"] for guest in guests]
    return {name: case for cases in every for name, case in cases.items()}


def test_all_are_measured_and_the_kernels_have_nothing_to_say(
    guests: list[Guest], cases: dict[str, dict[str, Any]]
) -> None:
    assert len(cases) == 12
    assert all(set(guest.results["log"]) <= LOG for guest in guests)


def test_only_charging_at_departure_keeps_one_budget(cases: dict[str, dict[str, Any]]) -> None:
    for name, case in cases.items():
        most = max(case["most"], case["below_htb"])
        assert case["sent"] == 1260
        if name in {*BY_FRAMES, TIMED} - KEEP:
            assert 1 <= most <= 9 / 8, (name, case)
        else:
            assert (most == 1) if name in KEEP else (1 < most <= 2), (name, case)
        lost, sent = case["lost"], case["sent"]
        if name == "prio + cake":
            assert 0 < lost < sent / 10, "CoDel drops"
        else:
            assert (lost == 0) if name in HOLD else (lost > sent / 2), (name, case)


def test_who_keeps_a_budget_by_single_frames_sends_a_message_as_slowly(
    cases: dict[str, dict[str, Any]],
) -> None:
    """The last of eight frames goes seven eighths of an epoch after the first."""
    for name in BY_FRAMES:
        assert 7 / 8 < cases[name]["message_ns"] / EPOCH_NS < 0.9, name
    at_once = {name for name, case in cases.items() if 0 < case["message_ns"] < EPOCH_NS / 20}
    assert at_once & KEEP == {"qjump", "bpf qdisc"}


def test_small_frames_show_a_bucket_of_one_frame(cases: dict[str, dict[str, Any]]) -> None:
    """Eight of 260 bytes, with a budget of 1042."""
    assert cases["prio + tbf, burst of a frame"]["quarters"] == pytest.approx(2, abs=0.01)
    kept = {name for name, case in cases.items() if case["quarters"] <= 1}
    assert kept & KEEP == {"qjump", "bpf qdisc"}


def test_a_launch_time_is_for_the_program_to_keep_and_for_nothing_behind_to_miss(
    cases: dict[str, dict[str, Any]],
) -> None:
    case = cases[TIMED]
    assert case["lost_below"] == case["sent"], "below a busy HTB every frame is late, and dropped"
    assert EPOCH_NS < case["message_ns"] < 1.11 * EPOCH_NS, "the next epoch, 1 ms ahead at least"
    assert not case["tcp"]


def test_flaws_of_paced_sockets_cbs_and_departure_times(cases: dict[str, dict[str, Any]]) -> None:
    assert 2 < cases["prio + fq, paced sockets"]["tcp_two"]["16"] < 2.15, "it is for each socket"
    assert min(cases["prio + cbs"]["tcp"].values()) > 20, "it takes a packet for one frame"
    times = cases["bpf times + prio, fq"]
    assert times["most"] == 1 < times["below_htb"], "something behind holds packets back"


def test_fq_of_older_kernels_does_not_hold_the_top_level(
    cases: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    name = "bpf times + prio, fq"
    guest = measured("6.1", [["qdisc_compare", name]], tmp_path)
    older = guest.values("qdisc_compare")["cases"][name]
    assert older["most"] == cases[name]["most"] == cases[name]["most_level7"] == 1
    assert older["most_level7"] == 21 / 8, "all that is sent"


def test_an_urgent_frame_waits_for_one_frame_and_no_longer(guests: list[Guest]) -> None:
    for guest in guests:
        values = guest.values("qdisc_compare")
        waits = [case["wait_ns"] / values["bulk_ns"] for case in values["cases"].values()]
        assert all(0.9 < wait < 1.01 for wait in waits)


def test_tcp_gets_its_budget_where_packets_wait_and_are_split(
    cases: dict[str, dict[str, Any]],
) -> None:
    for name, case in cases.items():
        shares = case.get("tcp_single", case["tcp"]).values()
        # Other images start HTB's second of measuring elsewhere in its bursts: 1.003 to 1.026. fq
        # counts a packet of several frames without the headers of all but one: 1.041 to 1.048.
        least, most = (0.95, 1.05) if name in {*HOLD, "prio + cake"} else (-1, 0.1)
        assert all(least < share < most for share in shares), (name, case)


def test_bpf_does_not_split_packets(cases: dict[str, dict[str, Any]]) -> None:
    """How much of the budget is lost depends on how TCP happens to cut its packets: nothing to 30 %
    in seven runs, and something of one budget or the other."""
    for name in ("bpf times + prio, fq", "bpf qdisc"):
        assert 0.5 < min(cases[name]["tcp"].values()) < 0.98, cases[name]


def test_a_bpf_qdisc_stands_at_the_root_only(cases: dict[str, dict[str, Any]]) -> None:
    words = "Error: BPF qdisc only supported on root or mq.\n"
    assert cases["bpf qdisc"]["refused"] == {"htb": words, "wire": words}
