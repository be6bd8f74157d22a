"""The player: its data are the recorded frames, and a browser shows where they are."""

from __future__ import annotations

import base64
import itertools
import json
import re
import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from qjump_mn import resolve
from qjump_mn.analysis import pipeline
from qjump_mn.report.player import packing
from qjump_mn.report.player.layout import layout
from qjump_mn.results import contents, frames
from qjump_mn.results import manifest as manifests
from qjump_mn.results.directory import RunDirectory
from tests.analysis.test_forged import ARMS, mend
from tests.report.test_pages import CUT, FAINT, LEAST_CONTRAST, OUTSIDE, tab_to
from tests.report.test_timelines import real_run
from tests.resolve.test_wiring import fabric, network
from tests.support.browser import Browser
from tests.support.recorded import Event, crossing, ping, recorded, tcp

PING, BULK = ("h8", "s2", "s0", "s3", "h10"), ("h7", "s2", "s0", "s3", "h10")
LENGTH_NS = 100_000_000
FAT_TREE = (("c", 4), ("a", 8), ("e", 8))


def events(run: RunDirectory, arm: str, zero: int) -> list[Event]:
    """Ten pings, each of which waits at s0 for longer without QJump; bulk data, and one drop."""
    network = run.manifest.plan.shown.network
    level, wait = (6, 1_000) if arm == "qjump" else (0, 5_000_000)
    made = []
    for number in range(10):
        head, at = ping("10.0.0.8", "10.0.0.10", number), zero + 10_000_000 * number
        waits = (0, 0, wait, 0)
        made += crossing(network, PING, head, at=at, length=106, waits=waits, level=level)
        head = tcp("10.0.0.7", "10.0.0.10", (40000, 5301), 1448 * number)
        made += crossing(
            network, BULK, head, at=at + 500, length=1522, waits=(0, 700, 3_000_000, 0)
        )
    port = network.interfaces()["s0", "s3"]
    lost = tcp("10.0.0.7", "10.0.0.10", (40000, 5301), 999)
    return [*made, Event(port, 0, 1522, zero + 42_000_000, 0, 0, -1, lost)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A real run, with made-up frames of its three arms."""
    folder = tmp_path_factory.mktemp("player")
    made = real_run(folder)
    plan = resolve.plan("fig3a", "smoke", [], only=ARMS, watched="1s:100ms")
    manifests.write(made.path, msgspec.structs.replace(made.manifest, plan=plan))
    for trial in plan.trials():
        facts = json.loads((made.trial(trial.name) / "trial.json").read_text())
        zero = facts["began_ns"] + 1_000_000_000
        text = recorded(
            folder / trial.arm.name, events(made, trial.arm.name, zero), from_ns=zero,
            to_ns=zero + LENGTH_NS,
        )  # fmt: skip
        (made.trial(trial.name) / "asbuilt/frames.json").write_bytes(text)
    mend(made)
    pipeline.analyse(made.path)
    return made


def data_of(run: RunDirectory) -> tuple[dict[str, Any], list[bytes]]:
    """The page's data, and the numbers of each arm."""
    text = (run.path / contents.PLAYER).read_text()
    told = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)
    blobs = re.findall(r'<script type="text/plain" class="numbers">(.*?)</script>', text)
    assert told
    return json.loads(told[1]), [zlib.decompress(base64.b64decode(blob)) for blob in blobs]


def test_arms_of_the_figure_with_most_workloads_are_first(run: RunDirectory) -> None:
    data, blobs = data_of(run)
    assert [arm["name"] for arm in data["arms"]] == ["contended", "qjump", "idle"]
    assert len(blobs) == 3
    assert data["start_ns"] == 1_000_000_000
    assert {arm["until"] * data["tick_ns"] for arm in data["arms"]} == {LENGTH_NS}


