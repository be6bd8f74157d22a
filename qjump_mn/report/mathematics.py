r"""Typeset TeX's mathematics in Markdown: ``$P/R$`` in a line, ``$$…$$`` as a block.

A dollar sign begins mathematics if no space follows it, and ends it if no space comes before and no
digit comes after; ``\$`` is a dollar sign. Code hosts do the same with the Markdown itself.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

import matplotlib.path
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath, text_to_path

_INLINE = re.compile(r"\$\$(?P<block>[^$]+)\$\$|\$(?P<line>[^\s$](?:[^$]*[^\s$\\])?)\$(?!\d)")
_FENCE = "$$"
_FRACTION = re.compile(r"\\frac\b")
"""In a block it is as large as the rest."""
_EM = 100
"""The font's size in the units of a drawing."""

_LETTERS = {
    matplotlib.path.Path.MOVETO: "M",
    matplotlib.path.Path.LINETO: "L",
    matplotlib.path.Path.CURVE3: "Q",
    matplotlib.path.Path.CURVE4: "C",
    matplotlib.path.Path.CLOSEPOLY: "Z",
}


def enable(parser: MarkdownIt) -> None:
    """Let a parser of Markdown typeset mathematics."""
    parser.inline.ruler.before("escape", "mathematics", _in_line)
    parser.block.ruler.before(
        "fence", "mathematics", _as_block, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.add_render_rule("mathematics", _render)


def picture(tex: str) -> str:
    """Return mathematics as an element of SVG that stands in a line of text.

    What matplotlib cannot typeset is returned as code.
    """
    tex = " ".join(tex.split())
    try:
        font = FontProperties()
        path = TextPath((0, 0), f"${tex}$", size=_EM, prop=font)
        wide, high, deep = text_to_path.get_text_width_height_descent(f"${tex}$", font, ismath=True)
    except ValueError:
        return f"<code>{html.escape(tex)}</code>"
    scale = _EM / font.get_size_in_points()
    wide, high, deep = (size * scale for size in (wide, high, deep))
    return (
        f'<svg class="math" role="img" aria-label="{html.escape(tex)}" fill="currentColor" '
        f'width="{wide / _EM:.3f}em" height="{high / _EM:.3f}em" '
        f'style="vertical-align: {-deep / _EM:.3f}em" '
        f'viewBox="0 {deep - high:.1f} {wide:.1f} {high:.1f}"><path d="{_drawn(path)}"/></svg>'
    )


def _drawn(path: matplotlib.path.Path) -> str:
    """Return a path's commands in SVG, whose ordinates go down."""
    commands = []
    for numbers, code in path.iter_segments(simplify=False):
        points = [] if _LETTERS[code] == "Z" else zip(numbers[::2], -numbers[1::2], strict=True)
        commands.append(_LETTERS[code] + " ".join(f"{x:.1f} {y:.1f}" for x, y in points))
    return "".join(commands)


def _in_line(state: StateInline, silent: bool) -> bool:
    found = _INLINE.match(state.src, state.pos, state.posMax)
    if not found:
        return False
    if not silent:
        token = state.push("mathematics", "", 0)
        token.content = found["block"] or found["line"]
        token.block = found["block"] is not None
    state.pos = found.end()
    return True


def _as_block(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Parse lines from one that begins with two dollar signs to one that ends with them."""
    begin = state.bMarks[first] + state.tShift[first]
    if not state.src.startswith(_FENCE, begin) or state.is_code_block(first):
        return False
    lines = [
        state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].strip()
        for line in range(first, last)
    ]
    lines[0] = lines[0].removeprefix(_FENCE)
    end = next((place for place, line in enumerate(lines) if line.endswith(_FENCE)), None)
    if end is None or not (tex := "\n".join(lines[: end + 1]).removesuffix(_FENCE).strip()):
        return False
    if not silent:
        token = state.push("mathematics", "", 0)
        token.content, token.block = tex, True
        token.map = [first, first + end + 1]
        state.line = first + end + 1
    return True


def _render(self: RendererProtocol, tokens: Sequence[Token], index: int, *_: Any) -> str:
    token = tokens[index]
    if not token.block:
        return picture(token.content)
    # A paragraph may hold no other, so a block is an element of text too.
    tex = _FRACTION.sub(r"\\dfrac", token.content)
    return f'<span class="formula">{picture(tex)}</span>\n'
