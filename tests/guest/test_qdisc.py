"""sch_qjump, sch_qjump2015 and sch_wire in a guest, on Linux 6.12, 6.1 and 7.x: what the checks of tests/guest/qdisc/checks
measured, against the exact values.

One boot per kernel runs all of them (about 60 s); the kernels that are not the guest's own, every night. The sweep (more budgets, rates, parents) is another boot
of a minute and a half per kernel, for `pytest -m slow`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bench import marks, qdisc
from tests.guest.checks import EXPECTED_LOG, KERNELS, OTHERS_NIGHTLY, Guest, measured

pytestmark = pytest.mark.guest

_LINES = """wire_serialisation|wire_rate 10000000:1514 7777777:577|wire_priority|wire_limit|wire_delay
wire_orphan|wire_stamps|wire_jitter|wire_gso|wire_tap|wire_random|wire_child
qjump_priority|qjump_refusals|qjump_window root:7 wire:3 htb:0|qjump_tcp 1 16|qjump_change
qjump_slack|qjump_churn|qjump_2015|qjump_rules2015|qjump_netlink|qjump_options"""
QUICK = [line.split() for line in _LINES.replace("\n", "|").split("|")]
"""The checks of one boot, with their arguments."""

DOCUMENT = Path(__file__).parents[2] / "docs/qdisc.md"
SWEEP = [["wire_rate"], ["qjump_window"], ["qjump_tcp"]]
THREAD_NS = 25_000
"""What a kernel thread may hold up any single stamp for: 19.9 us on 7.3. Which stamp that is changes with
whatever ran before."""


@pytest.fixture(scope="module", params=OTHERS_NIGHTLY)
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return measured(request.param, QUICK, tmp_path_factory.mktemp("qdisc"))


@pytest.fixture(scope="module", params=KERNELS)
def sweep(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    if "slow" not in request.config.option.markexpr:
        pytest.skip("the sweep is for `pytest -m slow`")
    return measured(request.param, SWEEP, tmp_path_factory.mktemp("sweep"))


def test_modules_load_and_unload_and_the_kernel_says_nothing(guest: Guest) -> None:
    assert guest.results["release"].startswith(f"{guest.kernel}.")
    assert guest.results["load"] == ["", ["sch_qjump", "sch_qjump2015", "sch_wire"]]
    assert guest.results["unload"] == ["", []]
    assert guest.values("qjump_churn")["removed"] is True, "after use too"
    assert guest.results["others"] == "", "every other module of the image"
    assert set(guest.results["log"]) <= EXPECTED_LOG


def test_serialisation_is_exact(guest: Guest) -> None:
    cases = guest.values("wire_serialisation")["cases"]
    assert len(cases) == 4 * 6
    for case in cases:
        assert case["expected_ns"] == (max(64, case["size"] + 4) + 20) * 8e9 / case["rate_bps"]
        assert case["gaps"] == 100
        assert abs(case["mean_ns"] - case["expected_ns"]) <= 5, case
        # Timers are late by this or that instruction, and nothing on the average: 15 ns on 7.3; on
        # 6.12 by turns 0 and 126, if a frame takes no whole number of ns.
        assert abs(case["median_ns"] - case["expected_ns"]) <= 130, case
        # A few of a hundred stamps may meet a tick (2.3 us on 7.3), or a kernel thread.
        assert case["off_ns"][96] <= 2500, case
        assert case["off_ns"][100] <= THREAD_NS, case


def test_a_lone_frame_takes_its_own_time_and_a_constant(guest: Guest) -> None:
    rest: dict[int, list[float]] = {}
    for case in guest.values("wire_serialisation")["cases"]:
        if case["expected_ns"] > 10_000:  # else it has arrived before the system call ends
            rest.setdefault(case["size"], []).append(case["lone_rest_ns"])
    assert set(rest) == {42, 60, 64, 300, 1000, 1514}
    for size, values in rest.items():
        assert min(values) >= 5000 and max(values) <= 15_000, (size, values)
        assert max(values) - min(values) <= 1000, (size, values)


def check_rate(guest: Guest, rates: set[str]) -> None:
    measured_rates = guest.values("wire_rate")["rates"]
    assert set(measured_rates) == rates
    for rate, case in measured_rates.items():
        assert case["seconds"] >= 10
        assert case["drops"] == 0
        assert case["frames"] >= 10 * int(rate) / ((case["size"] + 24) * 8)
        assert abs(case["ppm"]) < 100, "0.01 %"


def test_the_rate_over_ten_seconds(guest: Guest) -> None:
    check_rate(guest, {"10000000", "7777777"})


def check_longest_waits(longest_ns: list[int], bulk_ns: int) -> None:
    third, _, most = longest_ns
    assert 0.9 * bulk_ns <= third <= bulk_ns + THREAD_NS
    # Between the sender's look at the clock and its call a kernel thread may run, 0.24 ms on 6.1; a second
    # frame before the urgent one is 1.23 ms.
    assert most <= 1.5 * bulk_ns


@pytest.mark.parametrize("classify", ["pcp", "priority"])
def test_strict_priority_waits_for_the_frame_being_sent_and_no_longer(
    guest: Guest, classify: str
) -> None:
    values = guest.values("wire_priority")
    assert values["bulk_ns"] == (1514 + 24) * 8 * 100
    case = values["classify"][classify]
    assert case["sent"] == case["arrived"] == 2000
    check_longest_waits(case["longest_waits_ns"], values["bulk_ns"])


def test_a_fifo_makes_an_urgent_frame_wait_for_the_queue(guest: Guest) -> None:
    values = guest.values("wire_priority")
    case = values["classify"]["fifo"]
    assert case["median_wait_ns"] > 5 * values["bulk_ns"]
    assert 0 < case["arrived"] < case["sent"]


def test_tail_drop_at_the_limit_of_each_level(guest: Guest) -> None:
    values = guest.values("wire_limit")
    assert (values["delivered"], values["drops"], values["other"]) == (50, 250, 49)
    assert (values["backlog"], values["qlen"]) == (0, 0)
    on_wire = 1000 + 4 + 20
    for level, packets, drops in ((0, 50, 250), (5, 49, 0)):
        counts = values[f"level{level}"]
        # The last that came in waited for 49 others, to within the time that the sender took.
        assert 0.9 * 49 * on_wire * 8000 < counts.pop("max_wait_ns") <= 98 * on_wire * 8000
        assert counts.pop("max_late_ns") < THREAD_NS
        assert counts == {
            "level": level, "packets": packets, "bytes": packets * on_wire, "drops": drops,
            "qlen": 0, "backlog": 0, "max_backlog": 49 * 1004,
        }  # fmt: skip
    assert values["options"] == {
        "rate_bps": 1_000_000, "limit": 50_000, "classify": "priority", "overhead": 0, "delay_ns": 0, "orphan": True,
    }  # fmt: skip


@pytest.mark.parametrize(("by", "gap_ns"), [("delay", 50), ("netem", 2000)])
def test_propagation_delays_and_keeps_several_frames_in_flight(
    guest: Guest, by: str, gap_ns: int
) -> None:
    case = guest.values("wire_delay")[by]
    assert abs(case["first_ns"] - 5_000_000) < THREAD_NS
    assert abs(case["gap_ns"] - 819_200) < gap_ns


def test_a_shorter_delay_does_not_reorder(guest: Guest) -> None:
    assert guest.values("wire_delay")["ordered"] is True


@pytest.mark.parametrize("slack", ["0us", "10us"])
@pytest.mark.parametrize("traffic", ["alone", "saturated"])
def test_a_budget_of_a_child_holds_at_the_wire_with_a_slack(
    guest: Guest, slack: str, traffic: str
) -> None:
    case = guest.values("wire_child")["windows"][slack][traffic]
    assert (case["frames"], case["overlap_ns"] < 1) == (500, True)
    assert case["most"] == 1 or (slack, traffic) == ("0us", "saturated")
    assert case["closest_ns"] >= 100_000 - (10_000 if slack == "0us" else 0), "a timer that is late"


def test_a_child_gets_the_whole_rate(guest: Guest) -> None:
    assert all(abs(ppm) < 1 for ppm in guest.values("wire_child")["rate"].values())


def test_jitter_is_drawn_from_its_quantiles(guest: Guest) -> None:
    values = guest.values("wire_jitter")
    took, drawn = values["took_ns"], values["drawn_ns"]
    assert len(set(drawn)) == 200 and min(drawn) >= 1_000_000 and max(drawn) <= 8_000_000
    assert sum(ns < 2_000_000 for ns in drawn) in range(80, 121)
    off = sorted(abs(one - other) for one, other in zip(took, drawn, strict=True))
    assert off[180] <= 5_000 and off[-1] <= 2 * THREAD_NS


def test_jitter_keeps_the_order_of_a_flow_and_of_no_more(guest: Guest) -> None:
    values = guest.values("wire_jitter")
    assert values["kept"] == [list(range(40))] * 3
    assert 10 < values["overtook"] < 110
    assert values["plain"] and values["emptied"] == 0
    # UDP of a pair of hosts stays in order whatever the ports, as with a card's receive queues:
    # ptpd drops a Sync that its Follow_Up has overtaken.
    assert values["overtook_udp"] == 0


def test_a_gso_packet_is_split_into_its_frames(guest: Guest) -> None:
    values = guest.values("wire_gso")
    assert values["handed_over"] == {"pfifo": [28_042], "wire": [1442] * 20}
    assert values["received"] == [1400] * 20
    assert max(abs(gap - 1) for gap in values["gaps"]) < 0.05


def test_gso_packets_let_urgent_frames_pass_and_are_dropped_by_the_frame(guest: Guest) -> None:
    values = guest.values("wire_gso")
    assert values["urgent"] == 1
    # The first is on the wire before the second comes: five wait.
    assert values["full"] == {"received": 6, "drops": 14} and values["child"] == 20
    assert values["left"] == [[0, 0], [0, 0]]


def test_the_same_seed_jitters_the_same(guest: Guest) -> None:
    # A thread may come between the clock and the frame, of one in nine on 6.1; another draw would be
    # milliseconds away.
    for off in guest.values("wire_jitter")["off_ns"]:
        off.sort()
        assert len(off) == 120 and off[100] <= THREAD_NS and off[-1] <= 10 * THREAD_NS, off[100:]


def test_frames_start_and_are_dropped_as_arrivals_alone_say(guest: Guest) -> None:
    for case in guest.values("wire_random")["cases"]:
        assert (case["wrong"], case["early"], case["late"]) == (0, 0, 0), case
        assert case["dropped"] == case["drops"] > 50 and case["waited"] > 500, case
        assert case["max_wait_ns"][0] == case["max_wait_ns"][1], case


def test_the_tap_tells_of_every_frame_of_a_level(guest: Guest) -> None:
    values = guest.values("wire_tap")
    assert values["lines"] == 10 and values["lengths"] == [104] * 10
    waits = []
    for arrival, start, handover, received in values["frames"]:
        assert handover - start == (8 + 104) * 800
        assert 0 <= received - handover < THREAD_NS
        waits.append(start - arrival)
        assert 1538 * 800 - 100_000 < waits[-1] < 1538 * 800
    assert values["level7"]["max_wait_ns"] == max(waits)
    assert 0 < values["level7"]["max_late_ns"] < THREAD_NS


def test_the_tap_tells_of_drops_queues_and_the_first_bytes(guest: Guest) -> None:
    values = guest.values("wire_tap")
    told, level = values["told"], values["level0"]
    frames, drops, queues = (told[f"wire_{name}"] for name in ("frame", "drop", "queue"))
    assert len(frames) == level["packets"] and len(drops) == level["drops"] >= 20
    assert len(frames) + len(drops) == 50
    for words in (*frames, *drops):
        head = bytes.fromhex(words[-1])
        assert len(head) == 96 and head[12:14] == bytes.fromhex("88b5") and words[-2] == "-1"
    numbers = sorted(int(words[-1][28:36], 16) for words in (*frames, *drops))
    assert numbers == list(range(50)), "the number that the sender put in"
    assert {tuple(words[3:5]) for words in drops} == {("0", "0")}
    # A burst of 1 ms fills the queue; a frame takes 1.2 ms, so there is one fewer in each window.
    peaks, then, counted = (
        [int(words[column].split(",")[0], 16) for words in queues] for column in (1, 2, 3)
    )
    assert max(peaks) == level["max_backlog"] == 4 * 1518
    assert all(
        peak >= after and peak % 1518 == after % 1518 == 0
        for peak, after in zip(peaks, then, strict=True)
    )
    assert then.count(0) >= 4, "each burst leaves; the last one is not told of"
    assert counted == sorted(counted) and counted[-1] == level["drops"]


def test_orphan_takes_frames_off_the_senders_account(guest: Guest) -> None:
    values = guest.values("wire_orphan")
    with_, without = values["orphan"], values["noorphan"]
    assert with_["slow_drops"] > 0
    assert 152_200 - 1518 < with_["slow_max_backlog"] <= 152_200
    assert without["slow_drops"] == 0
    assert 0 < without["slow_max_backlog"] < 60_000
    assert 0 < without["accepted"] < with_["accepted"] / 2
    # What the wire has sent in 0.3 s, and what waits: the time that a frame takes does not count.
    assert 0.3 / (1538 * 8 / 10e6) <= values["long"] <= 0.3 / (1538 * 8 / 10e6) + 60


@pytest.mark.parametrize("mode", ["orphan", "noorphan"])
def test_a_frame_is_stamped_once_and_when_it_starts(guest: Guest, mode: str) -> None:
    case = guest.values("wire_stamps")["modes"][mode]
    assert case["numbers"] == [0, 1, 2, 3, 4]
    assert 3000 < sorted(case["after_send_ns"])[1] < 15_000, "the system call: 7.5 us on 6.12"
    # 6.12: 4.4 us from the device to the receiver; one in three may meet a kernel thread.
    wires_ns = (8 + 1004) * 8 * (100 + 10)
    assert 0 < sorted(case["on_wires_ns"])[1] - wires_ns < 10_000
    # 6.12: 963 ns, for the second is stamped by a timer.
    assert abs(case["gap_ns"] - (1518 + 20) * 8 * 100) < THREAD_NS


@pytest.mark.parametrize("mode", ["orphan", "noorphan"])
def test_a_frame_that_overtakes_is_stamped_once_too(guest: Guest, mode: str) -> None:
    case = guest.values("wire_stamps")["modes"][mode]["jitter"]
    assert case["overtook"] > 5
    assert case["numbers"] == [list(range(20))] * 2


def check_windows(guest: Guest, count: int) -> None:
    values = guest.values("qjump_window")
    budget = values["budget"]
    assert budget == 8 * 1042
    assert len(values["cases"]) == count
    for case in values["cases"]:
        assert case["most"] == budget <= case["exact"], case
        assert case["slack"] == "0us" or case["exact"] == budget, case
        assert case["sent"] == case["received"] == 60 * 21
        assert case["stats"]["drops"] == 0, case


def test_no_window_holds_more_than_a_budget(guest: Guest) -> None:
    check_windows(guest, 6)


def test_with_a_slack_no_exact_epoch_holds_more_than_a_budget(guest: Guest) -> None:
    """Whether a frame is late enough to be seen without one changes with whatever ran before."""
    cases = guest.values("qjump_slack")["cases"]
    assert len(cases) == 6
    for case in cases:
        assert case["received"] == case["sent"] and case["drops"] == 0, case
        # A budget every epoch and slack.
        period = case["epoch_ns"] + case["slack_ns"]
        assert 0.98 <= case["share"] * period / case["epoch_ns"] <= 1
        assert case["most"] == 1 if case["slack_ns"] else 1 <= case["most"] <= 2, case


def test_a_burst_of_another_level_makes_a_frame_late_and_a_slack_repairs_that(guest: Guest) -> None:
    values = guest.values("qjump_slack")
    for case in values["cases"]:
        assert case["others"] == values["bursts"] * 7, "a frame each"
        behind = case["behind"]
        if case["slack_ns"]:
            assert (behind["most"], case["excess"]) == (1, 0) and behind["late_ns"] < 0, case
        else:
            # 3.6 to 3.8 us; the other seven are handed over in 4.6 us (6.12).
            assert (behind["most"], case["excess"]) == (2, values["budget"]), case
            assert 2000 < behind["late_ns"] < 25_000, case


def test_the_document_has_the_table_of_slack(guest: Guest) -> None:
    if guest.kernel != "6.12":
        pytest.skip("docs/qdisc.md has 6.12's")
    written = marks.read(DOCUMENT, "slack")
    found = qdisc.slack_table(guest.values("qjump_slack")["cases"])

    def rows(table: str) -> list[tuple[str, ...]]:
        cells = r"^\| (\d+ us) \| (none|25 us) \| (\S+) B \| (\S+ B) \| (\d+ bytes) \| (\S+)% \|$"
        return re.findall(cells, table, re.MULTILINE)

    assert len(rows(written)) == len(rows(found)) == 6
    for told, measured_now in zip(rows(written), rows(found), strict=True):
        assert told[:2] == measured_now[:2] and told[3:5] == measured_now[3:5]
        # Whether a frame is late without a slack, and where ticks fall, changes with what ran before.
        assert told[1] == "none" or told[2] == measured_now[2] == "1"
        shares = float(told[5]), float(measured_now[5])
        assert abs(shares[0] - shares[1]) <= 1, "python bench/qdisc.py --write"


def check_tcp(guest: Guest, count: int) -> None:
    cases = guest.values("qjump_tcp")["cases"]
    assert len(cases) == count
    assert {case["offloads"] for case in cases} == {"off", "on"}
    for case in cases:
        assert 0.95 <= case["share"] <= 1.0025, case
        assert case["stats"]["oversize"] == 0


def test_tcp_gets_its_budget(guest: Guest) -> None:
    check_tcp(guest, 4)


def test_eight_backlogged_levels_leave_by_priority_and_within_budgets(guest: Guest) -> None:
    values = guest.values("qjump_priority")
    assert values["arrived"] == values["sent"] == 399
    check_longest_waits(values["longest_waits_ns"], values["bulk_ns"])
    # Level 0 found the wire idle; the others stand by priority, two frames each.
    assert values["order"] == [0, 7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0]
    most = 3 * (values["duration"] / values["epoch"] + 1)
    for level in "456":
        assert 0.9 * most <= values["packets"][level] <= most
    assert all(values["packets"][level] >= 2 for level in "123")
    assert values["packets"]["7"] == 2 + 1 + 399


def test_every_refusal_has_a_sentence_and_changes_nothing(guest: Guest) -> None:
    values = guest.values("qjump_refusals")
    assert len(values["refused"]) > 60
    for command, answer in values["refused"].items():
        first = answer["words"].splitlines()[0]
        assert answer["code"] in (1, 2), command
        if answer["code"] == 2:  # the kernel's own sentence
            assert first.startswith("Error: ") and first.endswith("."), (command, first)
        assert len(first.split()) > 3, (command, first)
        assert not re.search("Unknown error|RTNETLINK", answer["words"]), command
    assert values["unchanged"] and all(values["unchanged"].values())
    assert values["leftover"] is False


def test_odd_budgets_are_a_warning(guest: Guest) -> None:
    """One below a frame, one that no priority reaches, factors that are upside down, and a limit
    below the segments of a packet."""
    odd = guest.values("qjump_refusals")["odd"]
    assert len(odd) == 6
    for words, answer in odd.items():
        assert answer["code"] == 0 and answer["told"], (words, answer)
        assert answer["words"].startswith("Warning:") and answer["words"].count("Warning:") == 1


def test_a_limit_with_room_for_a_gso_packet_is_no_warning(guest: Guest) -> None:
    even = guest.values("qjump_refusals")["even"]
    assert len(even) == 3
    assert all(answer == {"code": 0, "words": ""} for answer in even.values()), even


def test_qjump_is_refused_below_multi_queue_roots(guest: Guest) -> None:
    refused = guest.values("qjump_refusals")["refused"]
    roots = [command for command in refused if command.endswith(("(mq)", "(multiq)"))]
    assert len(roots) == 6
    for command in roots:
        assert "below a multi-queue qdisc" in refused[command]["words"], command


def test_a_smaller_budget_drops_what_it_can_never_let_go(guest: Guest) -> None:
    before, after = (guest.values("qjump_churn")["shrunk"][when] for when in ("before", "after"))
    assert before["qlen"] == 58
    assert (after["oversize"], after["qlen"], after["backlog"]) == (58, 0, 0)


def test_a_limit_taken_away_lets_everything_go(guest: Guest) -> None:
    assert guest.values("qjump_churn")["raised"] == {"held": 60, "left": 60}


@pytest.mark.parametrize("parent", ["htb", "prio", "wire"])
def test_deleting_and_replacing_with_a_backlog_clears_the_parents_account(
    guest: Guest, parent: str
) -> None:
    states = guest.values("qjump_churn")["parents"][parent]
    assert len(states) == 3
    for state in states:
        assert state == {"qlen": [58, 0], "backlog": [58 * 1042, 0]}


def test_a_change_of_the_epoch_gives_no_fresh_budget(guest: Guest) -> None:
    assert guest.values("qjump_change")["longer"] == {"passed": 40, "most": 1}


@pytest.mark.parametrize("which", ["plain", "slack"])
def test_a_much_shorter_epoch_holds_from_the_change_on(guest: Guest, which: str) -> None:
    assert guest.values("qjump_change")["shortened"][which] == {"passed": 12, "most": 1}


def test_nobody_has_a_fresh_budget_within_an_epoch(guest: Guest) -> None:
    """Also where the device went down and up, or the level was unlimited."""
    fresh = guest.values("qjump_change")["fresh"]
    assert len(fresh) == 5 and all(passed == [2, 0] for passed in fresh.values()), fresh


def test_a_gso_packet_that_an_unlimited_level_held_is_split_for_a_budget(guest: Guest) -> None:
    split = guest.values("qjump_change")["split"]
    assert split["after"]["qlen"] + split["after"]["packets"] == 10
    assert [split["gone"][name] for name in ("packets", "oversize", "drops")] == [10, 0, 0]
    assert split["parents"][1] == 0 < split["parents"][0]


def test_an_urgent_frame_passes_between_the_segments_of_an_unlimited_level(guest: Guest) -> None:
    # Of the 40, five have left; a packet that leaves as one takes the time of all.
    assert 0 < guest.values("qjump_change")["between"] <= 2


def test_the_limit_counts_segments(guest: Guest) -> None:
    found = guest.values("qjump_change")["segments"]
    assert (found["packets"], found["qlen"], found["backlog"]) == (2, 45, 45 * 1042)
    assert (found["drops"], found["oversize"]) == (2, 0)


def test_a_gso_packet_with_more_segments_than_the_limit_counts_as_oversize(guest: Guest) -> None:
    found = guest.values("qjump_change")["never"]
    assert (found["packets"], found["qlen"]) == (0, 0)
    assert (found["drops"], found["oversize"]) == (1, 1)


def test_the_parameters_of_2015_fill_in_what_has_no_epoch(guest: Guest) -> None:
    values = guest.values("qjump_2015")
    # p7rate comes first, as pXrate is for priority 7 - X; p3rate to p6rate have their defaults.
    published = [10 * 1550, 0, 0, 1000 * 1550, 100 * 1550, 3 * 1550, 0, 1550]
    assert values["bare"] == {"epoch_ns": 2_000_000, "budgets": published}
    assert values["told"] == {"epoch_ns": 5_000_000, "budgets": [0, 0, 0, 0, 0, 0, 3100, 0]}


def test_a_change_of_qjump2015_replaces_all_budgets_or_none(guest: Guest) -> None:
    epoch, level = guest.values("qjump_2015")["changed"]
    assert epoch == {"epoch_ns": 20_000_000, "budgets": [0, 0, 0, 0, 0, 0, 3100, 0]}
    assert level == {"epoch_ns": 20_000_000, "budgets": [0, 0, (1 << 32) - 1, 0, 0, 0, 0, 0]}


def test_the_first_epoch_of_2015_starts_with_the_qdisc(guest: Guest) -> None:
    assert guest.values("qjump_rules2015")["first"] == [3, 3]


def test_two_budgets_of_2015_meet_at_the_edge_of_a_lazy_epoch(guest: Guest) -> None:
    values = guest.values("qjump_rules2015")
    edge = values["edge"]
    assert edge["passed"] == [0, 3, 3]
    assert edge["most"] == 2 * values["budget"]
    assert [edge["stats"][name] for name in ("packets", "drops", "oversize")] == [6, 5, 1]


def test_priorities_above_the_top_level_belong_to_it_in_2015_only(guest: Guest) -> None:
    clamped = guest.values("qjump_rules2015")["clamped"]
    assert clamped["qjump2015"] == {"0": 0, "7": 7, "8": 7, "9": 7, "15": 7, "16": 7, "1000": 7}
    assert clamped["qjump"] == {"0": 0, "7": 7, "8": 0, "9": 0, "15": 0, "16": 0, "1000": 0}


def test_a_budget_of_0_lets_nothing_pass_in_2015(guest: Guest) -> None:
    zero = guest.values("qjump_rules2015")["zero"]
    assert (zero["passed"], zero["stats"]["packets"], zero["stats"]["drops"]) == (0, 0, 5)


def test_gso_packets_are_charged_whole_in_2015_and_split_otherwise(guest: Guest) -> None:
    gso, keys = guest.values("qjump_rules2015")["gso"], ("packets", "bytes", "drops", "oversize")
    counts = {name: [case[key] for key in keys] for name, case in gso.items()}
    assert counts == {
        "qjump2015 10420": [1, 10420, 0, 0],
        "qjump2015 10419": [0, 0, 1, 1],
        "qjump 10420": [10, 10420, 0, 0],
        "qjump 10419": [9, 9378, 0, 0],
    }


def test_several_budgets_of_2015_leave_at_once_behind_a_busy_htb(guest: Guest) -> None:
    values = guest.values("qjump_rules2015")
    old, delay = values["htb"]["qjump2015"], values["htb"]["qjump"]
    assert old["passed"] == old["received"] == 20 * 3
    assert old["most"] >= 3 * values["budget"]
    assert delay["passed"] == delay["received"] == 20 * 5
    assert delay["most"] == values["budget"]


def test_messages_that_tc_never_sends_are_refused_with_a_sentence(guest: Guest) -> None:
    values = guest.values("qjump_netlink")
    assert len(values["answers"]) == 19
    for name, answer in values["answers"].items():
        assert answer["error"] in ("EINVAL", "ERANGE"), (name, answer)
        assert len(answer["words"].split()) > 2, (name, answer)
    # These are of several attributes, or of one that is absent.
    without = {name for name, answer in values["answers"].items() if not answer["points"]}
    assert without == {"budget of 63", "budget without an epoch"}
    assert values["leftover"] is False
    assert values["good"]["error"] == 0


def test_what_tc_shows_it_takes_back(guest: Guest) -> None:
    values = guest.values("qjump_options")
    assert set(values["versions"]) == {"guest", *(["bookworm"] if guest.kernel == "6.1" else [])}
    assert len(set(values["versions"].values())) == len(values["versions"])
    for cases in values["roundtrip"].values():
        assert cases == values["roundtrip"]["guest"] and len(cases) == 5, "every tc shows the same"
        for case, (before, after, words) in cases.items():
            assert before == after, (case, words)


def test_options_are_what_was_given(guest: Guest) -> None:
    cases = list(guest.values("qjump_options")["roundtrip"]["guest"].values())
    course, limits, maps, largest, bare_limit = (before for before, _, _ in cases)
    assert course["budgets"] == [300 * 1550, 0, 0, 0, 30 * 1550, 0, 0, 1550]
    assert (course["epoch_ns"], course["slack_ns"], course["limits"]) == (28_800_000, 0, [1000] * 8)
    assert limits["epoch_ns"] == 1_234_567_891
    assert limits["limits"] == [1000, 1000, 99_999, 20, 1000, 1000, 1000, 10]
    assert (maps["slack_ns"], maps["overhead"], maps["mpu"]) == (25_000, 28, 84)
    assert maps["priomap"] == [7, 6, 5, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7]
    assert (largest["epoch_ns"], largest["slack_ns"]) == (3600 * 10**9, 3600 * 10**9)
    assert largest["budgets"] == [0] * 7 + [(1 << 31) - 1]
    assert (bare_limit["epoch_ns"], bare_limit["limits"]) == (0, [128] * 8)


def test_factors_are_rounded_to_the_nearest_byte(guest: Guest) -> None:
    # 2.5 * 1001 = 2502.5; a factor of 0 is unlimited.
    assert guest.values("qjump_options")["factors"] == [2503, 0, 1001, 77, 0, 0, 0, 0]


def test_a_change_changes_what_it_names(guest: Guest) -> None:
    changes = guest.values("qjump_options")["changes"]
    state: dict[str, Any] = {
        "epoch_ns": 10_000_000, "slack_ns": 0, "overhead": 0, "mpu": 0,
        "budgets": [0] * 7 + [1550], "limits": [1000] * 8, "priomap": [*range(8), *[0] * 8],
    }  # fmt: skip
    named_by: dict[str, dict[str, Any]] = {
        "level 3 3100": {"budgets": [0, 0, 0, 3100, 0, 0, 0, 1550]},
        "epoch 20ms": {"epoch_ns": 20_000_000},
        "level 3 4000 limit 70": {"budgets": [0, 0, 0, 4000, 0, 0, 0, 1550], "limits": [1000] * 3 + [70] + [1000] * 4},
        "limit 50": {"limits": [50] * 8},
        "level 7 unlimited limit 60": {"budgets": [0, 0, 0, 4000, 0, 0, 0, 0], "limits": [50] * 7 + [60]},
        "mpu 84": {"mpu": 84},
        "slack 1ms": {"slack_ns": 1_000_000},
    }  # fmt: skip
    assert set(changes) == set(named_by)
    for change, named in named_by.items():
        state |= named
        assert changes[change] == state, change


def test_each_level_has_a_limit_of_its_own(guest: Guest) -> None:
    # Sent at once by the budget: one packet. Level 4 holds five, level 3 three.
    assert guest.values("qjump_options")["limits"] == {"4": [1, 5, 14], "3": [1, 3, 16]}


@pytest.mark.slow
def test_sweep_of_the_rate(sweep: Guest) -> None:
    check_rate(sweep, {"10000000", "7777777", "33333333"})


@pytest.mark.slow
def test_sweep_of_windows(sweep: Guest) -> None:
    check_windows(sweep, 48)


@pytest.mark.slow
def test_sweep_of_tcp(sweep: Guest) -> None:
    check_tcp(sweep, 14)
