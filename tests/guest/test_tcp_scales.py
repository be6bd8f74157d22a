"""TCP at 10 Mb/s and at 10 Gb/s: what is the same in full-size frames, and which timers of the kernel are behind what is
not.

A bulk flow of iperf3 with a window and one without; and transfers of 4 to 43 segments, one after the other,
through a link of 0.505 of the rate whose port holds four frames, so that the longer ones lose packets. At half
the rate frames would come at the very time at which others leave, and it would be chance who finds room.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from qjump_mn import theory
from qjump_mn.programs.tap.program import TapPlan
from qjump_mn.resolve import plan
from qjump_mn.results import tables
from tests.guest.command import experiment
from tests.guest.laboratory import Laboratory

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

SLOW, MIDDLE, FAST = 1, 10, 1000
"""How many times the rate is that of 10 Mb/s."""
PRESETS = {SLOW: "slow", MIDDLE: "middle", FAST: "fast"}
FRAME_MS = 1.2336
"""Of a full-size frame at 10 Mb/s."""
LEAST_RTO_MS, LEAST_DELAYED_MS, TICK_MS = 200.0, 40.0, 4.0
"""TCP's least retransmission timeout, its least delay of an acknowledgement, and the kernel's tick (250 Hz), in
which it counts its timers: the same at both rates."""
FULL_BYTES, HELD_BYTES = 1522, 152_200
"""A full-size frame, and a port's buffer of 100."""

EXPERIMENT = r"""
title = "TCP at two scales"
topology = "paper12"
warmup = "100ms"
duration = "4s"
replicates = 1
link = { rate = "10Mbit", buffer = "152200B" }

[workloads.bulk]
program = "iperf"
label = "bulk"
level = 0
flows = ["h7>h10"]

[workloads.data]
program = "tap"
label = "at s2"
level = 0
flows = ["h7>h10"]
at = "s2"
packet = "1500B"

[workloads.sink]
program = "command"
label = "sink"
level = 0
role = "serve"
hosts = ["h10"]
ready.listens = "tcp:{port}"
command = ["python3", "-c", '''
import socket
server = socket.create_server(("", {port}))
while True:
    one, _ = server.accept()
    while one.recv(1 << 16):
        pass
    one.close()
''']

# From the first byte to the end that the other side answers with; 5401 is the port of the sink, the third of the workloads.
[workloads.transfers]
program = "command"
label = "transfers"
level = 0
role = "measure"
hosts = ["h7"]
longest = "60s"
command = ["python3", "-c", '''
import json, socket, time
from pathlib import Path

def counters():
    rows = [line.split()[1:] for line in Path("/proc/net/netstat").read_text().splitlines() if "TcpExt" in line]
    return dict(zip(rows[0], map(int, rows[1])))

Path("/proc/sys/net/ipv4/tcp_no_metrics_save").write_text("1")
done = []
for segments in range(4, 44):
    before = counters()
    one = socket.create_connection(("10.0.0.10", 5401))
    time.sleep({warmup_s})
    began_ns = time.monotonic_ns()
    one.sendall(bytes(1448 * segments))
    one.shutdown(socket.SHUT_WR)
    one.recv(1)
    took_ns = time.monotonic_ns() - began_ns
    one.close()
    after = counters()
    counted = [after[key] - before[key] for key in ("TCPTimeouts", "TCPLossProbes")]
    done.append([segments, began_ns, took_ns, *counted])
    time.sleep({warmup_s})
print(json.dumps(done))
''']
numbers.count.json = "[*][0]"

# Reads two bytes, and answers with one.
[workloads.answerer]
program = "command"
label = "answers"
level = 0
role = "serve"
hosts = ["h10"]
ready.listens = "tcp:{port}"
command = ["python3", "-c", '''
import socket
server = socket.create_server(("", {port}))
while True:
    one, _ = server.accept()
    while one.recv(1) and one.recv(1):
        one.sendall(b"c")
''']

# The second byte is held (Nagle) until the first is acknowledged, and that is delayed; 5601 is the port of the answerer.
[workloads.questions]
program = "command"
label = "questions of two writes"
level = 0
role = "measure"
hosts = ["h7"]
longest = "60s"
command = ["python3", "-c", '''
import json, socket, time
one = socket.create_connection(("10.0.0.10", 5601))
took = []
for _ in range(20):
    began_ns = time.monotonic_ns()
    one.sendall(b"a")
    one.sendall(b"b")
    one.recv(1)
    took.append(time.monotonic_ns() - began_ns)
print(json.dumps(took))
''']
numbers.took.json = "[*]"

[arms.window]
label = "window"
workloads = ["bulk", "data"]
window = "6000B"

[arms.wide]
label = "wide"
workloads = ["bulk", "data"]
window = "15500B"

[arms.free]
label = "free"
workloads = ["bulk", "data"]

[arms.lossy]
label = "losses"
workloads = ["sink", "transfers", "data"]
tcp = { tail_loss_probe = false }
link = { trunk_rate = "5050kbit", trunk_buffer = "6088B" }

[arms.probing]
label = "losses, tail-loss probe"
workloads = ["sink", "transfers", "data"]
link = { trunk_rate = "5050kbit", trunk_buffer = "6088B" }

[arms.delayed]
label = "acknowledgements that are delayed"
workloads = ["answerer", "questions", "data"]

[figure]
plot = "latency_cdf"
workload = "data"
arms = ["window"]

[presets.slow]
about = "10 Mb/s"

[presets.middle]
about = "100 Mb/s, for the arm window"
link.rate = "100Mbit"
warmup = "10ms"
duration = "400ms"

[presets.fast]
about = "10 Gb/s"
link.rate = "10Gbit"
warmup = "100us"
duration = "4ms"
arms.lossy.link.trunk_rate = "5050Mbit"
arms.probing.link.trunk_rate = "5050Mbit"
"""


