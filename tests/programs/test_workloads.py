"""The parsers on what real programs printed (iputils 20240905, iperf3 3.18, iproute2 6.15 in the
guest), and on damage to it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from qjump_mn.backends import emulated
from qjump_mn.errors import LostError, UsageError
from qjump_mn.executor.steps import Wait
from qjump_mn.programs.base import read_flows
from qjump_mn.programs.fanin import program as fanin
from qjump_mn.programs.iperf import parse as iperf
from qjump_mn.programs.ping import parse as ping
from qjump_mn.resolve import loading, plan
from qjump_mn.steps import asbuilt
from qjump_mn.steps.compile import trial_steps

GOLDEN = Path(__file__).parents[1] / "golden" / "programs"


PROGRAMS = Path(__file__).parents[2] / "qjump_mn/programs"


def text(name: str) -> str:
    program = "ping" if name.startswith("ping") else "iperf"
    return (PROGRAMS / program / "golden" / name).read_text()


def test_ping_gives_every_reply() -> None:
    echoes = ping.parse(text("ping.txt"), 50)
    assert [echo.sequence for echo in echoes] == list(range(1, 51))
    assert all(echo.rtt_us is not None and 774 <= echo.rtt_us <= 4500 for echo in echoes)
    assert echoes[0].received_s is not None
    assert echoes[-1].received_s is not None
    assert 0.4 < echoes[-1].received_s - echoes[0].received_s < 0.9


def test_ping_gives_a_row_for_every_lost_request() -> None:
    echoes = ping.parse(text("ping-lost.txt"), 100)
    assert len(echoes) == 100
    assert [echo.sequence for echo in echoes if echo.rtt_us is not None] == list(range(1, 101, 4))
    assert all(echo.received_s is None for echo in echoes if echo.rtt_us is None)


def test_a_duplicate_reply_is_not_counted_twice() -> None:
    line = next(line for line in text("ping.txt").splitlines() if "icmp_seq=7 " in line)
    assert ping.parse(text("ping.txt").replace(line, f"{line}\n{line} (DUP!)"), 50) == ping.parse(
        text("ping.txt"), 50
    )


def test_sequence_numbers_wrap_at_16_bits() -> None:
    lines = [
        f"[{index / 1000:.6f}] 64 bytes from 10.0.0.10: icmp_seq={(index + 1) % 65536} ttl=64 "
        "time=0.774 ms"
        for index in range(70000)
    ]
    lines.append("70000 packets transmitted, 70000 received, 0% packet loss, time 70000ms")
    echoes = ping.parse("\n".join(lines), 70000)
    assert [echo.sequence for echo in echoes] == list(range(1, 70001))
    assert all(echo.rtt_us for echo in echoes)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda text: text[: len(text) // 2], "no summary"),
        (lambda text: "", "no summary"),
        (
            lambda text: text.replace("50 packets transmitted", "49 packets transmitted"),
            "sent 49 requests, not 50",
        ),
        (
            lambda text: text.replace("icmp_seq=7 ", "icmp_seq=x "),
            "has 49 replies, but its summary says 50",
        ),
    ],
)
def test_a_ping_that_was_cut_off_is_lost(damage: Callable[[str], str], sentence: str) -> None:
    with pytest.raises(LostError, match=sentence):
        ping.parse(damage(text("ping.txt")), 50)


@pytest.mark.parametrize(
    ("file", "retransmits"),
    [("tcp-client", True), ("tcp-server", False), ("udp-client", False), ("udp-server", False)],
)
def test_iperf_gives_every_interval(file: str, retransmits: bool) -> None:
    raw = text(f"iperf3-{file}.json")
    intervals = iperf.parse(raw)
    assert len({interval.stream for interval in intervals}) == 1
    assert len(intervals) == len(msgspec.json.decode(raw)["intervals"])
    assert all(interval.end_s - interval.start_s > 0 for interval in intervals)
    assert (intervals[0].retransmits is not None) == retransmits
    end = msgspec.json.decode(raw)["end"]
    total = end[
        "sum_sent" if file == "tcp-client" else "sum_received" if file == "tcp-server" else "sum"
    ]["bytes"]
    # UDP's server counts the bytes of lost datagrams in its sum.
    assert sum(interval.bytes for interval in intervals) == total or file == "udp-server"


@pytest.mark.parametrize(("end", "repeated"), [("client", 0), ("server", 1), ("due-server", 1)])
def test_an_iperf_that_was_ended_has_each_interval_once(end: str, repeated: int) -> None:
    raw = text(f"iperf3-tcp-ended-{end}.json")
    report = msgspec.json.decode(raw)
    if end == "due-server":
        # Its last report fell due when the sender was ended: a second error follows, and the first
        # one counts.
        assert iperf.ENDED in raw and report["error"] == "getsockopt - Bad file descriptor"
    else:
        assert iperf.ENDED in report["error"]
    reported, intervals = report["intervals"], iperf.parse(raw)
    assert len(intervals) == len(reported) - repeated
    assert [interval.start_s for interval in intervals[1:]] == [
        interval.end_s for interval in intervals[:-1]
    ]


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ("", "not complete"),
        ('{"start": {', "not complete"),
        (
            '{"error": "unable to connect to server: Connection refused"}',
            "iperf3 failed: unable to connect",
        ),
        ('{"intervals": []}', "nothing was sent"),
        ("[]", "not a JSON object"),
    ],
)
def test_an_iperf_that_failed_is_lost_with_its_own_words(raw: str, sentence: str) -> None:
    with pytest.raises(LostError, match=sentence):
        iperf.parse(raw)


def test_the_network_read_back_from_the_guest_is_the_one_planned() -> None:
    resolved = plan("fig3a", "smoke", [])
    arm = next(arm for arm in resolved.arms if arm.name == "qjump")
    assert asbuilt.differences(GOLDEN / "asbuilt", arm) == []
    other = next(arm for arm in resolved.arms if arm.name == "bulk_limited")
    differences = asbuilt.differences(GOLDEN / "asbuilt", other)
    assert any("its epoch_ns is 28800000, not 5000000" in text for text in differences)


LISTENER = "0A00000A:1519 00000000:0000 0A 0"
LISTENER6 = f"{0:032X}:1519 {0:032X}:0000 0A 0"


@pytest.mark.parametrize(
    ("sockets", "sockets6", "listens"),
    [
        (LISTENER, "", True),
        ("", LISTENER6, True),
        ("0A00000A:151A 00000000:0000 0A 0", "", False),
        ("0A00000A:1519 0800000A:151A 01 0", "", False),
        ("", "", False),
    ],
)
def test_a_listener_is_found_by_its_port(
    sockets: str, sockets6: str, listens: bool, tmp_path: Path
) -> None:
    trial = next(
        trial for trial in plan("fig3a", "smoke", []).trials() if trial.arm.name == "contended"
    )
    wait = next(step for step in trial_steps(trial) if isinstance(step, Wait))
    assert wait.node in trial.network.hosts and wait.lacks.endswith(
        "does not listen on tcp port 5401"
    )
    for name, line in (("tcp", sockets), ("tcp6", sockets6)):
        (tmp_path / name).write_text(f"  sl  local_address rem_address   st\n   0: {line}\n")
    argv = [word.replace("/proc/net/", f"{tmp_path}/") for word in wait.argv]
    assert argv[-2:] == [str(tmp_path / "tcp"), str(tmp_path / "tcp6")]
    assert (subprocess.run(argv, check=False).returncode == 0) == listens


@pytest.mark.parametrize("name", loading.names("experiments"))
def test_no_two_programs_of_an_arm_write_one_file(name: str) -> None:
    for preset in loading.presets(name):
        planned = plan(name, preset, [])
        if "guest" in planned.shown.backends:
            emulated.check(planned)


@pytest.mark.parametrize(
    ("name", "setting", "sentence"),
    [
        (
            "fig11",
            'sweeps.epoch.values=["99us"]',
            r"workloads\.urgent\.interval: fanin cannot send more often than every 100us in real time: "
            r"use that or more, or --backend guest",
        ),
        (
            "fig3c",
            "workloads.barrier.interval=750us",
            r"workloads\.barrier\.interval: barrier cannot send more often than every 1ms in real time",
        ),
        (
            "fig7",
            "workloads.ptp.interval=300ms",
            r"workloads\.ptp\.interval: ptpd and ptp4l send 1, 2, 4, \.\.\. or 128 Syncs a second: use 7812\.5us, ",
        ),
    ],
)
def test_what_programs_do_not_send_so_often_is_refused(
    name: str, setting: str, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        emulated.check(plan(name, "smoke", [setting], backend="host"))


@pytest.mark.parametrize(
    ("name", "setting"),
    [("fig11", 'sweeps.epoch.values=["99us"]'), ("fig3c", "workloads.barrier.interval=750us")],
)
def test_where_code_takes_no_time_programs_send_as_often_as_asked(name: str, setting: str) -> None:
    emulated.check(plan(name, "smoke", [setting]))


def test_two_senders_on_one_host_are_told_to_be_two_workloads() -> None:
    both = plan("fig6", "smoke", ['workloads.bursts.flows=["h6>h11", "h6>h9"]'])
    with pytest.raises(
        UsageError,
        match=r"arms\.qjump_1: fanin on h6, of workloads\.bursts, would write the file of another program, "
        r"bursts-h6\.send\.txt",
    ):
        emulated.check(both)


def test_flows_may_name_a_range_of_hosts() -> None:
    found = read_flows(["h2..h4>h9", "h8>h10"], "here")
    assert [flow for _, flow in found] == [("h2", "h9"), ("h3", "h9"), ("h4", "h9"), ("h8", "h10")]


@pytest.mark.parametrize("flow", ["h4..h2>h9", "h2..h4>h3", "h2..h4"])
def test_flows_that_cannot_be_are_refused(flow: str) -> None:
    with pytest.raises(UsageError, match=r"here\.flows: 'h.* is not a flow: write two hosts"):
        read_flows([flow], "here")


def test_a_range_beyond_the_network_is_refused() -> None:
    with pytest.raises(UsageError, match=r"workloads\.ping\.flows: .*'h13'"):
        plan("fig3a", "smoke", ['workloads.ping.flows=["h11..h99999>h1"]'])


def test_senders_of_a_phase_begin_at_it() -> None:
    trial = next(
        trial for trial in plan("phases", "smoke", []).trials() if trial.arm.name == "aligned_3"
    )
    sent = [
        launch.argv
        for launch in fanin.PROGRAM.launches(trial.arm.workloads[0], trial)
        if "send" in launch.argv
    ]
    assert len(sent) == 3
    assert all(argv[argv.index("--phase") + 1] == "6168000" for argv in sent)


def test_a_phase_that_would_begin_after_the_end_is_refused() -> None:
    sentence = (
        "workloads.urgent.phase: it starts after up to two intervals of 296.064ms: set duration "
        "to at least 888.192ms"
    )
    with pytest.raises(UsageError, match=sentence):
        plan("phases", "smoke", ["duration=500ms"])
