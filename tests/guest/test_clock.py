"""The kernel's timers on a dilated clock (kmod-clock), on Linux 6.12, 6.1 and 7.x: everything lasts as long as
it does on any clock, and what the processor does takes so much less."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import pytest

from qjump_mn.model import clock as model
from tests.guest.checks import EXPECTED_LOG, measured

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

CLOCKS = [("6.12", 1), ("6.12", 100), ("6.12", 1000), ("6.1", 1000), ("7", 1000), ("6.12", model.MOST)]
CODE_NS = 200_000
"""Nothing that is waited for is later than this on the machine's clock: what the kernel and Python execute."""
STAMP_NS = 2
"""What the stamps of two frames round."""
TICK_NS = 4_000_000
"""TCP's timers end on the kernel's ticks."""
RTO_NS = 200_000_000
COARSE = 1.1
"""The kernel's timers of the wheel are late by an eighth of themselves at most, here by less, and by a tick."""
FRAME_NS = 1_230_400
"""A frame of 1518 bytes at 10 Mb/s, with preamble and gap."""


class Clock(NamedTuple):
    """What was measured on a clock that is dilated by ``factor``."""

    factor: int
    values: dict[str, Any]
    log: list[str]

    @property
    def code_ns(self) -> float:
        """What CODE_NS are on the network's clock."""
        return CODE_NS / self.factor


@pytest.fixture(scope="module", params=CLOCKS, ids=lambda clock: f"{clock[0]}-{clock[1]}")
def clock(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Clock:
    kernel, factor = request.param
    guest = measured(kernel, [["dilated_clock", str(factor)]], tmp_path_factory.mktemp("clock"))
    return Clock(factor, guest.values("dilated_clock"), guest.results["log"])


def test_the_kernel_takes_it_without_a_word(clock: Clock) -> None:
    assert clock.values["clocksource"] == "dilated"
    assert set(clock.log) <= EXPECTED_LOG


@pytest.mark.parametrize("when", ["sleeps", "after"])
def test_sleeps_end_in_time(clock: Clock, when: str) -> None:
    assert len(clock.values[when]) == 4
    assert all(0 <= late <= clock.code_ns for late in clock.values[when])


def test_all_clocks_run_alike(clock: Clock) -> None:
    passed = clock.values["clocks"]
    assert all(0 <= ns - 300_000_000 <= clock.code_ns for ns in passed)


def test_a_periodic_timer_keeps_its_times(clock: Clock) -> None:
    times = clock.values["timer"]
    assert len(times) == 40
    assert all(0 <= at - 250_000 * number <= clock.code_ns for number, at in enumerate(times, 1))


def test_stamps_are_of_the_same_clock(clock: Clock) -> None:
    on_the_way_ns, to_the_stamp_ns = clock.values["stamped"]
    assert 0 <= on_the_way_ns <= clock.code_ns
    assert 0 < to_the_stamp_ns <= clock.code_ns


def test_a_delayed_acknowledgement_takes_40_ms(clock: Clock) -> None:
    assert 40_000_000 <= clock.values["delayed_ack"] <= 40_000_000 + 2 * TICK_NS


def test_a_retransmission_timeout_takes_200_ms_and_doubles(clock: Clock) -> None:
    sent = [0, *clock.values["retransmissions"]]
    gaps = [late - early for early, late in itertools.pairwise(sent)]
    assert len(gaps) == 4
    for doubled, gap in enumerate(gaps):
        assert 2**doubled * RTO_NS <= gap <= 2**doubled * RTO_NS * COARSE + TICK_NS


def test_tcp_info_is_in_the_networks_time(clock: Clock) -> None:
    info = clock.values["tcp_info"]
    assert 200_000 <= info["rto_us"] <= 200_000 + TICK_NS // 1000
    assert 250 - TICK_NS // 10**6 <= info["last_sent_ms"] <= 250 + TICK_NS // 10**6


def test_a_wire_a_factor_faster_serialises_exactly(clock: Clock) -> None:
    gaps, frame_ns = clock.values["gaps"], FRAME_NS / clock.factor
    assert len(gaps) == 99
    assert sum(gaps) / len(gaps) == pytest.approx(frame_ns, rel=5e-4)
    off = sorted(abs(gap - frame_ns) for gap in gaps)
    # One stamp may meet a tick, of 2.3 us, which the gaps on both sides have.
    assert off[-3] <= clock.code_ns / 100 + STAMP_NS
    assert off[-1] <= clock.code_ns / 80 + STAMP_NS


def test_a_busy_processor_takes_a_factor_less(clock: Clock) -> None:
    """For longer than QEMU counts instructions between two events: 2^31 of them."""
    busy = clock.values["busy"]
    assert busy["thread_ns"] > 9 * 10**9
    assert busy["network_ns"] * clock.factor == pytest.approx(busy["thread_ns"], rel=0.01)
