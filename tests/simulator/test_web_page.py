"""The simulator in a browser: the page as a reader opens it, against the native program and the
equations of `qjump_mn.theory`."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bench import web
from qjump_mn import theory
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import build
from qjump_mn.toolbox.build import Recipe
from tests.guest import trees
from tests.report.test_pages import FAINT, LEAST_CONTRAST, OUTSIDE
from tests.report.test_player import SIZES
from tests.support.browser import Browser
from tests.support.processes import execute

pytestmark = pytest.mark.guest

NATIVE = Recipe(
    build.folder("simulator"),
    "cargo build --quiet --locked --release --bin qjump-sim\n"
    "mkdir out\ncp target/release/qjump-sim out/",
    ("Cargo.toml", "Cargo.lock", "src/**/*.rs"),
)
SETTINGS = (
    "",
    "#scheme=dctcp&load=90&hosts=20&together=false",
    "#scheme=pfabric&rate=1000000000&buffer=20",
    "#scheme=homa&rate=400000000000&seed=7",
    "#factor=4&packet=9000&buffer=1000",
)
FABRIC = {"racks": 2, "hosts_per_rack": 4, "spines": 2, "edge": {"rate": 10**10, "delay": 10**6}}
FLOWS = {"Poisson": {"sizes": "search", "load": 0.7, "count": 60}}
SCHEMES = (
    "tcp dctcp pfabric qjump-script qjump-paper swift bbr dcqcn dcqcn-pfc homa aequitas ndp "
    "roce irn hpcc powertcp bbr3".split()
)


class Page(NamedTuple):
    """The page's file, and a browser to open it in."""

    path: Path
    browser: Browser

    def open(self, fragment: str = "", width: int = 1280, *, dark: bool = False) -> Browser:
        self.browser.open(self.path, width, fragment=fragment, dark=dark)
        assert self.browser.errors() == []
        return self.browser


@pytest.fixture(scope="module")
def native() -> Path:
    """The simulator's program for this machine."""
    return build.built(trees.toolbox(), "qjump-sim", NATIVE, print) / "qjump-sim"


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Page:
    trees.toolbox()
    file = tmp_path_factory.mktemp("web") / "simulator.html"
    assert web.main([str(file)]) == 0
    return Page(file, browser)


def outcome(native: Path, scenario: str, folder: Path) -> str:
    """What the native program prints for a scenario."""
    file = folder / "scenario.json"
    file.write_text(scenario)
    return execute([native, "run", file], check=True).stdout.removesuffix("\n")


def simulate(browser: Browser, scenario: str) -> dict[str, Any]:
    """What the page's worker answers to a scenario."""
    answer: dict[str, Any] = browser.run(f"simulate({json.dumps(scenario)})")
    return answer


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_outcome_is_the_native_programs_to_the_byte(
    page: Page, native: Path, scheme: str, tmp_path: Path
) -> None:
    topology = {"LeafSpine": {**FABRIC, "uplink": FABRIC["edge"]}}
    scenario = json.dumps({"topology": topology, "scheme": {"Named": scheme}, "flows": FLOWS})
    answer = simulate(page.open(), scenario)
    assert answer["outcome"] == outcome(native, scenario, tmp_path)
    assert json.loads(answer["outcome"])["counters"]["hops"] > 10_000


@pytest.mark.parametrize("fragment", SETTINGS)
def test_the_page_shows_what_the_native_program_finds(
    page: Page, native: Path, fragment: str, tmp_path: Path
) -> None:
    browser = page.open(fragment)
    runs = browser.run(
        "shownState.runs.map(run => ({ ...run, latencies: [...run.latencies], transfers: 0 }))"
    )
    rate = browser.run("shownState.settings.rate")
    cells = browser.run(
        "[...percentiles.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent))"
    )
    shown = {name: values for name, *values in cells}
    for column, run in enumerate(runs):
        text = outcome(native, run["scenario"], tmp_path)
        assert simulate(browser, run["scenario"])["outcome"] == text
        probes = [app["Datagrams"] for app in json.loads(text)["apps"] if "Datagrams" in app]
        gaps = 2 * theory.INTERFRAME_GAP_BYTES * 8 * theory.PS_PER_S // rate
        times = sorted(
            time - gaps for probe in probes for time in probe["times"] if time is not None
        )
        lost = sum(probe["lost"] for probe in probes)
        assert (run["latencies"], run["lost"]) == (times, lost) and len(times) > 1000
        assert shown["lost"][column] == f"{lost:,}"
        if lost < len(times):
            number, unit = shown["median"][column].split()
            median = float(number) * {"ns": 1e3, "µs": 1e6, "ms": 1e9}[unit]
            exact = times[math.ceil((len(times) + lost) / 2) - 1]
            assert median == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("fragment", ["", "#senders=5&hosts=40&packet=256", "#rate=1000000000"])