class Transfer(NamedTuple):
    """One transfer; times are in frames, TCP's timers in ms."""

    segments: int
    began_ms: float
    took: float
    took_ms: float
    timeouts: int
    probes: int


class Arm:
    """What an arm left at one of the two rates."""

    def __init__(self, laboratory: Laboratory, name: str, faster: int) -> None:
        preset = PRESETS[faster]
        trial, self.out = laboratory.run(plan("tcp", preset, []), name, name=f"tcp-{preset}-{name}")
        self.frame_ms = FRAME_MS / faster
        assert trial.arm.time_scale == faster
        tap = next(workload for workload in trial.arm.workloads if isinstance(workload, TapPlan))
        table = tables.table(tap, trial, self.out / "raw")
        sent_ns = np.array(table["arrival_ns"].to_pylist()) - theory.delivery_ns(
            theory.frame_bytes(1500), trial.network.link.rate_bps
        )
        self.sent_ms: npt.NDArray[np.float64] = sent_ns / 1e6
        """When each full-size frame left its host; those that were lost at the port are not among them."""

    @property
    def rate(self) -> float:
        """Frames a frame's time, from the first to the last."""
        return (len(self.sent_ms) - 1) / float(self.sent_ms[-1] - self.sent_ms[0]) * self.frame_ms

    def sent_within(self, transfer: Transfer) -> npt.NDArray[np.float64]:
        """When the full-size frames of a transfer left, in ms."""
        ended_ms = transfer.began_ms + transfer.took_ms
        return self.sent_ms[(self.sent_ms >= transfer.began_ms) & (self.sent_ms <= ended_ms)]

    def host_queue(self) -> dict[str, Any]:
        """What tc says of the sender's own interface."""
        read = json.loads((self.out / "asbuilt/ended/tc-h7.json").read_text())
        (levels,) = (root["levels"] for root in read if root["kind"] == "wire")
        (level,) = (level for level in levels if level["packets"])
        return dict(level)

    def questions_ms(self) -> npt.NDArray[np.float64]:
        """How long each of the questions took, in ms."""
        return np.array(json.loads((self.out / "raw/questions-h7.command.txt").read_text())) / 1e6

    def transfers(self) -> dict[int, Transfer]:
        """By their numbers of segments."""
        rows = json.loads((self.out / "raw/transfers-h7.command.txt").read_text())
        return {
            segments: Transfer(
                segments, began / 1e6, took / 1e6 / self.frame_ms, took / 1e6, *counts
            )
            for segments, began, took, *counts in rows
        }


Arms = dict[tuple[str, int], Arm]


