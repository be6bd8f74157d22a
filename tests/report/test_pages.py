"""The report and the time lines as a reader has them: opened from a file in a browser, on a wide
screen and on a telephone, by mouse, by touch and by keyboard alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qjump_mn.analysis import pipeline
from qjump_mn.results.directory import RunDirectory
from tests.report.test_timelines import million, real_run
from tests.support.browser import Browser

PAGES = ("report.html", "timeline/contended-1.html")
TIMELINE = PAGES[1]
WIDTHS = (1280, 390)
LEAST_CONTRAST = 4.5
"""Of text on its background, as WCAG 2 asks of level AA."""
LEAST_LINE_CONTRAST = 3.0

UNFOLD = "document.querySelectorAll('details').forEach(part => { part.open = true })"

OUTSIDE = """[...document.body.querySelectorAll('*')].filter(part => {
  const box = part.getBoundingClientRect();
  return box.width > 1 && box.height > 1 && (box.right > innerWidth + 0.5 || box.left < -0.5)
    && !part.closest('.scroll > *') && !part.closest('svg *');
}).map(part => `${part.tagName} ${part.className} ${part.textContent.slice(0, 60)}`)"""
"""What sticks out of the window; what can be scrolled by itself may be wider inside."""

CUT = """[...document.body.querySelectorAll('*')].filter(part => {
  const look = getComputedStyle(part);
  return look.overflowX === 'hidden' && part.clientWidth > 1 && part.scrollWidth > part.clientWidth + 1;
}).map(part => `${part.tagName} ${part.className}`)"""

FAINT = """(() => {
  const channel = value => { value /= 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
  const light = ([red, green, blue]) => 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
  const colour = text => text.match(/[\\d.]+/g).map(Number);
  const behind = part => {
    for (; part; part = part.parentElement) {
      const found = colour(getComputedStyle(part).backgroundColor);
      if (found.length < 4 || found[3] === 1) return found;
      if (found[3] > 0) throw new Error('half transparent');
    }
    return colour(getComputedStyle(document.documentElement).getPropertyValue('--back') ? getComputedStyle(document.body).backgroundColor : 'rgb(255,255,255)');
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = [], faint = [];
  while (walker.nextNode()) {
    const part = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || part.closest('script, style, noscript, canvas') || !part.getClientRects().length) continue;
    const look = getComputedStyle(part), ink = part.ownerSVGElement ? look.fill : look.color;
    const [front, back] = [light(colour(ink)), light(behind(part))];
    const contrast = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    seen.push(contrast);
    if (contrast < %s) faint.push(`${contrast.toFixed(2)}: ${walker.currentNode.data.trim().slice(0, 60)}`);
  }
  return { seen: seen.length, faint };
})()"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    made = real_run(tmp_path_factory.mktemp("pages"))
    pipeline.analyse(made.path)
    return made


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_cut_or_sticks_out(
    run: RunDirectory, browser: Browser, page: str, width: int
) -> None:
    browser.open(run.path / page, width)
    for unfolded in (False, True):
        if unfolded:
            browser.run(UNFOLD)
            browser.settle()
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run(OUTSIDE) == []
        assert browser.run(CUT) == []
    assert browser.errors() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_text_has_enough_contrast(
    run: RunDirectory, browser: Browser, page: str, dark: bool
) -> None:
    browser.open(run.path / page, 1280, dark=dark)
    browser.run(UNFOLD)
    found = browser.run(FAINT % LEAST_CONTRAST)
    assert found["seen"] > 30
    assert found["faint"] == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_lines_differ_from_the_background(run: RunDirectory, browser: Browser, dark: bool) -> None:
    """WCAG 2 asks for less of what is no text."""
    browser.open(run.path / TIMELINE, 1280, dark=dark)
    names = [*(f"line{index}" for index in range(8)), "lost"]
    look = "getComputedStyle(document.documentElement).getPropertyValue('--{}').trim()"
    for behind in ("back", "outside"):
        back = brightness(browser.run(look.format(behind)))
        for name in names:
            line = brightness(browser.run(look.format(name)))
            assert (max(line, back) + 0.05) / (min(line, back) + 0.05) >= LEAST_LINE_CONTRAST, (
                name,
                behind,
            )


def brightness(colour: str) -> float:
    """The relative luminance of "#rrggbb"."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("page", PAGES)
def test_tables_say_what_they_are(run: RunDirectory, browser: Browser, page: str) -> None:
    browser.open(run.path / page, 1280)
    assert browser.run("document.querySelectorAll('table').length") > 0
    for without in ("table:not(:has(> caption))", "th:not([scope])", "caption:empty"):
        found = browser.run(
            f"[...document.querySelectorAll('{without}')].map(part => "
            "part.textContent.trim().slice(0, 80))"
        )
        assert found == [], without


@pytest.mark.parametrize("page", PAGES)
def test_every_picture_is_told_once(run: RunDirectory, browser: Browser, page: str) -> None:
    browser.open(run.path / page, 1280)
    shown = browser.run("document.querySelectorAll('figure svg, canvas').length")
    named = browser.images()
    assert len(named) == shown >= 1
    assert all(named) and len(set(named)) == len(named)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("key", ["Enter", " "])
def test_parts_unfold_by_keyboard(run: RunDirectory, browser: Browser, page: str, key: str) -> None:
    browser.open(run.path / page, 390)
    tab_to(browser, "details:not([open]) > summary")
    opened = "document.activeElement.parentElement.open"
    browser.press(key)
    assert browser.run(opened)
    browser.press(key)
    assert not browser.run(opened)


def tab_to(browser: Browser, selector: str) -> None:
    """Press Tab until the first element of its kind has the focus."""
    wanted = f"document.activeElement === document.querySelector('{selector}')"
    for _ in range(300):
        if browser.run(wanted):
            return
        browser.press("Tab")
    raise AssertionError(f"no number of Tabs leads to {selector}")


# ---- the time line ----

VIEW = "document.getElementById('shown').textContent"
SAID = "document.querySelector('.said').textContent"
PICTURE = "document.querySelector('canvas').toDataURL()"


def view(browser: Browser) -> tuple[float, float]:
    """From when to when is shown, in s."""
    first, last = browser.run(VIEW).split(",")[0].split(" to ")
    return float(first.removesuffix(" s")), float(last.removesuffix(" s"))


@pytest.fixture
def shown(run: RunDirectory, browser: Browser) -> Browser:
    browser.open(run.path / TIMELINE, 1280)
    return browser


@pytest.fixture
def place(shown: Browser) -> tuple[float, float]:
    """The middle of the first picture."""
    shown.run("document.querySelector('canvas').scrollIntoView({ block: 'center' })")
    box: dict[str, Any] = shown.run(
        "document.querySelector('canvas').getBoundingClientRect().toJSON()"
    )
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_keys_zoom_and_move(shown: Browser) -> None:
    tab_to(shown, "canvas")
    first, last = view(shown)
    picture, said = shown.run(PICTURE), shown.run(SAID)
    shown.press("+")
    closer = view(shown)
    assert closer[1] - closer[0] == pytest.approx((last - first) / 2, rel=0.02)
    assert shown.run(PICTURE) != picture and shown.run(SAID) != said
    shown.press("ArrowRight")
    assert view(shown)[0] == pytest.approx(
        closer[0] + (last - first) / 8, abs=0.02 * (last - first)
    )
    shown.press("ArrowLeft")
    shown.press("-")
    assert view(shown) == pytest.approx((first, last), abs=0.01)
    shown.press("End")
    assert view(shown)[0] < first
    shown.press("Home")
    assert shown.run(PICTURE) == picture and shown.run(SAID) == said


def test_what_is_in_view_is_counted(shown: Browser) -> None:
    """A quarter of the measurement has about a quarter of the requests."""
    tab_to(shown, "canvas")
    count = int(shown.run(SAID).split(" ")[0])
    shown.press("+")
    shown.press("+")
    assert int(shown.run(SAID).split(" ")[0]) == pytest.approx(count / 4, rel=0.15)


@pytest.mark.parametrize("action", ["closer", "wider", "later", "earlier", "all", "measured"])
def test_buttons_do_it_by_keyboard(shown: Browser, action: str) -> None:
    tab_to(shown, 'button[data-do="wider"]')
    if action == "measured":
        shown.press("Enter")
    before = view(shown)
    tab_to(shown, f'button[data-do="{action}"]')
    shown.press("Enter")
    assert view(shown) != before


def test_wheel_scrolls_the_page_before_a_click(shown: Browser, place: tuple[float, float]) -> None:
    before = view(shown)
    shown.wheel(*place, -120)
    assert view(shown) == before
    shown.wheel(*place, -120, control=True)
    closer = view(shown)
    assert closer[1] - closer[0] < before[1] - before[0]


def test_the_wheel_zooms_around_the_pointer(shown: Browser, place: tuple[float, float]) -> None:
    shown.drag(*place, place[0])  # a click
    before = view(shown)
    shown.wheel(*place, -120)
    after = view(shown)
    assert after[1] - after[0] == pytest.approx((before[1] - before[0]) * 0.8, rel=0.02)
    assert sum(after) / 2 == pytest.approx(sum(before) / 2, abs=0.03 * (before[1] - before[0]))


def test_dragging_moves(shown: Browser, place: tuple[float, float]) -> None:
    tab_to(shown, "canvas")
    shown.press("+")
    before, picture = view(shown), shown.run(PICTURE)
    shown.drag(*place, place[0] - 200)
    after = view(shown)
    assert after[0] > before[0]
    assert after[1] - after[0] == pytest.approx(before[1] - before[0], rel=0.02)
    assert shown.run(PICTURE) != picture


def test_two_fingers_zoom(run: RunDirectory, browser: Browser) -> None:
    browser.open(run.path / TIMELINE, 390)
    browser.run("document.querySelector('canvas').scrollIntoView({ block: 'center' })")
    box = browser.run("document.querySelector('canvas').getBoundingClientRect().toJSON()")
    before = view(browser)
    browser.pinch(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, 60, 120)
    after = view(browser)
    assert after[1] - after[0] == pytest.approx((before[1] - before[0]) / 2, rel=0.1)


def test_a_line_can_be_left_out_by_keyboard(run: RunDirectory, shown: Browser) -> None:
    lane = (
        "[...document.querySelectorAll('details.lane')].find(part => part.querySelector('input'))"
    )
    said = f"{lane}.querySelector('.said').textContent"
    before = shown.run(said)
    tab_to(shown, "details.lane input")
    shown.press(" ")
    assert shown.run(said) != before
    shown.press(" ")
    assert shown.run(said) == before


def test_the_pointer_names_what_is_nearest(shown: Browser, place: tuple[float, float]) -> None:
    """Where nothing is near, the line says again what is in view."""
    tab_to(shown, "canvas")
    for _ in range(4):
        shown.press("+")
    all_of_it = shown.run(SAID)
    shown.run(
        "window.row = (({ scale, lines: [line] }) => { const row = firstFrom(line.at, (view.from "
        "+ view.to) / 2); return { x: scale.x(line.at[row]), y: scale.y(line.values[row]), value: "
        "number(line.values[row]) }; })(lanes[0])"
    )
    box = shown.run("document.querySelector('canvas').getBoundingClientRect().toJSON()")
    shown.point(box["x"] + shown.run("row.x"), box["y"] + shown.run("row.y"))
    assert shown.run(SAID).startswith(f"h8>h10: {shown.run('row.value')} ms at ")
    shown.point(5, 5)
    assert shown.run(SAID) == all_of_it


def test_another_trial_is_opened_at_the_same_times(run: RunDirectory, shown: Browser) -> None:
    tab_to(shown, "canvas")
    for key in ("+", "+", "ArrowRight"):
        shown.press(key)
    here = view(shown)
    link = shown.run("document.querySelector('.others a').hash")
    shown.open(run.path / "timeline/qjump-1.html", 1280, fragment=link)
    assert view(shown) == pytest.approx(here, abs=1e-3)


def test_a_million_points_are_drawn(run: RunDirectory, browser: Browser, tmp_path: Path) -> None:
    browser.open(million(run, tmp_path), 1280)
    assert browser.errors() == []
    assert browser.run(SAID).startswith("1000000 in view; least ")
    assert "greatest 900 ms" in browser.run(SAID)
    tab_to(browser, "canvas")
    for _ in range(14):
        browser.press("+")
    assert 20 < int(browser.run(SAID).split(" ")[0]) < 100, "single requests"
    assert "greatest 900 ms" in browser.run(SAID), "it is in the middle"
