"""Render the network as SVG: boxes from the topmost switch on the left to the hosts on the right.

Its colours are the page's where it is part of one, and dark on white in a file of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from qjump_mn.model.topology import Network
from qjump_mn.model.units import told_rate
from qjump_mn.report.network.outline import Branch
from qjump_mn.report.network.use import LEAST_WIDTH, Use

MOST_WIDTH = 505
"""So that letters can still be read where the page is as wide as a telephone."""
BOX_WIDTH, BOX_HEIGHT = 56, 20
COLUMN = BOX_WIDTH + 84
MARGIN = 6
LEAST_TEXT = 120
"""For the lines beside a box, however deep the network is."""
LINE, GAP = 15, 15
"""Of lines of text, and between rows."""
TEXT, SMALL = 12.0, 10.5
"""Sizes of letters, as in the style below."""
INDENT = "   "
"""Of what is left of a line that was too long."""

STYLE = """
.net text { font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
.net text { fill: var(--ink, #1b1f24); }
.net .small { font-size: 10.5px; fill: var(--soft, #59636e); }
.net .name { text-anchor: middle; }
.net .measured { font-weight: 700; fill: var(--link, #0550ae); }
.net .back { fill: var(--back, #fff); }
.net rect.box { fill: var(--panel, #f6f8fa); stroke: var(--soft, #59636e); }
.net path { fill: none; stroke: #868e97; stroke-linejoin: round; }
.net path.way { stroke: var(--link, #0550ae); stroke-width: 2; stroke-dasharray: 6 3; }
"""


class _Placed(NamedTuple):
    """A branch with the left and the middle of its box."""

    branch: Branch
    lines: list[tuple[str, bool]]
    x: float
    y: float
    above: tuple[float, float] | None
    rate: str


def draw(drawn: Branch, used: Use, network: Network, about: str) -> str:
    """Return the SVG file; ``about`` is its alternative text."""
    placed, height = _place(drawn, network)
    width = max(_right(one) for one in placed) + MARGIN
    links = [one for one in placed if one.above]
    # The thick ones first, so that none hides a thin one.
    links.sort(key=lambda one: -_width(one.branch, used))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="net" role="img" width="{width:g}" '
        f'height="{height:g}" viewBox="0 0 {width:g} {height:g}" aria-label="{escape(about)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="back" width="{width:g}" height="{height:g}"/>',
        *(
            f'<path d="{_elbow(one)}" stroke-width="{_width(one.branch, used):.1f}"/>'
            for one in links
        ),
        *(f'<path class="way" d="{_elbow(one)}"/>' for one in links if one.branch.on_the_way),
        *(part for one in placed for part in _box(one)),
        *(part for one in links for part in _labels(one, used)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _place(drawn: Branch, network: Network) -> tuple[list[_Placed], float]:
    """Return every branch with its place, and the height of the picture."""
    bottom = float(MARGIN)

    def put(branch: Branch, depth: int, rate: str) -> list[_Placed]:
        """Place a branch and all below it, itself first."""
        nonlocal bottom
        x = MARGIN + depth * COLUMN
        lines = _wrapped(branch.lines, max(LEAST_TEXT, MOST_WIDTH - MARGIN - x - BOX_WIDTH - 8))
        rates = _rates(network, branch)
        below = [put(one, depth + 1, told) for one, told in zip(branch.below, rates, strict=True)]
        if below:
            middle = (below[0][0].y + below[-1][0].y) / 2
        else:
            high = max(BOX_HEIGHT, LINE * len(lines))
            middle = bottom + high / 2
            bottom += high + GAP
        here = (x + BOX_WIDTH, middle)
        rest = [one for first, *others in below for one in (first._replace(above=here), *others)]
        return [_Placed(branch, lines, x, middle, None, rate), *rest]

    placed = put(drawn, 0, "")
    return placed, bottom - GAP + MARGIN + 4


def _rates(network: Network, branch: Branch) -> list[str]:
    """Return the text above each link below a branch: the rate of each kind of link, once."""
    told = [_rate(network, below) for below in branch.below]
    kinds = [below.is_switch for below in branch.below]
    return [
        rate if kinds.index(kind) == place else ""
        for place, (rate, kind) in enumerate(zip(told, kinds, strict=True))
    ]


def _rate(network: Network, below: Branch) -> str:
    if below.is_switch and network.fabric:
        return f"{network.fabric.spines}\N{MULTIPLICATION SIGN}{told_rate(network.trunk.rate_bps)}"
    joined = sum(below.name in ends for ends in network.cables)
    if joined > 1:
        return f"{joined}\N{MULTIPLICATION SIGN}{told_rate(network.trunk.rate_bps)}"
    return told_rate((network.trunk if below.is_switch else network.link).rate_bps)


@functools.cache
def text_width(text: str, size: float = TEXT, *, bold: bool = False) -> float:
    """Return the width of a text in DejaVu Sans, which few fonts exceed."""
    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    # What begins with a blank is as wide as what ends with one, but for these the path has no
    # extent.
    blanks = (len(text) - len(text.strip())) * 0.32 * size
    return float(TextPath((0, 0), text.strip(), size=size, prop=font).get_extents().x1) + blanks


def _wrapped(lines: tuple[tuple[str, bool], ...], width: float) -> list[tuple[str, bool]]:
    wrapped = []
    for line, bold in lines:
        first, *words = line.split(" ")
        parts = [first]
        for word in words:
            longer = f"{parts[-1]} {word}"
            if text_width(longer, bold=bold) <= width:
                parts[-1] = longer
            else:
                parts.append(f"{INDENT}{word}")
        wrapped += [(part, bold) for part in parts]
    return wrapped


def _right(one: _Placed) -> float:
    """Return the right end of a box and its lines."""
    lines = (text_width(line, bold=bold) for line, bold in one.lines)
    return one.x + BOX_WIDTH + max((8 + width for width in lines), default=3)


def _width(branch: Branch, used: Use) -> float:
    return max(LEAST_WIDTH, used.width(max(branch.down, branch.up)))


def _elbow(one: _Placed) -> str:
    assert one.above is not None
    x, y = one.above
    return f"M{x:g} {y:g}H{x + 14:g}V{one.y:g}H{one.x:g}"


def _box(one: _Placed) -> Iterator[str]:
    top = one.y - BOX_HEIGHT / 2
    radius = 10 if one.branch.is_switch else 3
    several = one.branch.stands_for or one.branch.name.endswith("spines")
    # A shadow: more than one.
    for offset in (3, 0) if several else (0,):
        yield (
            f'<rect class="box" x="{one.x + offset:g}" y="{top + offset:g}" width="{BOX_WIDTH}" '
            f'height="{BOX_HEIGHT}" rx="{radius}"/>'
        )
    middle = one.x + BOX_WIDTH / 2
    yield f'<text class="name" x="{middle:g}" y="{one.y + 4:g}">{escape(one.branch.name)}</text>'
    left, top = one.x + BOX_WIDTH + 8, one.y + 4 - LINE * (len(one.lines) - 1) / 2
    for row, (line, measured) in enumerate(one.lines):
        kind = ' class="measured"' if measured else ""
        place = f'xml:space="preserve" x="{left:g}" y="{top + LINE * row:g}"'
        yield f"<text{kind} {place}>{escape(line)}</text>"


def _labels(one: _Placed, used: Use) -> Iterator[str]:
    """Return a link's labels: its rate above, and below it how busy it was, with an arrow."""
    assert one.above is not None
    left = one.above[0] + 20
    branch = one.branch
    thick = _width(branch, used) / 2
    if one.rate:
        y = one.y - thick - 3
        yield f'<text class="small" x="{left:g}" y="{y:g}">{escape(one.rate)}</text>'
    if told := used.told(max(branch.down, branch.up)):
        way = (
            f"{told} \N{RIGHTWARDS ARROW}"
            if branch.down >= branch.up
            else f"\N{LEFTWARDS ARROW} {told}"
        )
        yield f'<text class="small" x="{left:g}" y="{one.y + thick + 10:g}">{escape(way)}</text>'
