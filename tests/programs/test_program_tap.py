"""The tap: at which port it stands, what it asks of the kernel, what it makes of its trace, and
what is refused."""

from __future__ import annotations

import re

import pytest

from qjump_mn.errors import LostError, UsageError
from qjump_mn.executor.steps import MACHINE
from qjump_mn.model.plan import Trial
from qjump_mn.programs.tap import program
from qjump_mn.programs.tap.program import TapPlan
from qjump_mn.resolve import plan
from qjump_mn.resolve.arms import BLIND

TRACE = """# tracer: nop
#
# entries-in-buffer/entries-written: 2/{written}   #P:1
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
          <idle>-0       [000] ..s..    16.903: wire_frame: dev=s0-eth3 level=0 len=106 arrival=1000 start=1000 handover=1092
            ping-271     [000] ..s..    16.904: wire_frame: dev=s0-eth3 level=0 len=106 arrival=5000 start=6230 handover=6322
"""


def trial(*settings: str) -> Trial:
    at_once = "link.switch_time=0ns"
    resolved = plan("fig3a", "paper", [at_once, *settings], only=["idle"], replicates=1)
    return resolved.trials()[0]


def tap(of: Trial) -> TapPlan:
    (found,) = [workload for workload in of.arm.workloads if isinstance(workload, TapPlan)]
    return found


@pytest.mark.parametrize(
    ("at", "flow", "port"),
    [
        ("s0", "h8>h10", "s0-eth3"),
        ("s3", "h8>h10", "s3-eth2"),
        ("s2", "h8>h10", "s2-eth1"),
        ("s2", "h10>h8", "s2-eth3"),
    ],
)
def test_ports_are_those_by_which_flows_leave(at: str, flow: str, port: str) -> None:
    of = trial(f"workloads.tap.at={at}", f"workloads.tap.flows={flow}")
    ports = tap(of).ports(of.network)
    # As Mininet numbers them: a switch's ports in the order of its links.
    assert list(ports) == [next(iter(ports))] and next(iter(ports)).startswith(f"{at}-eth")
    assert next(iter(ports)) == port
    assert ports[port] == tuple(flow.split(">"))


def test_filter_selects_one_length_at_its_ports() -> None:
    of = trial()
    (launch,) = program.launches(tap(of), of)
    assert (
        launch.host == MACHINE
        and launch.phase == "serve"
        and f"echo {launch.says}\n" in launch.argv[-1]
        and not launch.itself
    )
    assert (
        """echo 'len == 106 && (dev == "s0-eth3")' > events/wire/wire_frame/filter"""
        in launch.argv[2]
    )


def test_a_frame_is_in_the_switch_from_its_last_bit_in_to_its_last_bit_out() -> None:
    of = trial()
    found = program.columns(tap(of), of, lambda name: TRACE.format(written=2))
    # (8 + 106) * 8 bits at 10 Gb/s are 91.2 ns.
    assert list(found["latency_us"]) == [0.091, 1.321]
    assert list(found["flow"]) == ["h8>h10", "h8>h10"] and list(found["start_ns"]) == [1000, 6230]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (TRACE.format(written=3), "tap: the kernel kept 2 of 3 events: tap fewer frames"),
        ("", "tap: the kernel's trace is missing: the tap was cut off"),
    ],
)
def test_incomplete_trace_is_lost(text: str, sentence: str) -> None:
    of = trial()
    with pytest.raises(LostError, match=re.escape(sentence)):
        program.columns(tap(of), of, lambda name: text)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["workloads.tap.at=s9"], "workloads.tap.at: topology 'paper12' has no switch 's9'"),
        (["workloads.tap.at=s1"], "workloads.tap.at: h8>h10 does not pass s1"),
        (
            ["workloads.tap.packet=9000B"],
            "workloads.tap.packet: 9kB is out of range: use 20B to 1500B",
        ),
        (
            ["link.model=tbf", "link.switch_time=0ns"],
            "workloads.tap: a tap needs links of model wire (got tbf)",
        ),
    ],
)
def test_invalid_settings_are_refused(settings: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        plan("fig3a", "paper", settings)


def test_tap_sends_nothing() -> None:
    assert not TapPlan.SENDS and not hasattr(TapPlan, "BACKGROUND")


def test_arm_with_port_queues_has_no_tap() -> None:
    """For a port would say of each frame that it came when the scheme's queue handed it over."""
    found = plan("fig3a", "paper", [], schemes=["dctcp", "bbr", "cake"])
    tapped = {arm.name for arm in found.run.arms if any(one.name == "tap" for one in arm.workloads)}
    assert tapped == {"idle", "contended", "qjump", "bbr"}
    assert found.shown.remarks.count(BLIND) == 1
    assert BLIND not in plan("fig3a", "paper", [], schemes=["bbr"]).shown.remarks


def test_arm_with_only_a_tap_is_refused_with_port_queues() -> None:
    settings = ["arms.contended.scheme=cake", 'arms.contended.workloads=["tap"]']
    with pytest.raises(
        UsageError, match=r"arms\.contended: scheme 'cake' has its own queues at switch ports"
    ):
        plan("fig3a", "paper", settings)
