"""The time that switches take: where it becomes part of a wire, what a tap makes of it, and what is
refused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from qjump_mn import theory
from qjump_mn.analysis import claims
from qjump_mn.errors import UsageError
from qjump_mn.links import registry
from qjump_mn.programs.tap import program
from qjump_mn.programs.tap.program import TapPlan
from qjump_mn.resolve import plan

TRACE = (
    "# entries-in-buffer/entries-written: 1/1\n"
    "<idle>-0 [000] ..s.. 1.0: wire_frame: dev=s0-eth3 level=7 len=106 arrival=9000 start=9500 "
    "handover=9600\n"
)


def test_every_switch_on_the_way_takes_its_time_once() -> None:
    settings = ["link.switch_time=1500ns", "link.host_time=40us"]
    network = plan("fig3a", "smoke", settings).arms[0].network
    wire = registry.of("wire")
    for (above, port), (below, device) in network.ports():
        ends = [(above, port, True), (below, device, below not in network.hosts)]
        for node, name, on_switch in ends:
            (line,) = wire.shape(network.by_device()[name], name, on_switch=on_switch, seed=1).tc
            towards_host = on_switch and below in network.hosts and node == above
            host_ns = 40_000 if below in network.hosts else 0
            delay_ns = host_ns + (0 if towards_host else 1_500)
            assert f"delay {delay_ns}ns" in line
    # h8>s2>s0>s3>h10: three switches.
    assert [ns for _, ns in network.speeds("h8", "h10")] == [41_500, 1_500, 1_500, 40_000]
    assert network.told_switches == "switches take 1.5 us a frame"
    assert network.skeleton() == plan("fig3a", "smoke", []).arms[0].network.skeleton()


def test_tap_counts_the_time_of_its_switch() -> None:
    resolved = plan("fig3a", "paper", ["link.switch_time=1500ns"], only=["idle"], replicates=1)
    (trial,) = resolved.trials()
    (tap,) = [one for one in trial.arm.workloads if isinstance(one, TapPlan)]
    columns = program.columns(tap, trial, lambda name: TRACE)
    sent_ns = theory.delivery_ns(106, 10**10)
    assert list(columns["arrival_ns"]) == [7_500]
    assert list(columns["latency_us"]) == [pytest.approx((1_500 + 500 + sent_ns) / 1e3)]
    assert tap.constants(trial.network)["analytic_ms"] * 1e6 == 1_500 + sent_ns


@pytest.mark.parametrize(
    ("settings", "backend", "sentence"),
    [
        (["link.switch_time=2s"], "guest", "link.switch_time = 2s is out of range: use at most 1s"),
        (
            ["link.switch_time=1us", "link.model=htb"],
            "guest",
            "switch_time is for links of model wire: htb does not delay frames at switches",
        ),
    ],
)
def test_wrong_switch_time_is_refused(settings: list[str], backend: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        plan("fig3a", "smoke", settings)


def test_setting_is_calibrated_on_a_published_measure() -> None:
    resolved = plan("fig3a", "paper", [])

    def check(measure: str) -> None:
        judged = replace(resolved.judged, calibrated={"link.buffer": measure})
        claims.check(replace(resolved, judged=judged))

    with pytest.raises(UsageError, match=r"'contended.tap.p5_ms' is not in \[published\]: did"):
        check("contended.tap.p5_ms")
    check("contended.tap.p50_ms")
    with pytest.raises(UsageError, match=r"claims\.switch_time.size: .* no prediction: leave the"):
        check("qjump.tap.p50_ms")
