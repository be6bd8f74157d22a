"""The drawing of a run's network: every host is in it, nothing is cut or hidden, and it says what
is known."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import msgspec
import pytest

from qjump_mn import resolve
from qjump_mn.analysis import pipeline
from qjump_mn.model.plan import Plan
from qjump_mn.programs.facts import Check
from qjump_mn.report import document, parameters
from qjump_mn.report.network import drawing, outline, roles, svg
from qjump_mn.report.network import use as uses
from qjump_mn.report.network.drawing import Drawn
from qjump_mn.resolve import loading
from qjump_mn.results.outcome import LinkLoad
from tests.support import synthetic

SVG = "{http://www.w3.org/2000/svg}"
PAIR = """
description = "two hosts"
mtu = "1500B"
[switches]
s1 = ["client", "server"]
[link]
model = "wire"
rate = "10Gbit"
buffer = "152.2kB"
delay = "0ns"
"""


class Box(NamedTuple):
    """A rectangle, by its edges."""

    left: float
    top: float
    right: float
    bottom: float


def drawn_of(plan: Plan, loads: dict[str, tuple[LinkLoad, ...]] | None = None) -> Drawn:
    return drawing.draw(plan, synthetic.outcome((), links=loads or {}))


def load(source: str, destination: str, share: float, level: int = 0) -> LinkLoad:
    return LinkLoad(
        source=source, destination=destination, level=level, share=share, drops=0, most_bytes=None
    )


def texts(drawn: Drawn) -> list[tuple[str, ElementTree.Element]]:
    root = ElementTree.fromstring(drawn.svg)
    return [(element.text or "", element) for element in root.iter(f"{SVG}text")]


def names(drawn: Drawn) -> list[str]:
    return [text for text, element in texts(drawn) if element.get("class") == "name"]


def lines(drawn: Drawn) -> str:
    """What stands beside the boxes, with lines that were broken put together."""
    beside = (text for text, element in texts(drawn) if element.get("class") in (None, "measured"))
    return re.sub(r"\n {3}", " ", "\n".join(beside)).replace("\N{NO-BREAK SPACE}", " ")


def hosts_told(drawn: Drawn) -> int:
    """How many hosts the picture stands for, by its words."""
    root = ElementTree.fromstring(drawn.svg)
    text = lines(drawn)
    alone = sum(
        1
        for rectangle, name in zip(
            [one for one in root.iter(f"{SVG}rect") if one.get("class") == "box"],
            _repeated(root),
            strict=True,
        )
        if rectangle.get("rx") == "3" and not name.startswith("+")
    )
    more = sum(int(count) for count in re.findall(r"^(\d+) more hosts like", text, re.MULTILINE))
    each = re.findall(
        r"^(\d+) more switches like (\w+), with (\d+) hosts? each", text, re.MULTILINE
    )
    return alone + more + sum(int(many) * int(size) for many, _, size in each)


def _repeated(root: ElementTree.Element) -> list[str]:
    """The name of each rectangle: that of the next text."""
    found: list[str] = []
    waiting = 0
    for element in root:
        if element.tag == f"{SVG}rect" and element.get("class") == "box":
            waiting += 1
        elif element.get("class") == "name":
            found += [element.text or ""] * waiting
            waiting = 0
    return found


def boxes(drawn: Drawn) -> tuple[Box, list[Box]]:
    """The picture, and every box and line of text in it, as wide as it may be."""
    root = ElementTree.fromstring(drawn.svg)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    found = []
    for text, element in texts(drawn):
        x, y = float(element.attrib["x"]), float(element.attrib["y"])
        if element.get("class") == "name":
            half = svg.BOX_WIDTH / 2
            found.append(
                Box(x - half, y - 4 - svg.BOX_HEIGHT / 2, x + half, y - 4 + svg.BOX_HEIGHT / 2)
            )
        else:
            size = svg.SMALL if element.get("class") == "small" else svg.TEXT
            long = svg.text_width(text, size, bold=element.get("class") == "measured")
            found.append(Box(x, y - 9, x + long, y + 1))
    return Box(0, 0, width, height), found


EXPERIMENTS = sorted(
    path.stem for path in (Path(loading.__file__).parents[2] / "experiments").glob("*.toml")
)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_host_of_every_experiment_is_told_and_nothing_is_cut(name: str) -> None:
    plan = resolve.plan(name, loading.usual_preset(name), [])
    drawn = drawn_of(plan)
    arm = drawing.arm_drawn(plan, synthetic.outcome(()))
    assert hosts_told(drawn) == len(arm.network.hosts)
    picture, inside = boxes(drawn)
    for box in inside:
        assert picture.left <= box.left and box.right <= picture.right
        assert picture.top <= box.top and box.bottom <= picture.bottom
    for one, other in combinations(inside, 2):
        apart = one.right <= other.left or other.right <= one.left
        assert apart or one.bottom <= other.top or other.bottom <= one.top, (one, other)
    assert len(names(drawn)) <= outline.MAX_ROWS + len(arm.network.switches)
    assert drawn_of(plan) == drawn


def test_two_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "topologies").mkdir()
    (tmp_path / "topologies/pair.toml").write_text(PAIR)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/mine.toml").write_text(
        """
