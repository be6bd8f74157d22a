"""One plan at 10 Mb/s and at 10 Gb/s: in full-size frames it is the same.

Four hosts send bursts of datagrams to a fifth, which meet at two ports whose buffers are too small;
beside that, pings alone.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qjump_mn.results import directory
from qjump_mn.results.directory import RunDirectory
from tests.guest import command

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

FRAME_NS = 1_233_600
"""Of a full-size frame at 10 Mb/s; of the numbers below all times are at this rate."""
INTERVAL_US = 60_000
PHASES_US = {"h1": 0, "h2": 7_710, "h7": 4_318, "h11": 3_392}
"""Of each sender: quarters of a frame apart. Each sends ten datagrams at a time."""
PORTS = {"s1": ("s1", "s0"), "s2": ("s2", "s0"), "s0": ("s0", "s3"), "s3": ("s3", "h10")}
"""That they cross, by the switch."""
CYCLES = range(3, 13)
"""Of the fifteen that are measured; by then all hosts send."""

HEAD = """
title = "Bursts that meet"
topology = "paper12"
warmup = "100ms"
duration = "900ms"
replicates = 1
link = {{ rate = "{rate}", buffer = "12336B", trunk_buffer = "9252B" }}

[workloads.ping]
program = "ping"
tool = "nsping"
label = "ping"
level = 7
flows = ["h8>h10"]
interval = "10ms"
{workloads}
[arms.idle]
label = "idle"
workloads = ["ping"]
scheme = "priorities"

[arms.met]
label = "met"
workloads = {met}
scheme = "priorities"

[figure]
plot = "latency_cdf"
workload = "ping"
arms = ["idle"]

[presets.slow]
about = "10 Mb/s"

