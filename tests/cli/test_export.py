"""Frames for Wireshark and Perfetto: tshark reads what was recorded."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from qjump_mn import resolve
from qjump_mn.cli import export
from qjump_mn.errors import LostError, UsageError
from qjump_mn.model.topology import Network
from qjump_mn.results import frames, pcapng, perfetto
from qjump_mn.results.frames import Frames
from tests.support import synthetic
from tests.support.recorded import Event, crossing, ping, recorded, tcp

ZERO = 5 * 10**9
WAY = ("h8", "s2", "s0", "s3", "h10")


@pytest.fixture(scope="module")
def network() -> Network:
    return resolve.plan("fig3a", "smoke", []).shown.network


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, network: Network) -> Frames:
    """A ping over four hops, of which one took 250 us, and a segment that was dropped."""
    folder = tmp_path_factory.mktemp("recorded")
    port = network.interfaces()["s0", "s3"]
    segment = tcp("10.0.0.7", "10.0.0.10", (40000, 5301), 77)
    echo = ping("10.0.0.8", "10.0.0.10", 3)
    events = [
        *crossing(
            network, WAY, echo, at=ZERO + 1234, length=106, waits=(0, 0, 250_000, 0), level=6
        ),
        Event(port, 0, 1522, ZERO + 99_000, 0, 0, 2, segment),
    ]
    (folder / "asbuilt").mkdir()
    text = recorded(folder / "trace", events, from_ns=ZERO, to_ns=ZERO + 10**9)
    (folder / "asbuilt/frames.json").write_bytes(text)
    read = frames.read(folder)
    assert read is not None
    return read


def ends(network: Network) -> dict[str, tuple[str, str]]:
    return network.ways()


@pytest.fixture
def capture(tmp_path: Path, found: Frames, network: Network) -> Path:
    path = tmp_path / "capture.pcapng"
    path.write_bytes(b"".join(pcapng.blocks(found, ends(network), ZERO)))
    return path


def test_tshark_reads_every_frame_at_its_port_and_time(capture: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    fields = ("frame.interface_name", "frame.time_epoch", "frame.len", "frame.cap_len", "vlan.priority",
              "ip.src", "icmp.seq", "tcp.dstport", "frame.comment")  # fmt: skip
    argv = ["tshark", "-r", str(capture), "-T", "fields", *(f"-e{field}" for field in fields)]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in printed.splitlines()]
    assert [row[0] for row in rows] == [
        "h8 to s2", "s2 to s0", "s0 to s3", "s0 to s3", "s3 to h10",
    ]  # fmt: skip
    assert [row[1] for row in rows] == [
        "0.000001234", "0.000092434", "0.000099000", "0.000433634", "0.000524834",
    ]  # fmt: skip
    assert rows[0][2:8] == ["102", "96", "6", "10.0.0.8", "3", ""]
    assert rows[2][2] == "1518" and rows[2][5:] == [
        "10.0.0.7", "", "5301", "dropped: its queue was full",
    ]  # fmt: skip


def test_blocks_have_their_length_at_both_ends(capture: Path) -> None:
    data, place, kinds = capture.read_bytes(), 0, Counter[int]()
    while place < len(data):
        kind, size = struct.unpack_from("<II", data, place)
        assert size % 4 == 0
        assert struct.unpack_from("<I", data, place + size - 4) == (size,)
        kinds[kind] += 1
        place += size
    assert kinds == {0x0A0D0D0A: 1, 1: 4, 6: 5}


def test_perfetto_gets_a_track_a_port_a_slice_a_frame_and_arrows(
    found: Frames, network: Network
) -> None:
    rates = {device: link.rate_bps for device, link in network.by_device().items()}
    text = b"".join(perfetto.lines(found, ends(network), rates, ZERO))
    events = json.loads(text)["traceEvents"]
    phases = Counter(event["ph"] for event in events)
    # Four nodes send, from a port each.
    assert phases == {"M": 8, "X": 4, "i": 1, "s": 1, "t": 2, "f": 1}
    slices = [event for event in events if event["ph"] == "X"]
    assert [event["ts"] for event in slices] == [1.234, 92.434, 433.634, 524.834]
    assert {event["dur"] for event in slices} == {91.2}
    assert [event["args"]["waited_us"] for event in slices] == [0, 0, 250, 0]
    arrows = [event for event in events if event["ph"] in "stf"]
    assert [(event["ts"], event["tid"], event["pid"]) for event in arrows] == [
        (event["ts"], event["tid"], event["pid"]) for event in slices
    ]
    assert len({event["id"] for event in arrows}) == 1


def test_export_says_what_is_missing(tmp_path: Path) -> None:
    plain = synthetic.create(tmp_path / "plain", resolve.plan("fig3a", "smoke", []))
    with pytest.raises(UsageError, match=r"add --pcapng, --perfetto or both"):
        export.export(plain.path, tmp_path, as_pcapng=False, as_perfetto=False, arms=())
    with pytest.raises(UsageError, match="no frames were recorded: run it with --watch"):
        export.export(plain.path, tmp_path, as_pcapng=True, as_perfetto=False, arms=())
    plan = resolve.plan("fig3a", "smoke", [], only=["qjump"], watched="1s:1s")
    watched = synthetic.create(tmp_path / "watched", plan)
    with pytest.raises(UsageError, match="the run has no arm 'qjmp'"):
        export.export(watched.path, tmp_path, as_pcapng=True, as_perfetto=False, arms=["qjmp"])
    with pytest.raises(UsageError, match="no watched trial is done"):
        export.export(watched.path, tmp_path, as_pcapng=True, as_perfetto=False, arms=())
    watched.prepare("qjump/1")
    (watched.trial("qjump/1") / "trial.json").write_text(
        '{"cpu_busy": 0, "window_s": [0, 1], "began_ns": 0, "began_utc_ns": 0, "read_ns": {}}'
    )
    watched.finish("qjump/1", synthetic.DONE)
    with pytest.raises(LostError, match="qjump/1: its file of frames is missing"):
        export.export(watched.path, tmp_path, as_pcapng=True, as_perfetto=False, arms=())
