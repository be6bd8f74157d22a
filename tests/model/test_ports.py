"""What an urgent packet may find in transmission, counted by hand from paper12's picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from qjump_mn import theory
from qjump_mn.model import guarantee, hooks, ports
from qjump_mn.model.plan import Plan
from qjump_mn.programs.ping.program import PingPlan
from qjump_mn.resolve import plan

FULL_MS = 1.2336
ACK_MS = (80 + 14 + 4 + 4 + 20) * 8 / 10**4
"""An IP packet of 80 B, Ethernet's header, tag and check sequence, preamble and gap, at 10 Mb/s."""


def fig3a(*settings: str, backend: str = "") -> Plan:
    return plan("fig3a", "course", list(settings), backend=backend)


@pytest.mark.parametrize(
    ("flow", "data", "acks"),
    [
        (
            "h7>h10",
            3,
            3,
        ),  # the request shares s2>s0, s0>s3 and s3>h10 with data, the reply as many with ACKs
        ("h10>h7", 3, 3),
        ("h1>h2", 0, 0),
        ("h7>h8", 1, 1),  # s2>h8 with data, h8>s2 with ACKs
    ],
)
def test_each_port_has_data_or_acknowledgements_or_nothing(flow: str, data: int, acks: int) -> None:
    constants = fig3a(f"workloads.bulk.flows={flow}").judged.constants
    assert (constants["ping_busy_ports"], constants["ping_ack_ports"]) == (data, acks)
    assert constants["wait_ms"] == pytest.approx(data * FULL_MS + acks * ACK_MS)
    assert constants["busy_ports"] == data


def test_where_data_goes_both_ways_no_acknowledgement_counts_beside_it() -> None:
    constants = fig3a("workloads.bulk.flows=h7>h10,h10>h7").judged.constants
    assert (constants["ping_busy_ports"], constants["ping_ack_ports"]) == (6, 0)


def test_nothing_comes_back_of_datagrams() -> None:
    constants = fig3a("workloads.bulk.udp_rate=5Mbit").judged.constants
    assert (constants["ping_busy_ports"], constants["ping_ack_ports"]) == (3, 0)


def test_a_message_that_nobody_answers_meets_what_is_on_its_way_there() -> None:
    constants = plan("fig3c", "course", []).judged.constants
    assert constants["barrier_busy_ports"] == 2


def test_each_frame_takes_the_time_of_its_own_link() -> None:
    constants = fig3a("link.trunk_rate=40Mbit").judged.constants
    # s2>s0 and s0>s3 are four times as fast as s3>h10, and likewise back.
    assert constants["wait_ms"] == pytest.approx(1.5 * FULL_MS + 1.5 * ACK_MS)


def test_the_bound_and_what_is_allowed_beside_it_are_printed_apart() -> None:
    shown = fig3a()
    ping = next(load for arm in shown.arms for load in arm.workloads if load.name == "ping")
    assert isinstance(ping, PingPlan)
    rows = {
        name: (formula, value)
        for name, formula, value in ping.equations(shown.shown.network, shown.judged.constants)
    }
    formula, value = rows["bound of an urgent ping"]
    assert formula.endswith(
        "a full-size frame on each of 3 busy ports and an acknowledgement on each of 3 more"
    )
    assert value == f"{0.7296 + 3 * FULL_MS + 3 * ACK_MS:.4g} ms"
    assert "allowed for the processor" not in rows, "code takes no time"
    shown = fig3a(backend="host")
    values = {
        name: value
        for name, _, value in ping.equations(shown.shown.network, shown.judged.constants)
    }
    assert values["allowed for the processor"] == "0.12 ms"


def test_the_page_tells_the_same_numbers() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs/emulation.md").read_text().split())
    constants = fig3a().judged.constants
    bound_ms = constants["ping_analytic_ms"] + constants["wait_ms"]
    assert f"three have acknowledgements: {constants['wait_ms']:.2f} ms at 10 Mb/s" in page
    assert f"the bound is {bound_ms:.2f} ms" in page
    assert (
        f"{fig3a(backend='host').judged.constants['processor_ms']:g} ms are allowed for it" in page
    )
    assert f"(up to {theory.wire_bytes(theory.ACK_BYTES)} B)" in page


def test_the_processor_is_allowed_for_where_code_takes_time() -> None:
    assert fig3a().judged.constants["processor_ms"] == 0
    assert plan("fig3a", "10g", []).judged.constants["processor_ms"] == 0
    for rate in ("10Mbit", "10Gbit"):
        assert fig3a(f"link.rate={rate}", backend="host").judged.constants["processor_ms"] == 0.12


def test_the_check_of_every_frame_allows_what_is_counted_and_floods() -> None:
    """Where a budget is one frame and nobody shares it, a wait is the frame in transmission and no
    more."""
    shown = fig3a("qjump.course.budget_packet=126B")
    arm = next(arm for arm in shown.arms if arm.name == "qjump")
    # Level 0 has a bound too where its hosts cannot offer more than the port carries.
    waits = {
        port: wait for (port, level), wait in guarantee.of_arm(arm).waits_ns.items() if level == 6
    }
    bulk = ports.longest(
        (load for load in arm.workloads if hooks.is_background(load)), shown.shown.network
    )
    hosts = shown.shown.network.hosts
    crossed = {
        port
        for way in (("h8", "h10"), ("h10", "h8"))
        for port in shown.shown.network.path(*way)
        if port[0] not in hosts
    }
    assert set(waits) == crossed
    for port, wait in waits.items():
        # A switch may flood, so a full-size frame is allowed everywhere. Two pings come closer
        # together by what they waited before, an epoch of 28.8 ms apart as they are.
        assert FULL_MS <= wait / 1e6 <= 1.02 * FULL_MS, port
    data = [port for port, length in bulk.items() if length > theory.ACK_BYTES and port in crossed]
    assert len(data) == shown.judged.constants["busy_ports"]