title = "A ping"
question = "How long?"
topology = "pair"
duration = "1s"
link = {}
[workloads.ping]
program = "ping"
label = "ping"
flows = ["client>server"]
[arms.one]
label = "one"
workloads = ["ping"]
[figure]
plot = "latency_cdf"
workload = "ping"
arms = ["one"]
"""
    )
    monkeypatch.chdir(tmp_path)
    drawn = drawn_of(resolve.plan("mine", loading.usual_preset("mine"), []))
    assert sorted(names(drawn)) == ["client", "s1", "server"]
    assert lines(drawn).splitlines() == ["ping → server", "ping ← client"]
    assert drawn.about == (
        "The network pair: 2 hosts, 1 switch, 10 Gb/s links. ping: client\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}server."
    )


def test_the_papers_network_has_its_flows_with_their_levels() -> None:
    plan = resolve.plan("fig3a", "smoke", [])
    drawn = drawn_of(plan)
    assert {*names(drawn)} == {*plan.shown.network.hosts, *plan.shown.network.switches}
    assert sorted(lines(drawn).splitlines()) == [
        "bulk ← h1, level 0",
        "bulk ← h7, level 0",
        "bulk ← h9, level 0",
        "bulk → h10, level 0",
        "bulk → h11, level 0",
        "bulk → h12, level 0",
        "ping ← h8, level 6",
        "ping → h10, level 6",
    ]
    measured = [text for text, element in texts(drawn) if element.get("class") == "measured"]
    assert " ".join(measured).split() == "ping → h10, level 6 ping ← h8, level 6".split()
    # The way of what is measured: h8, s2, s0, s3, h10.
    assert drawn.svg.count('class="way"') == 4


def test_what_a_tap_looks_at_is_what_is_measured() -> None:
    plan = resolve.plan("fig3a", "paper", [])
    arm = drawing.arm_drawn(plan, synthetic.outcome(()))
    assert plan.shown.figure.workload == "tap"
    assert roles.measured(arm, "tap") == {"ping"}


def test_a_star_of_sixty_and_a_thousand_simulated_hosts_are_told_in_groups() -> None:
    star = drawn_of(resolve.plan("bound", "course", []))
    assert "56 more hosts like h4: h5–h60" in lines(star)
    assert "urgent ← h1–h60, level 7" in lines(star)
    thousand = resolve.plan("scale", "smoke", ["topology=fabric1000"])
    thousand = msgspec.structs.replace(
        thousand,
        run=msgspec.structs.replace(
            thousand.run,
            arms=tuple(arm for arm in thousand.run.arms if arm.network.topology == "fabric1000"),
        ),
    )
    drawn = drawn_of(thousand)
    assert hosts_told(drawn) == 1000
    assert re.search(
        r"^\d+ more switches like rack\d+, with 40 hosts each: rack\d+–rack25$", lines(drawn), re.M
    )
    assert len(names(drawn)) < 30


def test_links_are_as_thick_as_their_counters_say() -> None:
    plan = resolve.plan("fig3a", "smoke", [])
    arm = drawing.arm_drawn(plan, synthetic.outcome(()))
    loads = (
        load("s0", "s3", 0.6),
        load("s0", "s3", 0.37, 6),
        load("s3", "s0", 0.02),
        load("h7", "s2", 0.004),
    )
    drawn = drawn_of(plan, {arm.name: loads})
    small = [text for text, element in texts(drawn) if element.get("class") == "small"]
    assert "97 % →" in small
    assert not any("2 %" in text or "0 %" in text for text in small)
    widths = sorted({float(width) for width in re.findall(r'stroke-width="([\d.]+)"', drawn.svg)})
    assert widths[-1] == pytest.approx(1.4 + 6.6 * 0.97, abs=0.06)
    assert "by its counters" in " ".join(drawn.caption)
    assert drawn.about.endswith(
        "The busiest link: s0\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}s3, 97 %."
    )


def test_without_counters_the_plan_decides_and_that_is_said() -> None:
    plan = resolve.plan("fig3a", "smoke", [])
    drawn = drawn_of(plan)
    arm = drawing.arm_drawn(plan, synthetic.outcome(()))
    used = uses.use(arm, None)
    assert used.amounts["s3", "h10"] == 2 and used.most == used.amounts["s0", "s3"] == 4
    assert "How busy the links were is not known: nothing was counted." in " ".join(drawn.caption)
    assert "%" not in " ".join(text for text, _ in texts(drawn))


def test_hosts_that_differ_are_not_called_alike() -> None:
    plan = resolve.plan("bound", "course", [])
    arm = drawing.arm_drawn(plan, synthetic.outcome(()))
    # One link is busy, of a host that does what its neighbours do.
    drawn = drawn_of(plan, {arm.name: (load("h30", "s1", 0.9), load("s1", "h61", 0.9))})
    assert "h30" in names(drawn)
    assert "55 more hosts like h4" in lines(drawn)


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        (["h1"], "h1"),
        (["h1", "h2"], "h1, h2"),
        (["h1", "h2", "h3", "h5"], "h1–h3, h5"),
        (["a", "b", "c"], "a, b, c"),
        (["h1", "h3", "h5", "h7", "h9"], "5 hosts"),
        ([roles.ALL], "all hosts"),
    ],
)
def test_hosts_in_words(hosts: list[str], told: str) -> None:
    assert roles.hosts(hosts) == told


def test_many_flows_are_told_from_whom_to_whom() -> None:
    arm = drawing.arm_drawn(resolve.plan("fig3b", "paper", []), synthetic.outcome(()))
    one, job = arm.workloads
    assert roles.flows(one) == "h3\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}h11"
    assert roles.flows(job) == "among 8 hosts"
    assert roles.flows(job, parameters.MAX_FLOWS) == "among h1, h4, h5, h7–h10, h12"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("pass", "from the plan; built alike."),
        ("fail", "what was built is not known to be that: built alike."),
    ],
)
def test_it_says_whether_it_was_built_so(status: str, said: str) -> None:
    check = Check(name="as built", status=status, text="built alike")  # type: ignore[arg-type]
    drawn = drawing.draw(resolve.plan("fig3a", "smoke", []), synthetic.outcome((), checks=(check,)))
    assert said in " ".join(drawn.caption)


def test_the_report_has_it_inline_and_beside_the_markdown(tmp_path: Path) -> None:
    run = pipeline.analyse(synthetic.make(tmp_path / "results").path).run
    picture = (run.path / document.PICTURE).read_text()
    assert picture in (run.path / "report.html").read_text()
    assert f"]({document.PICTURE})" in (run.path / "report.md").read_text()


def test_a_deep_network_is_drawn_too() -> None:
    plan = resolve.plan("fig3a", "smoke", [])
    arm = drawing.arm_drawn(plan, synthetic.outcome(()))
    chain = tuple((f"s{number}", f"s{number + 1}") for number in range(6))
    hosts = (("s0", "h8"), ("s6", "h10"), *(("s3", f"h{number}") for number in (1, 7, 9, 11, 12)))
    network = msgspec.structs.replace(arm.network, edges=(*chain, *hosts))
    deep = msgspec.structs.replace(arm, network=network)
    drawn = drawn_of(
        msgspec.structs.replace(plan, run=msgspec.structs.replace(plan.run, arms=(deep,)))
    )
    picture, inside = boxes(drawn)
    assert hosts_told(drawn) == 7
    assert all(box.right <= picture.right and box.bottom <= picture.bottom for box in inside)
    assert "ping ← h8, level 6" in lines(drawn)
