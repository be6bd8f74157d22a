"""The pages of trials over time: their numbers are those of the tables and of the readings, and
nothing that a program said becomes markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from qjump_mn import resolve
from qjump_mn.analysis import pipeline
from qjump_mn.cli.bundle import writing
from qjump_mn.programs import registry, tracks
from qjump_mn.programs.facts import TrialFacts, TrialTables
from qjump_mn.programs.tracks import Track
from qjump_mn.report.timelines import packing, page
from qjump_mn.results import contents, formatting
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.queues import Line, Queues
from tests.analysis.test_forged import ARMS, REAL, mend
from tests.support import synthetic

FACTS = TrialFacts(cpu_busy=0.0, window_s=(2.0, 12.0), began_ns=10**9, began_utc_ns=5 * 10**9)


def real_run(folder: Path) -> RunDirectory:
    """Three trials of a real run: Figure 3a, preset smoke."""
    run = synthetic.create(folder, resolve.plan("fig3a", "smoke", [], only=ARMS))
    with tarfile.open(REAL) as archive:
        archive.extractall(run.path)
    mend(run)
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    made = real_run(tmp_path_factory.mktemp("timelines"))
    pipeline.analyse(made.path)
    return made


class Page:
    """A page's data, as its script reads it."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text()
        found = re.search(
            r'<script type="application/json" id="data">(.*?)</script>', self.text, re.DOTALL
        )
        packed = re.search(
            r'<script type="text/plain" id="numbers">(.*?)</script>', self.text, re.DOTALL
        )
        assert found and packed
        self.data = json.loads(found[1])
        self.words = zlib.decompress(base64.b64decode(packed[1]))

    def whole(self, place: list[int]) -> npt.NDArray[np.int64]:
        return np.frombuffer(self.words, "<i4", place[1], 4 * place[0]).astype(np.int64)

    def floats(self, place: list[int]) -> npt.NDArray[np.float32]:
        return np.frombuffer(self.words, "<f4", place[1], 4 * place[0])

    def seconds(self, place: list[int]) -> npt.NDArray[np.float64]:
        ticks = np.cumsum(self.whole(place)) - self.data["zero"]
        seconds: npt.NDArray[np.float64] = ticks * self.data["tick_ns"] / 1e9
        return seconds

    def lane(self, title: str) -> dict[str, Any]:
        """The lane with this in its heading."""
        headings = re.findall(r'<details class="lane" open>\n<summary>(.*?)</summary>', self.text)
        lane: dict[str, Any] = self.data["lanes"][
            next(n for n, one in enumerate(headings) if title in one)
        ]
        return lane


def test_every_request_is_there_with_its_time(run: RunDirectory) -> None:
    made = Page(run.path / "timeline/contended-1.html")
    (line,) = made.lane("round-trip time, ms")["lines"]
    table = pq.read_table(run.data("contended/1") / "ping.parquet")
    answered = table.filter(pa.compute.is_valid(table["latency_us"]))
    facts = json.loads((run.trial("contended/1") / "trial.json").read_text())
    sent_s = (
        answered["received_s"].to_numpy()
        - answered["latency_us"].to_numpy() / 1e6
        - facts["began_utc_ns"] / 1e9
    )
    assert line["came"] == answered.num_rows > 300
    assert line["lost"][1] == table["latency_us"].null_count
    assert made.seconds(line["at"]) == pytest.approx(np.sort(sent_s), abs=2e-6)
    in_order = answered["latency_us"].to_numpy()[np.argsort(sent_s, kind="stable")]
    assert made.floats(line["values"]) == pytest.approx(in_order / 1e3, rel=1e-6)
    window = (made.data["window"]) * made.data["tick_ns"] / 1e9
    assert window == pytest.approx(facts["window_s"][1] - facts["window_s"][0], abs=1e-6)


def test_what_ports_had_at_the_readings_is_what_tc_printed(run: RunDirectory) -> None:
    made = Page(run.path / "timeline/contended-1.html")
    (line, *_) = made.lane("Bytes that wait at a port")["lines"]
    facts = json.loads((run.trial("contended/1") / "trial.json").read_text())
    network = run.manifest.plan.shown.network
    link, level = line["name"].split(", priority ")
    switch, neighbour = next(pair for pair in network.interfaces() if formatting.flow(pair) == link)
    device = network.interfaces()[switch, neighbour]
    expected = []
    for when in ("before", "began", "ended", "after"):
        name = f"asbuilt/{when}/tc-{'switches' if switch in network.switches else switch}.json"
        wire = next(
            qdisc
            for qdisc in json.loads((run.trial("contended/1") / name).read_text())
            if qdisc.get("dev") == device and qdisc.get("root")
        )
        (found,) = (each for each in wire["levels"] if each["level"] == int(level))
        expected.append(((facts["read_ns"][name] - facts["began_ns"]) / 1e9, found["backlog"]))
    assert max(backlog for _, backlog in expected) > 1500, (
        "a full queue, when the measurement ended"
    )
    assert made.seconds(line["at"]) == pytest.approx([at_s for at_s, _ in expected], abs=1e-6)
    assert list(made.floats(line["values"])) == [backlog for _, backlog in expected]
    assert "Readings of the ports" in made.text
    assert "each port was read 4 times" in made.text


