"""What programs say they sent, against counters, link by link and switch by switch, in numbers
small enough to count."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from qjump_mn.analysis import bookkeeping
from qjump_mn.analysis.bookkeeping import STRAY_FRAMES, Account
from qjump_mn.errors import LostError
from qjump_mn.links.base import Count
from qjump_mn.programs.base import Flow
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.measures_api import HEADERS_BYTES, Moved
from qjump_mn.resolve import plan
from qjump_mn.results import links
from qjump_mn.results.links import Handed
from tests.resolve.test_wiring import network

FLOW = ("h1", "h2")
FIRST, LAST = ("h1", "s1"), ("s1", "h2")


def account(
    *moved: Moved, link: Flow = FIRST, complete: bool = True, waited: int = 0, **counted: int
) -> Account:
    count = {"frames": 10, "bytes": 1000, "drops": 0, "marks": 0} | counted
    named = tuple((f"w{number}", waited, one) for number, one in enumerate(moved, 1))
    return Account(link, None, Count(most_bytes=None, **count), named, complete)


def moved(**said: int) -> Moved:
    return Moved(FLOW, 6, **said)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (account(moved(arrived_frames=10, arrived_bytes=1000)), None),
        (account(moved(arrived_frames=11)), "w1 received 11 frames, and h1>s1 carried 10"),
        (account(moved(arrived_bytes=1001)), "w1 received 1001 B, and h1>s1 carried 1000"),
        (account(moved(arrived_frames=5), moved(arrived_frames=6)), "w1 and w2 received 11 frames"),
        (account(moved(sent_frames=10 - STRAY_FRAMES)), None),
        (
            account(moved(sent_frames=9 - STRAY_FRAMES)),
            f"carried 10 frames, and {9 - STRAY_FRAMES} are of w1",
        ),
        (account(moved(sent_frames=1), complete=False), None),
        (account(moved(sent_frames=1), moved()), None),
        (account(moved(sent_payload=1000), bytes=1000 + 10 * HEADERS_BYTES), None),
        (
            account(moved(sent_payload=999), bytes=1000 + 10 * HEADERS_BYTES),
            "w1 moved 999 B at most, with what was sent again or waited, and h1>s1 carried 1000 B at least without headers",
        ),
    ],
)
def test_account_is_contradicted_by_one_more(given: Account, problem: str | None) -> None:
    problems = list(given.problems())
    assert len(problems) == (problem is not None)
    assert problem is None or problem in problems[0]


@pytest.mark.parametrize(
    ("given", "frames", "payload"),
    [
        (account(moved(sent_frames=7, last_frames=3)), 7, 0),
        (account(moved(sent_frames=7, last_frames=3), link=LAST), 3, 0),
        (account(moved(sent_frames=7), link=LAST), 7, 0),
        (account(moved(last_payload=50), link=LAST, waited=9), None, 59),
        (account(moved(last_payload=50), waited=9), None, None),
        (account(moved(sent_payload=80, last_payload=50)), None, 80),
        (account(moved(sent_payload=80, sent_frames=2)), 2, 80),
        # Frames of one length: what arrived of them says it.
        (
            account(moved(sent_frames=4, arrived_frames=2, arrived_bytes=2 * HEADERS_BYTES + 20)),
            4,
            40,
        ),
        (account(moved(sent_frames=4, arrived_frames=2, arrived_bytes=HEADERS_BYTES)), 4, 0),
        (account(moved(sent_frames=1), moved(sent_frames=2)), 3, 0),
    ],
)
def test_account_bounds_what_a_link_may_carry(
    given: Account, frames: int | None, payload: int | None
) -> None:
    assert (given.most_frames, given.most_payload) == (frames, payload)


TRIAL = next(
    trial for trial in plan("fig3a", "smoke", []).trials() if trial.arm.name == "contended"
)
NETWORK = TRIAL.network


def load(levels: set[int], *flows: Flow, copied: bool = False) -> Any:
    """A workload with these hooks, which are asked of its class."""
    hooks = {"levels": levels, "conversations": flows, "copied": copied, "answer_bytes": 0}
    return type("Load", (), {"name": "load", "flows": flows, "packet_bytes": 100, **hooks})()


@pytest.mark.parametrize(
    ("workload", "level", "crosses"),
    [
        (load({6}, FLOW), 6, True),
        (load({6}, FLOW), None, True),
        (load({6}, FLOW), 0, False),
        (load({6}, ("h2", "h1")), 6, False),
        (load({6}, ("h2", "h1"), copied=True), 6, True),
        (load({6}, ("h2", "h1"), copied=True), 5, False),
    ],
)
def test_workload_crosses_the_links_of_its_flows_at_its_levels(
    workload: Any, level: int | None, crosses: bool
) -> None:
    assert bookkeeping._crosses(workload, NETWORK, FIRST, level) is crosses


def test_what_may_wait_is_the_longest_queue_or_the_buffer() -> None:
    def count(most: int | None) -> Count:
        return Count(0, 0, 0, 0, most)

    carried = {FIRST: {0: count(5), 6: count(7)}, LAST: {0: count(5), 6: count(None)}}
    made = network({"buffer": "9kB"}, switches={"s1": ["h1", "h2"]})
    paths = {FLOW: made.path(*FLOW)}
    assert bookkeeping._waited(made, cast("Any", carried), paths) == {FLOW: 7 + 9000}


@pytest.mark.parametrize(
    ("read", "took_ns"),
    [
        (None, None),
        ({"asbuilt/ended/a": 5}, None),
        (
            {
                "asbuilt/ended/a": 5,
                "asbuilt/ended/b": 15,
                "asbuilt/ended/c": 17,
                "asbuilt/began/a": 1,
            },
            6,
        ),
    ],
)
def test_a_short_process_takes_the_median_between_readings(
    read: dict[str, int] | None, took_ns: int | None
) -> None:
    facts = TrialFacts(cpu_busy=0, window_s=(0, 1), began_ns=0, began_utc_ns=0, read_ns=read)
    assert bookkeeping._process_ns(facts) == took_ns


SWITCHED = network({"rate": "80Mbit"})
"""10 bytes are on a link in 1 us. s0 is between s1 (h1, h2) and s2 (h3)."""
PROCESS_NS = 2_000_000
"""A tenth of it are 200 us: 2000 B, or 20 frames of 100 B."""


def conserved(
    monkeypatch: pytest.MonkeyPatch,
    later: dict[Flow, int],
    *,
    copied: bool = False,
    links_of: Any = SWITCHED,
    mean: float = 100,
) -> tuple[int, list[str]]:
    """100 frames on every link at both readings, and so many more at the later one."""

    def handed(network: Any, folder: Path, when: str) -> dict[Flow, Handed]:
        return {
            link: Handed(sent, sent, mean)
            for link in links_of.interfaces()
            for sent in (100 + (later.get(link, 0) if when == "after" else 0),)
        }

    monkeypatch.setattr(links, "handed_over", handed)
    facts = TrialFacts(
        cpu_busy=0,
        window_s=(0, 1),
        began_ns=0,
        began_utc_ns=0,
        read_ns={"asbuilt/ended/a": 0, "asbuilt/ended/b": PROCESS_NS},
    )
    arm = SimpleNamespace(workloads=[load({0}, copied=copied)])
    tables = SimpleNamespace(trial=SimpleNamespace(network=links_of, arm=arm), facts=facts)
    return bookkeeping._conserved(cast("Any", tables), Path())


def test_what_links_lose_has_not_entered_a_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    def handed(network: Any, folder: Path, when: str) -> dict[Flow, Handed]:
        lost = {("h1", "s1"): 60, ("s1", "h1"): 60}
        return {
            link: Handed(100, 100 - 60 * (link == ("s1", "h2")), 100, lost.get(link, 0))
            for link in SWITCHED.interfaces()
        }

    facts = TrialFacts(cpu_busy=0, window_s=(0, 1), began_ns=0, began_utc_ns=0, read_ns={})
    arm = SimpleNamespace(workloads=[load({0})])
    tables = SimpleNamespace(trial=SimpleNamespace(network=SWITCHED, arm=arm), facts=facts)
    monkeypatch.setattr(links, "handed_over", handed)
    assert bookkeeping._conserved(cast("Any", tables), Path()) == (240 + 200 + 200, [])


def test_switches_send_what_enters_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert conserved(monkeypatch, {}) == (200 + 300 + 200, [])


@pytest.mark.parametrize(
    ("later", "found"),
    [
        # s1 has one link to a switch, two ways: what both carry meanwhile may be missing or too much.
        ({("s1", "h1"): 2 * 21}, False),
        ({("s1", "h1"): 2 * 21 + 1}, True),
        ({("s1", "h1"): -2 * 21}, False),
        ({("s1", "h1"): -2 * 21 - 1}, True),
        # What hosts sent between the readings may have entered, or not.
        ({("h1", "s1"): 50, ("s1", "h2"): 50 + 2 * 21}, False),
        ({("h1", "s1"): 50, ("s1", "h2"): 50 + 2 * 21 + 1}, True),
        ({("h1", "s1"): 50}, False),
    ],
)
def test_switch_that_loses_or_makes_frames_is_found(
    later: dict[Flow, int], found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, problems = conserved(monkeypatch, later)
    assert [("into s1" in text) for text in problems] == [True] * found


def test_switch_that_copies_frames_may_send_more_and_not_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert conserved(monkeypatch, {("s1", "h1"): 1000}, copied=True)[1] == []
    assert len(conserved(monkeypatch, {("s1", "h1"): -100}, copied=True)[1]) == 1


def test_switch_without_frames_counts_smallest_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile = 2 * (1 + 2000 / 64)
    for more, found in ((int(meanwhile), 0), (int(meanwhile) + 1, 1)):
        assert len(conserved(monkeypatch, {("s1", "h1"): more}, mean=0)[1]) == found


def run_of(trials: int, read: bool) -> tuple[Any, Any]:
    facts = SimpleNamespace(read_ns={} if read else None)
    tables = [
        SimpleNamespace(facts=facts, trial=SimpleNamespace(name=f"arm/{n}")) for n in range(trials)
    ]
    return SimpleNamespace(trial=Path, raw=Path), tables


@pytest.mark.parametrize(
    ("trials", "read", "status"), [(2, True, "pass"), (2, False, "unknown"), (0, True, "unknown")]
)
def test_checks_are_unknown_without_counters(
    trials: int, read: bool, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = account(moved(arrived_frames=1)), account(moved(sent_frames=10))
    monkeypatch.setattr(bookkeeping, "_accounts", lambda *about: made)
    monkeypatch.setattr(bookkeeping, "_conserved", lambda *about: (7, []))
    carried, switches = (
        bookkeeping.check(*run_of(trials, read)),
        bookkeeping.switches(*run_of(trials, read)),
    )
    assert (carried.status, switches.status) == (status, status)
    if status == "pass":
        assert carried.text.endswith(
            "4 links carried, at their levels; 2 of them carried no more than programs sent"
        )
        assert switches.text.startswith("all 14 frames")


def test_checks_fail_for_each_problem_with_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*about: Any) -> Any:
        raise LostError("the counters are gone")

    for name, check in (("_accounts", bookkeeping.check), ("_conserved", bookkeeping.switches)):
        monkeypatch.setattr(bookkeeping, name, lost)
        found = check(*run_of(2, True))
        assert (found.status, found.text) == (
            "fail",
            "arm/0: the counters are gone; arm/1: the counters are gone",
        )
    monkeypatch.setattr(
        bookkeeping, "_accounts", lambda *about: [account(moved(arrived_frames=11))]
    )
    assert (
        bookkeeping.check(*run_of(1, True)).text
        == "arm/0: w1 received 11 frames, and h1>s1 carried 10"
    )
    monkeypatch.setattr(bookkeeping, "_conserved", lambda *about: (0, ["wrong"]))
    assert bookkeeping.switches(*run_of(1, True)).text == "arm/0: wrong"


def test_checks_go_on_after_a_trial_without_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bookkeeping, "_accounts", lambda *about: [account(moved())])
    monkeypatch.setattr(bookkeeping, "_conserved", lambda *about: (7, []))
    run, (good,) = run_of(1, True)
    _, (silent,) = run_of(1, False)
    assert "in what 2 links carried" in bookkeeping.check(run, [good, silent, good]).text
    assert "all 14 frames" in bookkeeping.switches(run, [good, silent, good]).text
