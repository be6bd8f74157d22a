"""The kernel's timers: everything lasts as long as Linux has it, and code takes no time."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import pytest

from tests.guest.checks import EXPECTED_LOG, measured

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

RATES_MBPS = (10, 10_000)
CODE_NS = 10
"""Nothing that is waited for is later than this."""
STAMP_NS = 2
"""What the stamps of two frames round."""
TICK_NS = 4_000_000
"""TCP's timers end on the kernel's ticks."""
RTO_NS = 200_000_000
COARSE = 1.1
"""The kernel's timers of the wheel are late by an eighth of themselves at most, here by less, and
by a tick."""
FRAME_NS = 1_230_400
"""A frame of 1518 bytes at 10 Mb/s, with preamble and gap."""


class Clock(NamedTuple):
    """What was measured beside a wire of ``rate_mbps``."""

    rate_mbps: int
    values: dict[str, Any]
    log: list[str]


@pytest.fixture(scope="module", params=RATES_MBPS)
def clock(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Clock:
    guest = measured("6.12", [["timers", str(request.param)]], tmp_path_factory.mktemp("clock"))
    return Clock(request.param, guest.values("timers"), guest.results["log"])


def test_the_kernel_takes_it_without_a_word(clock: Clock) -> None:
    assert set(clock.log) <= EXPECTED_LOG


@pytest.mark.parametrize("when", ["sleeps", "after"])
def test_sleeps_end_in_time(clock: Clock, when: str) -> None:
    assert len(clock.values[when]) == 4
    assert all(0 <= late <= CODE_NS for late in clock.values[when])


def test_all_clocks_run_alike(clock: Clock) -> None:
    passed = clock.values["clocks"]
    assert all(0 <= ns - 300_000_000 <= CODE_NS for ns in passed)


def test_a_periodic_timer_keeps_its_times(clock: Clock) -> None:
    times = clock.values["timer"]
    assert len(times) == 40
    assert all(0 <= at - 250_000 * number <= CODE_NS for number, at in enumerate(times, 1))


def test_stamps_are_of_the_same_clock(clock: Clock) -> None:
    on_the_way_ns, to_the_stamp_ns = clock.values["stamped"]
    assert 0 <= on_the_way_ns <= CODE_NS
    assert 0 <= to_the_stamp_ns <= CODE_NS


def test_a_delayed_acknowledgement_takes_40_ms(clock: Clock) -> None:
    assert 40_000_000 <= clock.values["delayed_ack"] <= 40_000_000 + 2 * TICK_NS


def test_a_retransmission_timeout_takes_200_ms_and_doubles(clock: Clock) -> None:
    sent = [0, *clock.values["retransmissions"]]
    gaps = [late - early for early, late in itertools.pairwise(sent)]
    assert len(gaps) == 4
    for doubled, gap in enumerate(gaps):
        assert 2**doubled * RTO_NS <= gap <= 2**doubled * RTO_NS * COARSE + TICK_NS


def test_tcp_info_is_of_the_same_clock(clock: Clock) -> None:
    info = clock.values["tcp_info"]
    assert 200_000 <= info["rto_us"] <= 200_000 + TICK_NS // 1000
    assert 250 - TICK_NS // 10**6 <= info["last_sent_ms"] <= 250 + TICK_NS // 10**6


def test_a_wire_serialises_exactly(clock: Clock) -> None:
    gaps, frame_ns = clock.values["gaps"], FRAME_NS * 10 / clock.rate_mbps
    assert len(gaps) == 99
    assert sum(gaps) / len(gaps) == pytest.approx(frame_ns, rel=5e-4)
    assert max(abs(gap - frame_ns) for gap in gaps) <= STAMP_NS