def test_drops_are_those_between_readings(run: RunDirectory) -> None:
    """The links' table has the measurement's part of them."""
    made = Page(run.path / "timeline/contended-1.html")
    table = pq.read_table(run.data("contended/1") / "links.parquet")
    dropped = {
        f"{formatting.flow((row['source'], row['destination']))}, priority {row['level']}": row[
            "drops"
        ]
        for row in table.to_pylist()
        if row["drops"]
    }
    lines = {
        line["name"]: line for line in made.lane("Packets dropped between two readings")["lines"]
    }
    assert dropped and dropped.keys() <= lines.keys()
    for name, drops in dropped.items():
        assert made.floats(lines[name]["values"])[1] == drops
        assert made.whole(lines[name]["lasts"])[0] > 0


def test_what_was_not_recorded_is_said(run: RunDirectory) -> None:
    qjump = (run.path / "timeline/qjump-1.html").read_text()
    assert "An epoch takes 28.8 ms" in qjump
    assert "When each packet was dropped: ports count drops" in qjump
    assert "Pauses: links without flow control have none." in qjump
    idle = Page(run.path / "timeline/idle-1.html")
    assert idle.data["epoch_ns"] is None


def test_aligned_epochs_end_at_multiples_of_their_length() -> None:
    """Of the clock on which a trial's times are."""
    trial = next(
        trial
        for trial in resolve.plan("phases", "smoke", []).trials()
        if trial.arm.qjump and trial.arm.qjump.epochs == "aligned"
    )
    assert trial.arm.qjump is not None
    epoch_ns = trial.arm.qjump.epoch_ns
    facts = replace(FACTS, began_ns=5 * epoch_ns + 700)
    drawn_as, _ = page._drawn(TrialTables(trial, facts, {}, None), [], [])
    content = json.loads(drawn_as)
    assert content["epoch_ns"] == epoch_ns
    assert content["edge_ns"] == epoch_ns - 700


def test_a_trial_without_readings_has_a_page(tmp_path: Path) -> None:
    made = synthetic.make(tmp_path / "results", only=("idle", "limiter_drop"))
    pipeline.analyse(made.path)
    text = Page(made.path / "timeline/limiter_drop-1.html")
    assert "were not read, or cannot be read" in text.text
    (line,) = text.lane("round-trip time")["lines"]
    assert line["lost"][1] > 0
    assert "is drawn where its number says" in text.text
    assert "limiter_drop-1.html" in (made.path / "report.html").read_text()


def test_they_go_with_a_bundle(run: RunDirectory, tmp_path: Path) -> None:
    bundle = writing.write(run.path, tmp_path / "a.qjump.zip")
    assert {f"timeline/{arm}-1.html" for arm in ARMS} <= set(zipfile.ZipFile(bundle).namelist())


def test_damaged_readings_do_not_stop_the_page(run: RunDirectory, tmp_path: Path) -> None:
    copy = RunDirectory(tmp_path / "run")
    shutil.copytree(run.path, copy.path)
    (copy.asbuilt("contended/1") / "after/tc-h1.json").write_text("[{")
    strange = Queues(1000, 0, 0, [Line("of another network", 0, [5], [3000], [0], [0])])
    (copy.asbuilt("contended/1") / "queues.json").write_bytes(msgspec.json.encode(strange))
    data, _ = pipeline.read_trials(copy, copy.manifest)
    page.write(copy, copy.manifest, data)
    assert (
        "were not read, or cannot be read" in (copy.path / "timeline/contended-1.html").read_text()
    )