def test_with_qjump_no_packet_exceeds_the_bound(page: Page, fragment: str) -> None:
    browser = page.open(fragment)
    without, qjump = browser.run("shownState.runs.map(run => run.latencies.at(-1))")
    bound = 1000 * browser.run("Number(theory(shownState.settings).bound)")
    assert qjump <= bound < without
    assert "none is lost. That is within the exact bound" in browser.run("shown.textContent")


GUARANTEE = "document.getElementById('guarantee').textContent"
CALLS = """(cases => cases.map(([name, ...args]) => {
  const big = value => Array.isArray(value) ? value.map(big) : BigInt(value);
  const factor = name === 'networkEpochNs' ? [args.pop()] : [];
  return globalThis[name](...args.map(big), ...factor).toString();
}))(%s)"""


def test_equations_are_those_of_theory(page: Page) -> None:
    cases: list[tuple[Any, ...]] = []
    expected: list[int] = []
    for n, packet, rate, delay in itertools.product(
        (2, 12, 999), (64, 1501, 9000), (10**7, 10**9 + 7, 4 * 10**11), (0, 1234)
    ):
        cases.append(("worstCaseDelayNs", n, packet, rate, delay))
        expected.append(theory.worst_case_delay_ns(n, packet, rate, delay))
        for factor in (1, 1.44, 7.2, n):
            cases.append(("networkEpochNs", n, packet, rate, delay, factor))
            expected.append(theory.network_epoch_ns(n, packet, rate, delay, factor))
        cases.append(("hostRateBps", packet, expected[-1]))
        expected.append(theory.host_rate_bps(packet, expected[-1]))
        links = [(rate, delay), (2 * rate, 5)]
        for streams, full in itertools.product((1, 3), (0, 1522)):
            cases.append(("fanInBoundNs", n, streams, packet, full, links))
            expected.append(theory.fan_in_bound_ns(n, streams, packet, full, links))
    answers = page.open().run(CALLS % json.dumps(cases))
    assert [int(answer) for answer in answers] == expected


def test_equations_have_the_numbers_of_the_settings(page: Page) -> None:
    browser = page.open("#hosts=10&packet=1000&rate=10000000000&factor=2&senders=5&delay=500")
    text = browser.run("equations.textContent").replace("\N{NO-BREAK SPACE}", " ")
    epoch = theory.network_epoch_ns(10, 1000, 10**10, 1000)
    for words in (
        "10 × 1,000 B / 10 Gb/s + 1 µs = 9 µs",
        "2 × 10 × 1,000 B / 10 Gb/s + 1 µs = 17 µs",
        f"1,000 B / 17 µs = {theory.host_rate_bps(1000, epoch) / 1e6:.4g} Mb/s",
        "(2 × 10 / 2) × 1,000 B / 10 Gb/s + 1 µs = 9 µs",
    ):
        assert words in text
    assert browser.run(GUARANTEE).startswith("Factor 2 has a guarantee while n/f = 5")
    page.open("#factor=4&senders=9")
    assert browser.run(GUARANTEE).startswith("No guarantee: factor 4 has one while n/f = 3 hosts")
    page.open("#packet=9000&buffer=50")
    assert "the buffer is smaller than what they send" in browser.run(GUARANTEE)


def test_a_link_keeps_the_settings(page: Page) -> None:
    browser = page.open("#scheme=swift&hosts=99&packet=257&load=oops&senders=70&rate=5")
    # What a control does not allow becomes what it does.
    kept = browser.run("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")
    chosen = {"scheme": "swift", "hosts": "64", "packet": "256", "senders": "63"}
    assert kept == {**kept, **chosen, "load": "60", "rate": "10000000000", "together": "true"}
    page.open(browser.run("location.hash"))
    assert browser.run("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))") == kept


