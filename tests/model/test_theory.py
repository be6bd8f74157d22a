"""The equations against the worked numbers of their sources."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qjump_mn import theory


@pytest.mark.parametrize(
    ("hosts", "packet", "rate", "one_us", "two_us"),
    [
        (12, 256, 10**10, 2.46, 4.92),  # Figures 1b, 1c, 3b, 3c, 5, 7
        (12, 1550, 10**10, 14.9, 29.8),  # Figure 3a
        (12, 1518, 10**10, 14.6, 29.1),  # Figure 6
        (144, 9000, 10**10, 1037, 2074),  # Figure 9
        (12, 1500, 10**7, 14400, 28800),  # CS244'15
        (12, 1500, 15 * 10**6, 9600, 19200),  # CS244'16
    ],
)
def test_delay_and_epoch_match_published_values(
    hosts: int, packet: int, rate: int, one_us: float, two_us: float
) -> None:
    assert theory.worst_case_delay_ns(hosts, packet, rate) / 1000 == pytest.approx(
        one_us, rel=0.005
    )
    assert theory.network_epoch_ns(hosts, packet, rate) / 1000 == pytest.approx(two_us, rel=0.005)


def test_a_thousand_hosts_at_10_gbit_have_5_mbit_each() -> None:
    epoch = theory.network_epoch_ns(1000, 1500, 10**10)
    assert theory.host_rate_bps(1500, epoch) == 5_000_000


def test_half_the_senders_double_each_ones_rate() -> None:
    whole = theory.host_rate_bps(1500, theory.network_epoch_ns(1000, 1500, 10**10))
    half = theory.host_rate_bps(1500, theory.network_epoch_ns(1000, 1500, 10**10, factor=2))
    assert half == 2 * whole


def test_fan_in_bound_of_figure_11() -> None:
    assert theory.worst_case_delay_ns(60, 256, 10**10, processing_ns=12_000) == 24_288


@pytest.mark.parametrize(
    ("payload", "rate", "ms"),
    [(56, 10**7, 0.7296), (500, 10**7, 3.5712), (1400, 10**7, 9.3312), (1400, 10**8, 0.93312)],
)
def test_round_trip_over_four_links_is_the_sum_of_the_serialisation_times(
    payload: int, rate: int, ms: float
) -> None:
    assert theory.ping_rtt_ns(payload, [(rate, 0)] * 4) == round(ms * 1e6)


def test_a_links_delay_counts_once_on_every_link() -> None:
    assert theory.one_way_ns(64, [(10**7, 10_000)] * 4) == 4 * (57_600 + 10_000)
    assert theory.ping_rtt_ns(56, [(10**7, 10_000)] * 4) == 729_600 + 8 * 10_000


def test_full_size_frame_takes_1_2336_ms_at_10_mbit() -> None:
    assert theory.occupancy_ns(theory.frame_bytes(1500), 10**7) == 1_233_600


def test_goodput_of_a_full_link() -> None:
    assert theory.tcp_goodput_bps(1500, 10**7) == pytest.approx(10**7 * 1448 / 1542)


@pytest.mark.parametrize(
    ("interval", "epoch", "loss"),
    [(5, 28.8, 3 / 4), (9, 28.8, 2 / 3), (5, 4, 0), (5, 5.1, 1 / 2), (5, 105, 10 / 11)],
)
def test_ping_loses_what_falls_into_an_epoch(interval: float, epoch: float, loss: float) -> None:
    assert theory.ping_loss(round(interval * 1e6), round(epoch * 1e6)) == pytest.approx(loss)


def test_a_full_queue_waits_one_epoch_a_packet() -> None:
    assert theory.full_queue_delay_ns(10, 28_800_000) == 288_000_000
    assert theory.full_queue_delay_ns(10, 28_800_000, 2) == 144_000_000


def served(
    arrivals: list[tuple[int, int]], own: int, other: int, delivery: int
) -> list[tuple[int, int]]:
    """When each of (time, name) has left a port that always has a frame of ``other`` to send behind
    the urgent ones, in order of time."""
    left, free = [], 0
    for time, name in sorted(arrivals):
        # The port is busy with urgent frames, or with one of the others, which begin one after the
        # other as long as nothing urgent is there.
        start = free if time <= free else free + -(-(time - free) // other) * other
        left.append((start + delivery, name))
        free = start + own
    return left


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 6), st.integers(1, 4), st.integers(0, 2**32), st.booleans())
def test_no_frame_exceeds_fan_in_bound_if_epoch_is_no_shorter(
    hosts: int, streams: int, seed: int, at_once: bool
) -> None:
    rate, frame, full = 10**7, 280, 1522
    own, other, delivery = (
        theory.occupancy_ns(frame, rate),
        theory.occupancy_ns(full, rate),
        theory.delivery_ns(frame, rate),
    )
    bound = theory.fan_in_bound_ns(hosts, streams, frame, full, [(rate, 0)] * 2)
    random = Random(seed)
    sent: dict[int, int] = {}
    arrivals = []
    for _ in range(hosts):
        mine = []
        for _ in range(streams):
            phase = 0 if at_once else random.randrange(bound)
            for epoch in range(6):
                sent[len(sent)] = phase + epoch * bound
                mine.append((phase + epoch * bound, len(sent) - 1))
        arrivals += served(mine, own, other, delivery)
    delays = [time - sent[name] for time, name in served(arrivals, own, other, delivery)]
    assert max(delays) <= bound
    if at_once:
        assert max(delays) >= (hosts * streams - 1) * own, (
            "all at once come near it: the bound is no idle promise"
        )


def test_fan_in_bound_counts_jitter_of_all_hosts() -> None:
    """At 8 Mb/s a byte takes 1 us: a frame of 280 B occupies 300 us and arrives after 288, a full
    one 1542."""
    jitter_us, meeting_us, port_us, ways_us = 300 + 1542, 5 * 300, 1542, 2 * 288
    bound_us = meeting_us + 2 * jitter_us + port_us + ways_us
    assert theory.fan_in_bound_ns(3, 2, 280, 1522, [(8 * 10**6, 0)] * 2) == bound_us * 1000
    assert (
        theory.fan_in_bound_ns(3, 2, 280, 0, [(8 * 10**6, 0)] * 2) == (1500 + 2 * 300 + 576) * 1000
    )


def test_fan_in_bound_is_rounded_up() -> None:
    """At 400 Gb/s a full-size frame occupies a link for 30.84 ns, and arrives after 30.6."""
    exact_ns = 59 * 30.84 + 2 * 30.84 + 30.84 + 2 * 30.6
    bound_ns = theory.fan_in_bound_ns(60, 1, 1522, 1522, [(4 * 10**11, 0)] * 2)
    assert exact_ns <= bound_ns < exact_ns + 6


def test_overloaded_links_exceed_fan_in_bound() -> None:
    own = theory.occupancy_ns(280, 10**7)
    bound = theory.fan_in_bound_ns(10, 6, 280, 1522, [(10**7, 0)] * 2)
    arrivals = [(index * own // 2, index) for index in range(2000)]
    delays = [
        time - index * own // 2
        for time, index in served(
            arrivals, own, theory.occupancy_ns(1522, 10**7), theory.delivery_ns(280, 10**7)
        )
    ]
    assert max(delays) > bound


def test_fan_in_bound_counts_the_jitter_at_the_senders_own_rate() -> None:
    links = [(8 * 10**6, 0), (16 * 10**6, 0)]
    one_way_us = 288 + 144
    assert theory.fan_in_bound_ns(2, 2, 280, 0, links) == (3 * 300 + 2 * 300 + one_way_us) * 1000
    jitter_us = 300 + 1542
    assert (
        theory.fan_in_bound_ns(2, 2, 280, 1522, links)
        == (900 + 2 * jitter_us + 771 + one_way_us) * 1000
    )


def test_fractions_are_rounded_down_where_no_bound_is_at_stake() -> None:
    assert theory.worst_case_delay_ns(1, 125, 10**9) == 1000
    rate, delay = theory.host_rate_bps(1500, 7), theory.full_queue_delay_ns(10, 3, 4)
    assert (rate, delay) == (1_714_285_714_285, 7)