@pytest.fixture(scope="module")
def arms(laboratory: Laboratory, tmp_path_factory: pytest.TempPathFactory) -> Arms:
    folder = experiment(tmp_path_factory.mktemp("tcp"), "tcp", EXPERIMENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return {
            (name, faster): Arm(laboratory, name, faster)
            for name in ("window", "wide", "free", "lossy", "probing", "delayed")
            for faster in ((SLOW, MIDDLE, FAST) if name == "window" else (SLOW, FAST))
        }


@pytest.mark.parametrize(
    ("name", "slower", "rate"), [("window", MIDDLE, 0.566), ("wide", SLOW, 0.999)]
)
def test_with_a_window_and_without_losses_as_many_frames_leave(
    name: str, slower: int, rate: float, arms: Arms
) -> None:
    slow, fast = arms[name, slower], arms[name, FAST]
    assert min(len(slow.sent_ms), len(fast.sent_ms)) > 1500
    assert slow.rate == pytest.approx(rate, abs=0.002)
    assert fast.rate == pytest.approx(slow.rate, rel=0.003)


def test_a_window_of_three_packets_has_another_rhythm_at_10_mb_a_second(arms: Arms) -> None:
    """579 frames in the time of 1000 instead of 566. It changes between 12 and 20 Mb/s, where a round
    trip is as long as a tick; neither delayed acknowledgements nor TCP small queues are behind it.
    """
    slow, middle = (arms["window", faster].rate for faster in (SLOW, MIDDLE))
    assert 0.02 < slow / middle - 1 < 0.03


def test_without_a_window_the_host_holds_a_millisecond_of_the_link_and_that_does_not_scale(
    arms: Arms,
) -> None:
    """TCP small queues let a socket have 1 ms of its rate below it, two frames at least."""
    slow, fast = (arms["free", faster].host_queue() for faster in (SLOW, FAST))
    assert slow["drops"] == fast["drops"] == 0
    assert slow["max_backlog"] < 20 * FULL_BYTES
    # Of 810 frames the receiver's window allows as many.
    assert 60 * FULL_BYTES < fast["max_backlog"] < HELD_BYTES


@pytest.mark.parametrize("name", ["lossy", "probing"])
def test_a_transfer_without_losses_takes_as_many_frames(name: str, arms: Arms) -> None:
    slow, fast = (arms[name, faster].transfers() for faster in (SLOW, FAST))
    for segments in (4, 5, 6, 7):
        assert fast[segments].took == pytest.approx(slow[segments].took, abs=0.02)
        # The segments on the slow link and on three fast ones, and the end's way back.
        assert 2 * segments + 3 < fast[segments].took < 2 * segments + 6


@pytest.mark.parametrize("name", ["lossy", "probing"])
@pytest.mark.parametrize("faster", [SLOW, FAST])
def test_a_timeout_idles_the_link_for_200_ms_at_both_rates(
    name: str, faster: int, arms: Arms
) -> None:
    """162 frames at 10 Mb/s, 162,000 at 10 Gb/s."""
    arm = arms[name, faster]
    transfers = list(arm.transfers().values())
    # A probe of the last packet in flight waits for the least timeout too.
    waits = [one for one in transfers if one.took_ms >= LEAST_RTO_MS]
    assert [one.segments for one in waits] == [8, 9, 10, 35]
    if name == "lossy":
        assert sum(one.timeouts for one in transfers) == len(waits)
        assert all(one.timeouts == 1 for one in waits)
    for one in waits:
        # The last to go may be the small frame that ends the connection.
        idle_ms = float(np.diff([*arm.sent_within(one), one.began_ms + one.took_ms]).max())
        # A round trip behind the port's queue and ticks are added to the least timeout, and one of a probe before it.
        ticks = 3 if name == "lossy" else 4
        most_ms = 2 * (one.segments + 8) * arm.frame_ms + ticks * TICK_MS
        assert 0 <= idle_ms - LEAST_RTO_MS <= most_ms
        rest = (one.took_ms - idle_ms) / arm.frame_ms
        assert 0 < rest < 2 * one.segments + 20


def _apart(slow: dict[int, Transfer], fast: dict[int, Transfer]) -> list[float]:
    """By how many frames those differ that lost packets, and at neither rate waited for a timeout."""
    pairs = ((slow[n], fast[n]) for n in slow if n > 7)
    return [abs(a.took - b.took) for a, b in pairs if max(a.took_ms, b.took_ms) < LEAST_RTO_MS]


@pytest.mark.parametrize("name", ["lossy", "probing"])
def test_what_is_repaired_without_a_timeout_takes_as_many_frames_but_for_a_few(
    name: str, arms: Arms
) -> None:
    slow, fast = (arms[name, faster].transfers() for faster in (SLOW, FAST))
    apart = _apart(slow, fast)
    assert len(apart) == 32
    assert max(apart) < 7
    assert sum(frames < 0.6 for frames in apart) >= 28


def test_a_tail_loss_probe_is_sooner_than_a_transfers_end_only_at_10_mb_a_second(
    arms: Arms,
) -> None:
    """Its timer counts the kernel's ticks, of 3 frames at 10 Mb/s and 3,243 at 10 Gb/s."""
    slow, fast = (arms["probing", faster].transfers().values() for faster in (SLOW, FAST))
    assert sum(one.probes for one in slow) >= 20
    assert sum(one.probes for one in fast) <= 4


@pytest.mark.parametrize("faster", [SLOW, FAST])
def test_a_delayed_acknowledgement_takes_40_ms_at_both_rates(faster: int, arms: Arms) -> None:
    arm = arms["delayed", faster]
    median_ms = float(np.median(arm.questions_ms()))
    # Two round trips of the smallest frames, and ticks.
    assert 0 <= median_ms - LEAST_DELAYED_MS <= 2 * arm.frame_ms + 2 * TICK_MS


def told(arms: Arms) -> list[str]:
    """What docs/similarity.md tells: rows of its table, and a sentence."""

    def row(what: str, value: Callable[[int], str], why: str) -> str:
        return f"| {what} | {value(SLOW)} | {value(FAST)} | {why} |"

    def rate(name: str) -> Callable[[int], str]:
        return lambda faster: f"{1000 * arms[name, faster].rate:.0f}"

    def took(segments: int) -> Callable[[int], str]:
        return lambda faster: f"{lossy[faster][segments].took:.2f}"

    def timeouts(faster: int) -> str:
        least = LEAST_RTO_MS / arms["lossy", faster].frame_ms
        count = sum(one.timeouts for one in lossy[faster].values())
        return f"{count} of {least:,.0f} frames and more"

    def question(faster: int) -> str:
        arm = arms["delayed", faster]
        return f"{np.median(arm.questions_ms()) / arm.frame_ms:,.0f}"

    def held(faster: int) -> str:
        queue = arms["free", faster].host_queue()
        return f"{queue['max_backlog'] / FULL_BYTES:.0f} frames, {queue['drops']} lost"

    def probes(faster: int) -> str:
        return str(sum(one.probes for one in arms["probing", faster].transfers().values()))

    lossy = {faster: arms["lossy", faster].transfers() for faster in (SLOW, FAST)}
    apart = _apart(lossy[SLOW], lossy[FAST])
    return [
        row("window of 6 kB: frames in the time of 1000", rate("window"), f"at 100 Mb/s {rate('window')(MIDDLE)}"),
        row("window of 15.5 kB: frames in the time of 1000", rate("wide"), "no timer takes part"),
        row("a transfer of 7 segments, none lost, in frames", took(7), "no timer takes part"),
        row("timeouts in 40 transfers", timeouts, "the least is 200 ms"),
        row("a question of two small writes, in frames", question, "a delayed acknowledgement: 40 ms"),
        row("tail-loss probes in 40 transfers", probes, "their timer counts ticks of 4 ms"),
        row("most in the host's own queue, no window", held, "TCP small queues, 1 ms of the link; the receiver's window"),
        f"Of {len(apart)} other transfers that lose packets {sum(frames < 0.6 for frames in apart)} take as many "
        f"frames within 0.6, and none differs by more than {max(apart):.1f}.",
    ]  # fmt: skip


def test_the_page_tells_these_numbers(arms: Arms) -> None:
    page = " ".join((Path(__file__).parents[2] / "docs/similarity.md").read_text().split())
    assert [text for text in told(arms) if text not in page] == []