def test_rows_are_the_frames_by_port_and_level(run: RunDirectory) -> None:
    data, (blob, *_) = data_of(run)
    arm = data["arms"][0]
    found = frames.read(run.trial("contended/1"))
    assert found is not None

    def words(place: list[int]) -> list[int]:
        return [int(word) for word in np.frombuffer(blob, "<i4", place[1], 4 * place[0])]

    came = np.cumsum(words(arm["rows"]["came"])) * data["tick_ns"]
    rows = []
    for port, level, first, count in arm["lanes"]:
        way = arm["ports"][port]["from"], arm["ports"][port]["to"]
        for row in range(first, first + count):
            waited, size = (words(arm["rows"][name])[row] for name in ("waited", "bytes"))
            rows.append((*way, level, came[row], waited * data["tick_ns"], size))
    ends = run.manifest.plan.shown.network.ways()
    zero = found.from_ns
    expected = [
        (*ends[found.devices[device]], level, arrival - zero, waited, length)
        for device, level, length, arrival, waited in zip(
            found.device, found.level, found.length, found.arrival, found.waited, strict=True
        )
        if waited >= 0
    ]
    assert sorted(rows) == sorted(expected)
    assert words(arm["drops"]["came"]) == [42_000_000 // data["tick_ns"]]


def test_flows_are_named_after_workloads_the_measured_first(run: RunDirectory) -> None:
    data, _ = data_of(run)
    first, second = data["arms"][0]["flows"]
    assert first.endswith("h8 \N{RIGHTWARDS ARROW} h10, ICMP") and "ping" in first
    assert second.endswith("h7 \N{RIGHTWARDS ARROW} h10, TCP")


def test_a_level_whose_frames_overtake_has_several_lanes() -> None:
    group = np.array([0, 0, 0, 0, 1, 1])
    start = np.array([5, 9, 6, 7, 8, 8])
    lane = packing._without_overtaking(group, start)
    assert lane.tolist() == [0, 0, 1, 1, 2, 2]
    assert packing._without_overtaking(group[:0], start[:0]).tolist() == []


def test_layout_has_a_row_for_each_host_and_a_link_for_each_edge() -> None:
    network = resolve.plan("fig3a", "smoke", []).shown.network
    placed = layout(network)
    assert {(link.above, link.below) for link in placed.links} == set(network.edges)
    hosts = [node for node in placed.nodes if not node.switch]
    assert len({node.top for node in hosts}) == len(network.hosts)
    assert all(node.x >= 0 and node.bottom <= placed.height for node in placed.nodes)


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        (fabric(4, 4, 2), [["spine1", "spine2"], ["rack1", "rack2", "rack3", "rack4"]]),
        (
            {"switches": {}, "fat_tree": {"ports": 4}},
            [[f"{kind}{place + 1}" for place in range(count)] for kind, count in FAT_TREE],
        ),
    ],
    ids=["fabric", "fat-tree"],
)
def test_layout_has_a_layer_in_each_column(
    changes: dict[str, Any], layers: list[list[str]]
) -> None:
    made = network(**changes)
    placed = layout(made)
    columns = [list(nodes) for _, nodes in itertools.groupby(placed.nodes, key=lambda node: node.x)]
    assert [[node.name for node in nodes] for nodes in columns] == [*layers, [*made.hosts]]
    for nodes in columns:
        assert nodes[0].top >= 0 and nodes[-1].bottom <= placed.height
        assert all(one.bottom < other.top for one, other in itertools.pairwise(nodes))
    by_name = {node.name: node for node in placed.nodes}
    ends = {(link.above, link.below): (link.left, link.right) for link in placed.links}
    assert set(map(frozenset, ends)) == {frozenset(pair) for pair, _ in made.wiring()}
    points = set(itertools.chain.from_iterable(ends.values()))
    assert len(points) == 2 * len(made.wiring()), "each end has a row of its own"
    for (above, below), (left, right) in ends.items():
        assert left[0] < right[0] == by_name[below].x
        for name, (_, y) in ((above, left), (below, right)):
            assert by_name[name].top < y < by_name[name].bottom


def test_report_links_the_player(run: RunDirectory) -> None:
    assert 'href="player.html"' in (run.path / "report.html").read_text()


def test_a_damaged_file_leaves_its_arm_out(run: RunDirectory, tmp_path: Path) -> None:
    path = run.trial("idle/1") / "asbuilt/frames.json"
    before = path.read_bytes()
    path.write_bytes(b"{")
    try:
        pipeline.analyse(run.path)
        assert [arm["name"] for arm in data_of(run)[0]["arms"]] == ["contended", "qjump"]
        assert "its frames cannot be read" in (run.path / contents.PLAYER).read_text()
    finally:
        path.write_bytes(before)
        pipeline.analyse(run.path)


# ---- in a browser ----


