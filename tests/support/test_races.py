"""KCSAN's reports in a kernel's log, as the debug kernel printed them for tests/guest/racing.c
(tests/golden/kcsan.txt)."""

from __future__ import annotations

from pathlib import Path

from tests.guest.races import races

LOG = (Path(__file__).parents[1] / "golden/kcsan.txt").read_text().splitlines()
PLANTED = ("racing_add [racing]", "racing_add [racing]")
TAINT = "sch_qjump: loading out-of-tree module taints kernel."


def test_reports_are_told_from_what_else_the_kernel_says() -> None:
    found = races(LOG)
    assert found.rest == [TAINT]
    assert found.ours == [], "neither access is in our modules"
    assert [race.functions for race in found.others] == [PLANTED, PLANTED]
    assert found.others[0].text.count("write to 0x") == 2
    assert "read to 0x" in found.others[1].text


def test_a_race_is_of_the_module_that_either_access_is_in() -> None:
    assert [race.functions for race in races(LOG, {"racing"}).ours] == [PLANTED, PLANTED]
    half = [line.replace("/ racing_add [racing]", "/ wire_dequeue [sch_wire]") for line in LOG]
    assert [race.functions[1] for race in races(half).ours] == ["wire_dequeue [sch_wire]"] * 2
    core = [line.replace("racing_add [racing]", "tcp_ack") for line in LOG]
    assert races(core).ours == []


def test_a_report_that_is_cut_off_is_not_lost() -> None:
    assert len(races(LOG[:5]).ours) == 1