[presets.fast]
about = "10 Gb/s"
link.rate = "10Gbit"
warmup = "100us"
duration = "900us"
workloads.ping.interval = "10us"
"""


def experiment() -> str:
    texts, fast, names = [], [], []
    for host, phase_us in PHASES_US.items():
        texts.append(
            f'\n[workloads.{host}]\nprogram = "fanin"\nlabel = "{host}"\nlevel = 0\nflows = ["{host}>h10"]\n'
            f'streams = 10\npayload = "1472B"\ninterval = "{INTERVAL_US}us"\nphase = "{phase_us}us"\n'
        )
        fast.append(
            f'workloads.{host} = {{ interval = "{INTERVAL_US}ns", phase = "{phase_us}ns" }}'
        )
        names.append(host)
    for switch in PORTS:
        flow = "h7>h10" if switch == "s2" else "h1>h10"
        texts.append(
            f'\n[workloads.tap_{switch}]\nprogram = "tap"\nlabel = "at {switch}"\nlevel = 0\n'
            f'flows = ["{flow}"]\nat = "{switch}"\npacket = "1500B"\n'
        )
        names.append(f"tap_{switch}")
    text = HEAD.format(rate="10Mbit", workloads="".join(texts), met=names)
    return text + "\n".join(fast) + "\n"


class Scale:
    """A run, with times in full-size frames."""

    def __init__(self, run: RunDirectory, faster: int) -> None:
        self.run = run
        self.frame_ns = FRAME_NS / faster
        self.cycle_ns = INTERVAL_US * 1000 / faster

    def table(self, arm: str, workload: str) -> pa.Table:
        return pq.read_table(self.run.data(f"{arm}/1") / f"{workload}.parquet")

    def pings(self) -> npt.NDArray[np.float64]:
        """The round trips of the idle network, in frames."""
        return np.array(self.table("idle", "ping")["latency_us"].to_pylist()) * 1e3 / self.frame_ns

    def departures(self, switch: str) -> npt.NDArray[np.float64]:
        """Of each frame that left the switch in the cycles compared, in order: since when, from the
        beginning of the first cycle, and how long it had been there, in frames; shape (frames,
        2)."""
        table = self.table("met", f"tap_{switch}")
        starts = np.array(table["start_ns"].to_pylist())
        began = starts.min() // self.cycle_ns + CYCLES.start
        at = starts / self.cycle_ns - began
        inside = (at >= 0) & (at < len(CYCLES))
        waited = np.array(table["latency_us"].to_pylist()) * 1e3 / self.frame_ns
        return np.column_stack([at[inside] * self.cycle_ns / self.frame_ns, waited[inside]])

    def order(self) -> list[str]:
        """Whose datagrams came to h10, one after the other, in the cycles compared."""
        came: list[tuple[float, str]] = []
        for host in PHASES_US:
            table = self.table("met", host)
            pairs = zip(
                *(table[name].to_pylist() for name in ("sent_ns", "latency_us")), strict=True
            )
            came += [(sent + us * 1e3, host) for sent, us in pairs if us is not None]
        began = (min(came)[0] // self.cycle_ns + CYCLES.start) * self.cycle_ns
        ended = began + len(CYCLES) * self.cycle_ns
        return [host for when, host in sorted(came) if began <= when < ended]

    def lost(self) -> dict[str, list[int]]:
        """By host, how many of the ten datagrams of each cycle were lost."""
        return {
            host: [10 - len(rows) for rows in self._arrived(host).values()] for host in PHASES_US
        }

    def way(self, host: str) -> npt.NDArray[np.float64]:
        """When the datagrams of the cycles compared arrived, in frames from when they were due.

        Not from when the program sent them: at both rates it reads the clock three times for each,
        which takes 30 ns (docs/emulation.md), so the last of ten is sent 280 ns late. None waits
        for that, as a host's link is busy with the first for longer.
        """
        arrived = np.array([ns for rows in self._arrived(host).values() for ns in rows])
        return np.asarray(arrived / self.frame_ns)

    def _arrived(self, host: str) -> dict[int, list[float]]:
        table = self.table("met", host)
        cycles: dict[int, list[float]] = {}
        columns = [table[name].to_pylist() for name in ("due_ns", "sent_ns", "latency_us")]
        first = min(columns[0])
        for due, sent, latency_us in zip(*columns, strict=True):
            rows = cycles.setdefault(round((due - first) / self.cycle_ns), [])
            if latency_us is not None:
                rows.append(latency_us * 1e3 + sent - due)
        return {number: rows for number, rows in cycles.items() if number in CYCLES}


@pytest.fixture(scope="module")
def scales(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scale, Scale]:
    folder = command.experiment(tmp_path_factory.mktemp("scales"), "scales", experiment())

    def ran(preset: str, faster: int) -> Scale:
        command.succeeds("scales", "--preset", preset, "--out", preset, cwd=folder)
        run = directory.existing(Path(folder / preset / "last"))
        assert {arm.time_scale for arm in run.manifest.plan.arms} == {faster}
        return Scale(run, faster)

    return ran("slow", 1), ran("fast", 1000)


def test_pings_take_as_many_frames(scales: tuple[Scale, Scale]) -> None:
    slow, fast = (scale.pings() for scale in scales)
    assert len(slow) == len(fast) > 80
    assert np.median(fast) == pytest.approx(np.median(slow), abs=0.05)


@pytest.mark.parametrize("switch", PORTS)
def test_frames_leave_every_port_at_the_same_times(
    switch: str, scales: tuple[Scale, Scale]
) -> None:
    slow, fast = (scale.departures(switch) for scale in scales)
    assert len(slow) >= 9 * len(CYCLES)
    assert fast == pytest.approx(slow, abs=0.05)


def test_they_come_in_the_same_order(scales: tuple[Scale, Scale]) -> None:
    slow, fast = (scale.order() for scale in scales)
    assert set(slow) == set(PHASES_US)
    assert fast == slow


def test_as_many_are_lost(scales: tuple[Scale, Scale]) -> None:
    slow, fast = (scale.lost() for scale in scales)
    assert fast == slow
    assert all(len(cycles) == len(CYCLES) for cycles in slow.values())
    assert sum(map(sum, slow.values())) > 6 * len(CYCLES), "the buffers are too small"


@pytest.mark.parametrize("host", PHASES_US)
def test_datagrams_take_as_many_frames(host: str, scales: tuple[Scale, Scale]) -> None:
    slow, fast = (scale.way(host) for scale in scales)
    assert fast == pytest.approx(slow, abs=0.05)