def test_nothing_ends_a_script_and_the_policy_names_ours(run: RunDirectory, tmp_path: Path) -> None:
    copy = RunDirectory(tmp_path / "run")
    shutil.copytree(run.path, copy.path)
    evil = "</script><script>alert(1)</script><!-- \u2028"
    manifest = run.manifest
    arms = tuple(
        replace(arm, label=evil, workloads=tuple(replace(one, label=evil) for one in arm.workloads))
        for arm in manifest.plan.run.arms
    )
    plan = synthetic.altered(manifest.plan, run={"arms": arms})
    changed = replace(manifest, plan=plan)
    data, _ = pipeline.read_trials(copy, changed)
    rows = data[0].tables["ping"]
    named = rows.set_column(0, "flow", pa.array([evil] * rows.num_rows))
    trial = replace(data[0].trial, arm=arms[0])
    page.write(copy, changed, [replace(data[0], trial=trial, tables={"ping": named})])
    text = (copy.path / "timeline/idle-1.html").read_text()
    assert text.count("<script") == text.count("</script>") == 3
    assert "alert(1)</script>" not in text
    for element in ("script", "style"):
        (ours,) = re.findall(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(ours.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text
    assert "http" not in text.replace("http-equiv", "")


@pytest.mark.parametrize(("count", "most"), [(10, 16), (1000, 100), (1001, 100), (99_999, 1 << 10)])
def test_of_too_many_points_the_extremes_are_kept(count: int, most: int) -> None:
    values = np.random.default_rng(7).normal(size=count)
    rows = packing.kept(values, most)
    assert len(rows) <= max(most, 0 if count > most else count)
    assert list(rows) == sorted(set(rows.tolist()))
    size = -(-count // (most // 2)) if count > most else 1
    for start in range(0, count, size):
        inside = rows[(rows >= start) & (rows < start + size)]
        chunk = values[start : start + size]
        assert {chunk.min(), chunk.max()} <= set(values[inside].tolist())


def test_a_million_requests_are_a_page_of_megabytes(run: RunDirectory, tmp_path: Path) -> None:
    made = million(run, tmp_path)
    assert 10**6 < made.stat().st_size < 7 * 10**6
    (line, *_) = Page(made).data["lanes"][0]["lines"]
    assert line["came"] == 10**6


def million(run: RunDirectory, folder: Path) -> Path:
    """The page of a trial with a million round trips, with noise in every digit that ping
    prints."""
    copy = RunDirectory(folder / "run")
    shutil.copytree(run.path, copy.path)
    random, trial = np.random.default_rng(1), run.manifest.plan.trials()[0]
    sent_s = np.arange(10**6) * 1e-5 + random.normal(size=10**6) * 1e-7
    latency_us = np.round(random.gamma(2, 300, 10**6), 3)
    latency_us[500_000] = 9e5
    facts = replace(FACTS, window_s=(0.0, 10.0))
    columns = {
        "flow": ["h8>h10"] * 10**6,
        "sequence": np.arange(1, 10**6 + 1),
        "received_s": sent_s + latency_us / 1e6 + facts.began_utc_ns / 1e9,
        "latency_us": latency_us,
    }
    tables = TrialTables(trial, facts, {"ping": pa.table(columns)}, None)
    page.write(copy, run.manifest, [tables])
    return copy.path / contents.timeline(trial)


# ---- what programs leave ----


def drawn(
    experiment: str, name: str, columns: str, *rows: tuple[Any, ...], preset: str = "smoke"
) -> list[Track]:
    """The tracks of a workload of an experiment, made of a table."""
    trial, asked = next(
        (trial, workload)
        for trial in resolve.plan(experiment, preset, []).trials()
        for workload in trial.arm.workloads
        if workload.name == name
    )
    types = {name: pa.type_for_alias(kind) for name, kind in registry.of(asked).columns.items()}
    assert types.keys() == set(columns.split())
    listed = [dict(zip(columns.split(), row, strict=True)) for row in rows]
    table = pa.Table.from_pylist(listed, schema=pa.schema(types))
    return list(registry.measures(asked).tracks(table, asked, trial, FACTS))


def test_a_request_without_a_reply_stands_where_its_number_says() -> None:
    """Ten milliseconds after the one before."""
    columns = "flow sequence received_s latency_us"
    lost = [("h8>h10", number, None, None) for number in (1, 2, 3, 4)]
    answered = ("h8>h10", 2, 5.012, 2000.0)
    (track,) = drawn("fig3a", "ping", columns, lost[0], answered, *lost[2:])
    assert track.at_ns / 1e6 == pytest.approx([0, 10, 20, 30])
    assert np.isnan(track.values[[0, 2, 3]]).all() and track.values[1] == 2
    assert track.note
    assert drawn("fig3a", "ping", columns, *lost)[0].at_ns / 1e6 == pytest.approx([0, 10, 20, 30])


def test_streams_of_a_flow_are_summed_and_count_from_the_measurement() -> None:
    goodput, offered, again = drawn(
        "fig3a", "bulk", "flow side stream start_s end_s bytes retransmits",
        ("h7>h10", "receiver", 5, 0.0, 1.0, 125_000, None),
        ("h7>h10", "receiver", 5, 1.0, 2.0, 250_000, None),
        ("h7>h10", "receiver", 7, 0.0, 1.0, 125_000, None),
        ("h7>h10", "receiver", 7, 1.0, 2.0, 125_000, None),
        ("h7>h10", "sender", 5, 0.0, 1.0, 10**6, 3),
    )  # fmt: skip
    assert (goodput.what, goodput.label, goodput.kind) == ("goodput", "h7>h10", "holds")
    assert list(goodput.values) == pytest.approx([2, 3])
    assert list(goodput.at_ns) == [-2e9, -1e9] and goodput.until_ns is not None
    assert list(goodput.until_ns) == [-1e9, 0]
    assert list(offered.values) == [8]
    assert (list(again.values), list(again.at_ns)) == ([3], [-1e9])


def test_a_frame_that_waited_tells_what_left_before_it() -> None:
    """The switch takes 1.5 us for each; one full-size frame at 10 Gb/s takes 1.2304 us."""
    begins = 10**9 + 1500
    frames, queue = drawn(
        "fig3a", "tap", "flow arrival_ns start_ns latency_us",
        ("h8>h10", 10**9, begins, 1.6), ("h8>h10", 10**9 + 100, begins + 100 + 1230, 2.8),
        preset="paper",
    )  # fmt: skip
    assert list(frames.at_ns) == [0, 100]
    assert list(queue.values) == pytest.approx([0, 1230 * 10 / 8])
    assert queue.unit == "B" and queue.note


def test_bursts_copies_requests_and_offsets_have_their_times() -> None:
    noise = ("h6>h11", 10**9 + 5, 10**9 + 9, 8, 5)
    (burst,) = drawn("fig6", "bursts", "flow start_ns end_ns sent arrived", noise)
    assert (list(burst.at_ns), list(burst.values)) == ([5], [3])
    copies = drawn(
        "fig5", "job", "round step source destination bytes start_ns end_ns",
        (0, "shuffle", "h2", "h4", 1, 10**9, 10**9 + 10**6),
        (0, "round", "h2", "h4", 1, 10**9, 10**9 + 3 * 10**6),
    )  # fmt: skip
    assert [(one.label, *one.values) for one in copies] == [("shuffle", 1), ("round", 3)]
    vote = (10**9 + 7, None, 1, None)
    (failed,) = drawn("fig6", "udp", "start_ns votes_ns retries latency_us", vote)
    assert np.isnan(failed.values).all() and list(failed.at_ns) == [7]
    offsets = drawn(
        "fig5", "ptp", "flow at_ns offset_us master_to_slave_us slave_to_master_us",
        ("h9>h6", 5 * 10**9, None, 1.0, None),
        ("h9>h6", 5 * 10**9 + 1, 30.0, 2.0, None),
        ("h9>h6", 5 * 10**9 + 2, 30.0, None, 4.0),
    )  # fmt: skip
    found = {one.label: one for one in offsets}
    assert list(found["h9>h6"].values) == [0.03]
    assert list(found["master to slave, h9>h6"].at_ns) == [0, 1]
    assert list(found["slave to master, h9>h6"].values) == [0.004]


def test_flows_are_told_apart_by_their_size() -> None:
    short, medium = drawn(
        "fig9", "search", "source destination packets start_ps finish_ps",
        ("h1", "h3", 1, 10**12, 10**12 + 10**9), ("h2", "h4", 20, 10**12, None),
    )  # fmt: skip
    assert (short.label, list(short.values)) == ("short", [1])
    assert medium.label == "medium" and np.isnan(medium.values).all()


def test_barriers_and_datagrams_are_drawn_from_when_they_were_due() -> None:
    barriers = drawn(
        "fig3c", "barrier", "host iteration due_ns start_ns latency_us",
        ("h3", 0, 10**9 + 5, 0, 1000.0), ("h6", 0, 10**9, 0, 2000.0),
    )  # fmt: skip
    assert [(one.label, *one.values) for one in barriers] == [("h3", 1), ("h6", 2)]
    count = tracks.MOST_LABELS + 1
    (together,) = drawn(
        "fig11", "urgent", "flow stream sequence due_ns sent_ns latency_us",
        *((f"h{host}>h11", 0, 0, 10**9 + count - 1 - host, 0, float(host)) for host in range(count)),
    )  # fmt: skip
    assert together.label == f"all {count}"
    assert list(together.at_ns) == list(range(count))
    assert list(together.values) == [host / 1e3 for host in reversed(range(count))]
