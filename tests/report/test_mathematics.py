"""Mathematics in notes: typeset where it stands, and nothing else is taken for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from qjump_mn.analysis import pipeline
from qjump_mn.report import markdown, mathematics, notes
from tests.support import synthetic


def rendered(text: str) -> str:
    parser = markdown.parser()
    mathematics.enable(parser)
    html: str = parser.render(text)
    return html


def formulas(html: str) -> list[str]:
    return re.findall(r'<svg class="math" role="img" aria-label="([^"]*)"', html)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a $n \\cdot P_{max} / R$ b", ["n \\cdot P_{max} / R"]),
        ("$a_b$ and $c_d$, *so*", ["a_b", "c_d"]),
        ("in words $$\\frac{1}{2}$$ too", ["\\dfrac{1}{2}"]),
        ("$$\nx_1\n  - x_2\n$$\n", ["x_1 - x_2"]),
        ("text\n$$x$$\nmore", ["x"]),
        ("> $$\n> x\n> $$\n", ["x"]),
        ("- with $f = 1$\n", ["f = 1"]),
        ("| a |\n|---|\n| $x_1$ |\n", ["x_1"]),
        ("it costs $5 and $6", []),
        ("\\$x\\$ and `$x$`", []),
        ("```\n$$\nx\n$$\n```", []),
        ("$ x$, $x $ and $$", []),
        ("$$\nnever ended", []),
    ],
)
def test_mathematics_is_found_where_dollars_mean_it(text: str, found: list[str]) -> None:
    html = rendered(text)
    assert formulas(html) == found
    assert ("$" in re.sub("<[^>]*>", "", html)) == (not found)


def test_what_stands_around_is_as_without() -> None:
    text = "# A\n\nan *emphasis*, `code` & <b>\n\n1. one\n\n![p](a.png) costs 5 $\n"
    assert rendered(text) == MarkdownIt("commonmark").enable("table").render(text)


def test_what_cannot_be_typeset_is_code() -> None:
    assert rendered("$\\foo{<x>}$") == "<p><code>\\foo{&lt;x&gt;}</code></p>\n"


def test_a_line_grows_with_what_stands_in_it() -> None:
    def sizes(tex: str) -> tuple[float, float, float]:
        html = mathematics.picture(tex)
        found = re.search(r'width="(.*)em" height="(.*)em" style="vertical-align: (.*)em"', html)
        assert found
        return float(found[1]), float(found[2]), float(found[3])

    x, longer, fraction = (sizes(tex) for tex in ("x", "x + x", r"\frac{x}{y}"))
    assert 0.3 < x[0] < longer[0] and 0.3 < x[1] < 1.2
    assert fraction[1] > x[1] and fraction[2] < x[2] <= 0


def test_drawing_lies_within_its_view() -> None:
    html = mathematics.picture(r"\sqrt{\frac{a}{b}} + \sum_{i=1}^{n} x_i")
    view = re.search(r'viewBox="0 (\S+) (\S+) (\S+)"', html)
    path = re.search(r'd="([^"]*)"', html)
    assert view and path
    top, wide, high = map(float, view.groups())
    numbers = [float(number) for number in re.findall(r"-?\d+\.\d", path[1])]
    across, down = numbers[::2], numbers[1::2]
    assert min(across) >= -5 and max(across) <= wide + 5
    assert top - 5 <= min(down) and max(down) <= top + high + 5


def test_notes_are_typeset_in_the_page_and_stay_tex_in_markdown(tmp_path: Path) -> None:
    (tmp_path / notes.NAME).write_text("## Critique\n\nThe bound is $n P_{max} / R$.\n")
    section = notes.read(tmp_path).section("Critique")
    assert formulas(section.html) == ["n P_{max} / R"] and "$" not in section.html
    assert section.markdown == "The bound is $n P_{max} / R$."


TITLES = """## The bound is $n P_{max} / R$

One.

## A *title* of $a_1*b*c$ < \\$5 and `$x$`, [$y$](https://a.example) <b>

Two.

### Further $$\\frac{f}{g}$$

## It costs $5 or $6

Three.
"""


def test_headings_are_typeset_in_the_page_and_stay_tex_in_markdown(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path / "results", only=["idle", "contended"]).path
    (run / notes.NAME).write_text(TITLES)
    pipeline.analyse(run)
    page, text = ((run / name).read_text() for name in ("report.html", "report.md"))
    found = re.findall(
        r"<(h[23]|li)\b[^>]*>(?:<a href=[^>]*>)?([^\n]*<svg[^\n]*|[^\n]*costs[^\n]*)", page
    )
    kinds = [(kind, re.sub("<svg.*?</svg>|<[^>]*>", "", words).strip()) for kind, words in found]
    own = [("The bound is", ["n P_{max} / R"]), ("A title of  &lt; $5 and $x$,", ["a_1*b*c", "y"])]
    costs: tuple[str, list[str]] = ("It costs $5 or $6", [])
    assert [
        (kind, words, formulas(html)) for (kind, words), (_, html) in zip(kinds, found, strict=True)
    ] == [
        *(("li", *title) for title in (*own, costs)),
        ("h2", *own[0]),
        ("h2", *own[1]),
        ("h3", "Further", ["\\dfrac{f}{g}"]),
        ("h2", *costs),
    ]
    assert "\n## The bound is $n P_{max} / R$\n" in text
    assert "\n## A title of $a_1*b*c$ &lt; \\$5 and \\$x\\$, $y$\n" in text


def test_a_dollar_of_a_heading_that_is_not_from_notes_stays(tmp_path: Path) -> None:
    text = "## What $a$ b\n\nText $c$.\n\n## Own $d$\n\n<!-- notes 0 -->\n"
    html = str(markdown.render(text, {}, ["<p>own</p>"]))
    assert formulas(html) == ["d"] and "What $a$ b</h2>" in html and "Text $c$." in html