SHOWN = "document.getElementById('clock').textContent"
SAID = (
    "new Promise(done => setTimeout(() => done(document.getElementById('said').textContent), 400))"
)
PICTURES = "[...document.querySelectorAll('canvas')].map(each => each.toDataURL())"
SIZES = """sides.map(side => {
  const { layout } = side.arm, scale = scaleOf(side), corner = cornerOf(side);
  return [layout.width * scale <= side.width + 0.5, layout.height * scale <= side.height + 0.5,
          ROW * scale > LEAST_ROW - 0.01, Math.max(0, corner.x), Math.max(0, corner.y)];
})"""
TABLES = """[...document.querySelectorAll('tbody')].map(body => [...body.rows].map(row =>
  [...row.cells].map(cell => cell.textContent)))"""


@pytest.fixture
def player(run: RunDirectory, browser: Browser) -> Browser:
    browser.open(run.path / contents.PLAYER, 1280)
    return browser


def micros(player: Browser) -> float:
    return float(player.run(SHOWN).split(" ")[0].replace(",", ""))


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_cut_or_sticks_out(run: RunDirectory, browser: Browser, width: int) -> None:
    browser.open(run.path / contents.PLAYER, width)
    browser.press("n")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(OUTSIDE) == [] and browser.run(CUT) == []
    assert browser.errors() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_enough_contrast(run: RunDirectory, browser: Browser, dark: bool) -> None:
    browser.open(run.path / contents.PLAYER, 1280, dark=dark)
    found = browser.run(FAINT % LEAST_CONTRAST)
    assert found["seen"] > 20 and found["faint"] == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("hosts", [12, 100])
def test_all_of_a_network_is_in_its_picture_and_its_names_are_legible(
    run: RunDirectory, browser: Browser, width: int, hosts: int
) -> None:
    browser.open(run.path / contents.PLAYER, width)
    height = layout(run.manifest.plan.shown.network).height * hosts / 12
    browser.run(f"sides.forEach(side => {{ side.arm.layout.height = {height}; fit(side); }})")
    assert browser.run(SIZES) == [[True, True, True, 0, 0]] * 2


def test_every_picture_is_told_once(player: Browser) -> None:
    named = player.images()
    assert len(named) == 2 and all(named) and len(set(named)) == 2


def test_arrows_step_from_event_to_event(player: Browser) -> None:
    tab_to(player, "canvas")
    assert micros(player) == 0
    times = []
    for _ in range(3):
        player.press("ArrowRight")
        times.append(micros(player))
    # The first ping is sent at 0, the first segment at 500 ns; frames of 106 bytes take 91.2 us.
    assert times == [0.5, 91.2, 182.4]
    player.press("ArrowLeft")
    assert micros(player) == times[1]


def test_the_followed_packet_says_where_it_waited(player: Browser) -> None:
    tab_to(player, "canvas")
    player.press("n")
    player.press("n")
    assert micros(player) == 20_000
    contended, qjump = player.run(TABLES)
    assert [row[0] for row in contended] == ["h8 → s2", "s2 → s0", "s0 → s3", "s3 → h10"]
    assert [row[3] for row in contended] == ["0.00", "0.00", "5,000.00", "0.00"]
    assert [row[3] for row in qjump] == ["0.00", "0.00", "1.00", "0.00"]
    assert [row[1] for row in qjump] == ["6"] * 4
    player.press("p")
    assert micros(player) == 10_000


def test_what_waits_is_said(player: Browser) -> None:
    player.run("go(24_000 * MICRO)")
    said = player.run(SAID)
    assert said.startswith("At 24,000.0 µs: ")
    assert "waiting at s0 to s3 2 frames, 1628 B, level 0." in said
    assert "waiting at s0 to s3 1 frame, 1522 B, level 0." in said


def test_space_plays_and_stops(player: Browser) -> None:
    tab_to(player, "canvas")
    player.press(" ")
    player.run("new Promise(done => setTimeout(done, 300))")
    player.press(" ")
    stopped = micros(player)
    assert stopped > 0
    player.run("new Promise(done => setTimeout(done, 200))")
    assert micros(player) == stopped


def test_zoom_changes_both_pictures_and_all_restores_them(player: Browser) -> None:
    tab_to(player, "canvas")
    before = player.run(PICTURES)
    player.press("+")
    closer = player.run(PICTURES)
    assert all(one != other for one, other in zip(before, closer, strict=True))
    player.press("0")
    assert player.run(PICTURES) == before


def test_another_arm_can_be_chosen(player: Browser) -> None:
    player.run(
        """(() => { const list = document.querySelector('.which'); list.value = 2;
        list.dispatchEvent(new Event('change')); })()"""
    )
    player.settle()
    assert player.run("shown().map(arm => arm.name)") == ["idle", "qjump"]
