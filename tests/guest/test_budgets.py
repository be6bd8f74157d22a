"""A budget has one meaning: what it lets through in the guest and in the simulator, for packets of
all sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qjump_mn.results import directory
from tests.guest.command import experiment
from tests.guest.test_smoke import ran

pytestmark = pytest.mark.guest

FRAME_US = 1233.6
"""Of a full-size frame at 10 Mb/s."""
EPOCH_US = 20_000
SIZES = {24: 16, 238: 5, 700: 2, 1472: 1}
"""Payloads, and how many datagrams of each take 1,542 B of the wire at most: of 94, 308, 770 and
1,542 B."""

EXPERIMENT = """
title = "Budgets in packets of all sizes"
topology = "star60"
backends = ["guest", "simulator"]
warmup = "100ms"
duration = "1s"
replicates = 1

[qjump.limit]
budget_packet = "1542B"
epoch = "20ms"
factors = {{ 7 = 1 }}

{workloads}
[arms.qjump]
label = "QJump"
workloads = {names}
scheme = "qjump"

[figure]
plot = "latency_cdf"
workload = "of24"

[presets.smoke]
about = "all sizes"
"""
WORKLOAD = """
[workloads.of{payload}]
program = "fanin"
label = "{payload} B"
flows = ["h{host}>h61"]
level = 7
payload = "{payload}B"
streams = {streams}
interval = "41ms"
phase = "{phase}ms"
"""


@pytest.mark.parametrize("scheme", ["qjump", "qjump-edt"])
def test_guest_and_simulator_charge_packets_of_all_sizes_the_same(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each host's burst some datagrams are above its budget, and leave an epoch later; with
    departure times, of which the simulator knows nothing, as with the qdisc."""
    workloads = (
        WORKLOAD.format(payload=size, host=n + 1, streams=fit + excess(fit), phase=4 * n)
        for n, (size, fit) in enumerate(SIZES.items())
    )
    names = [f"of{payload}" for payload in SIZES]
    experiment(tmp_path, "sizes", EXPERIMENT.format(workloads="".join(workloads), names=names))
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    guest = latencies(tmp_path / "guest", "guest", "-s", f"arms.qjump.scheme={scheme}")
    simulator = latencies(tmp_path / "simulator", "simulator")
    for payload, fit in SIZES.items():
        # A row for each datagram of a burst, in the order in which they arrive.
        ours, theirs = (
            found[payload].reshape(fit + excess(fit), -1) for found in (guest, simulator)
        )
        assert min(ours.shape[1], theirs.shape[1]) >= 20
        assert np.abs(ours.mean(axis=1) - theirs.mean(axis=1)).max() < FRAME_US, payload
        assert np.ptp(ours, axis=1).max() < FRAME_US, payload
        for found in (ours, theirs):
            assert (found[:fit] < EPOCH_US / 2).all() and (found[fit:] >= EPOCH_US).all(), payload


@pytest.mark.parametrize("scheme", ["qjump", "qjump-edt"])
def test_a_limiter_counts_its_drops_in_the_links_of_a_trial(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a program above the qdiscs drops, which no qdisc counts."""
    burst = WORKLOAD.format(payload=1472, host=1, streams=6, phase=0)
    (tmp_path / "experiments").mkdir()
    text = EXPERIMENT.format(workloads=burst, names=["of1472"]).replace('"of24"', '"of1472"')
    (tmp_path / "experiments" / "full.toml").write_text(text)
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    settings = [f"arms.qjump.scheme={scheme}", "qjump.limit.limit_packets=2"]
    options = [word for setting in settings for word in ("-s", setting)]
    assert ran("full", tmp_path / "out", "--backend", "guest", *options) == 0
    data = directory.existing(tmp_path / "out" / "last").data("qjump/1")
    lost = pq.read_table(data / "of1472.parquet")["latency_us"].null_count
    loads = pq.read_table(data / "links.parquet").to_pylist()
    drops = {(row["source"], row["level"]): row["drops"] for row in loads if row["drops"]}
    assert drops == {("h1", 7): lost} and lost >= 20


def excess(fit: int) -> int:
    """How many datagrams are above a budget that has room for ``fit``."""
    return max(1, fit // 4)


def latencies(
    out: Path, backend: str, *options: str
) -> dict[int, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """By payload the one-way times in us, in ascending order."""
    assert ran("sizes", out, "--backend", backend, *options) == 0
    run = directory.existing(out / "last")
    tables: dict[int, pa.Table] = {
        payload: pq.read_table(run.data("qjump/1") / f"of{payload}.parquet") for payload in SIZES
    }
    assert all(table["latency_us"].null_count == 0 for table in tables.values())
    return {payload: np.sort(table["latency_us"].to_numpy()) for payload, table in tables.items()}
