"""The equations against the worked numbers of their sources."""

from __future__ import annotations

import pytest

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
def test_delay_and_epoch_are_those_of_the_published_set_ups(hosts: int, packet: int, rate: int, one_us: float, two_us: float) -> None:
    assert theory.worst_case_delay_ns(hosts, packet, rate) / 1000 == pytest.approx(one_us, rel=0.005)
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


@pytest.mark.parametrize(("payload", "rate", "ms"), [(56, 10**7, 0.7296), (500, 10**7, 3.5712), (1400, 10**7, 9.3312), (1400, 10**8, 0.93312)])
def test_round_trip_over_four_links_is_the_sum_of_the_serialisation_times(payload: int, rate: int, ms: float) -> None:
    assert theory.ping_rtt_ns(payload, 4, rate) == round(ms * 1e6)


def test_full_size_frame_takes_1_2336_ms_at_10_mbit() -> None:
    assert theory.occupancy_ns(theory.frame_bytes(1500), 10**7) == 1_233_600


def test_goodput_of_a_full_link() -> None:
    assert theory.tcp_goodput_bps(1500, 10**7) == pytest.approx(10**7 * 1448 / 1542)


@pytest.mark.parametrize(("interval", "epoch", "loss"), [(5, 28.8, 3 / 4), (9, 28.8, 2 / 3), (5, 4, 0), (5, 5.1, 1 / 2), (5, 105, 10 / 11)])
def test_ping_loses_what_falls_into_an_epoch(interval: float, epoch: float, loss: float) -> None:
    assert theory.ping_loss(round(interval * 1e6), round(epoch * 1e6)) == pytest.approx(loss)


def test_a_full_queue_waits_one_epoch_a_packet() -> None:
    assert theory.full_queue_delay_ns(10, 28_800_000) == 288_000_000
    assert theory.full_queue_delay_ns(10, 28_800_000, 2) == 144_000_000