def test_a_key_changes_a_setting_and_the_result(page: Page) -> None:
    browser = page.open()
    before = browser.run("shown.textContent")
    browser.run("document.getElementById('load').focus()")
    browser.press("End")
    assert "load=90" in browser.run("location.hash")
    assert browser.run("document.querySelector('#load + input').value") == "90"
    assert browser.run("shown.textContent") not in ("", before)
    assert browser.run("shownState.settings.load") == 90


def test_a_change_ends_the_run_before_it(page: Page) -> None:
    browser = page.open()
    last = browser.run("""(async () => {
        const ended = [], end = Worker.prototype.terminate;
        Worker.prototype.terminate = function () { ended.push(this); end.call(this); };
        const first = fromLink(), runs = [1, 2, 3].map(seed => start({ ...first, seed }));
        await Promise.all(runs);
        Worker.prototype.terminate = end;
        return ended.length;
    })()""")
    browser.settle()
    assert last == 3
    assert browser.run("shownState.settings.seed") == 3


def test_an_error_is_one_sentence(page: Page) -> None:
    browser = page.open()
    assert simulate(browser, "{}") == {"error": "missing field `topology` at line 1 column 2"}
    scenario = json.loads(browser.run("shownState.runs[0].scenario"))
    scenario["scheme"] = {"Named": "qjumpp"}
    assert "there is no scheme qjumpp, only tcp" in simulate(browser, json.dumps(scenario))["error"]


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_sticks_out_of_the_window(page: Page, width: int) -> None:
    browser = page.open("#factor=16&packet=9000", width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(OUTSIDE) == []


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_can_be_read(page: Page, dark: bool) -> None:
    found = page.open(dark=dark).run(FAINT % LEAST_CONTRAST)
    assert found["faint"] == [] and found["seen"] > 50


def test_controls_and_pictures_have_names(page: Page) -> None:
    browser = page.open()
    unnamed = "[...settings.elements].filter(one => one.localName !== 'button' && !one.ariaLabel"
    assert browser.run(f"{unnamed} && !one.labels.length).length") == 0
    names = browser.images()
    assert len(names) == len(set(names)) == 4 and "With QJump the median is" in names[0]


# ---- the player ----

FRAMES = """player.shown().map(arm => ({
  until: arm.until, drops: arm.drops.came.length, flows: arm.flows,
  hops: [...arm.hops.count].map((count, packet) => [...arm.hops.list.subarray(
    arm.hops.begin[packet], arm.hops.begin[packet] + count)]),
  lost: [...arm.hops.lost.keys()],
  lanes: arm.lanes.map(({ port, level, first, end }) => [port, level, first, end]),
  ...Object.fromEntries(['came', 'start', 'arrived', 'bytes'].map(key => [key, [...arm.rows[key]]])),
}))"""
CLOCK = "document.getElementById('clock').textContent"


@pytest.mark.parametrize("fragment", ["", "#scheme=pfabric&load=90", "#factor=2&senders=5&delay=0"])
def test_frames_of_urgent_packets_take_as_long_as_the_program_says(
    page: Page, fragment: str
) -> None:
    browser = page.open(fragment)
    settings, runs = (
        browser.run("shownState.settings"),
        browser.run("shownState.runs.map(run => [...run.latencies])"),
    )
    byte_ns = 8 * theory.NS_PER_S / settings["rate"]
    gaps_ns = math.floor(theory.INTERFRAME_GAP_BYTES * byte_ns * 1e3) * 2 / 1e3
    for arm, latencies in zip(browser.run(FRAMES), runs, strict=True):
        assert 1_000 < len(arm["came"]) <= 50_000
        known = {time // 1000 for time in latencies}
        urgent = [flow for flow in arm["flows"] if flow["label"].startswith("urgent: h")]
        assert len(urgent) == settings["senders"]
        # Behind another frame of its host, a packet waited where the player does not see it.
        ends: dict[int, set[int]] = {}
        for port, _, first, end in arm["lanes"]:
            sent = zip(arm["start"][first:end], arm["bytes"][first:end], strict=True)
            ends.setdefault(port, set()).update(at + round(size * byte_ns) for at, size in sent)
        taken = [
            arm["arrived"][hops[1]] - start - gaps_ns
            for flow in urgent
            for hops in (arm["hops"][packet] for packet in flow["packets"])
            if len(hops) == 2 and arm["arrived"][hops[1]] <= arm["until"]
            for start in [arm["start"][hops[0]]]
            if not {start - 1, start, start + 1}
            & ends[2 * int(flow["label"].split()[1].removeprefix("h")) + 1]
        ]
        assert len(taken) > 100
        strange = [time for time in taken if not {math.floor(time) + by for by in (0, 1)} & known]
        assert strange == []


@pytest.mark.parametrize("fragment", ["", "#scheme=pfabric&load=90&seed=3", "#scheme=homa"])
def test_a_port_of_the_player_sends_one_frame_after_another(page: Page, fragment: str) -> None:
    browser = page.open(fragment)
    byte_ns = 8 * theory.NS_PER_S / browser.run("shownState.settings.rate")
    for arm in browser.run(FRAMES):
        by_port: dict[int, list[tuple[int, int]]] = {}
        for port, _, first, end in arm["lanes"]:
            starts = arm["start"][first:end]
            assert starts == sorted(starts) and arm["came"][first:end] == sorted(
                arm["came"][first:end]
            )
            by_port.setdefault(port, []).extend(zip(starts, arm["bytes"][first:end], strict=True))
        assert len(by_port) > 10
        for rows in by_port.values():
            sent = [row for row in rows if row[0] <= arm["until"]]  # others still wait
            for (start, size), (later, _) in itertools.pairwise(sorted(sent)):
                assert later >= start + size * byte_ns - 2


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
@pytest.mark.parametrize("hosts", [18, 19, 64])
def test_all_hosts_are_in_the_picture(page: Page, width: int, dark: bool, hosts: int) -> None:
    browser = page.open(f"#hosts={hosts}&senders={hosts - 1}", width, dark=dark)
    names = "const { sides, scaleOf, cornerOf, ROW, LEAST_ROW } = player"
    assert (
        browser.run(f"(() => {{ {names}; return {SIZES}; }})()") == [[True, True, True, 0, 0]] * 2
    )
    nodes, links, ports = browser.run(
        "(({ layout, ports }) => [layout.nodes, layout.links, ports])(player.shown()[0])"
    )
    places = {node["name"]: (node["x"], node["top"]) for node in nodes}
    assert len(set(places.values())) == len(nodes) == hosts + 1
    assert (len({x for x, _ in places.values()}) > 2) == (hosts > 18), "on both sides if many"
    for port in ports:
        begin, end = sorted((port["from"], port["to"]), key=places.__getitem__)
        assert port["right"] == (port["from"] == begin)
        (left, y), (right, _) = (links[port["link"]][side] for side in ("left", "right"))
        host = next(
            place for name, place in places.items() if name in (begin, end) and name != "switch"
        )
        assert (left, right) == (places[begin][0] + 52, places[end][0]) and y == host[1] + 11
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(OUTSIDE) == []


def test_another_run_replaces_the_frames(page: Page) -> None:
    browser = page.open("#seed=1")
    before = browser.run(FRAMES)
    browser.run("change({ ...fromLink(), seed: 2, scheme: 'none' })")
    browser.settle()
    (arm,) = browser.run(FRAMES)
    assert arm["start"] != before[0]["start"]
    assert browser.run("[...document.querySelectorAll('.arm')].map(part => part.hidden)") == [
        False, True,
    ]  # fmt: skip
    assert browser.errors() == []


def test_keys_are_the_players_only_where_it_has_the_focus(page: Page) -> None:
    browser = page.open()
    browser.run("document.getElementById('load').focus()")
    browser.press("ArrowRight")
    browser.settle()
    assert browser.run(CLOCK).startswith("0.0 µs of")
    assert browser.run("shownState.settings.load") == 65
    browser.run("document.querySelector('.arm canvas').focus()")
    browser.press("n")
    assert not browser.run(CLOCK).startswith("0.0 µs of")
    assert browser.run(
        "[...document.querySelectorAll('.arm tbody')].map(body => body.rows.length)"
    ) == [2, 2]


def test_without_a_toolbox_the_command_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def refused(progress: object) -> Path:
        raise MachineError("it must be built once by root")

    monkeypatch.setattr("qjump_mn.toolbox.webassembly.module", refused)
    assert web.main([str(tmp_path / "page.html")]) == MachineError.exit_code
    assert capsys.readouterr().err == "it must be built once by root\n"
    assert web.main([]) == 2
