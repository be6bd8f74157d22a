"""Make the report's page from its Markdown.

Of HTML in the Markdown only what the template writes is kept: line breaks and parts that unfold.
All else is shown as text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, pairwise
from typing import Any

import markupsafe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token

from qjump_mn.report import templating

_OURS = re.compile(r'(<details(?: open| class="screen")?>|</?summary>|</details>|<br>|[^<])*')
"""The HTML of the template."""
_NOTES = re.compile(r"<!-- notes (\d+) -->")
_SUMMARY = re.compile(r"<summary>([^<]*)</summary>")
_STATUS = re.compile(r"\*\*([A-Za-z ]+)\*\*")
"""A cell that holds a verdict or the result of a check."""


def place(number: int) -> markupsafe.Markup:
    """Mark the place of section ``number`` of the notes in the Markdown."""
    return markupsafe.Markup("<!-- notes {} -->").format(number)


def fill(text: str, sections: Sequence[str]) -> str:
    """Insert the sections of the notes, as Markdown, at the marks of :func:`place`."""
    return re.sub(
        f"^{_NOTES.pattern}$", lambda mark: sections[int(mark[1])], text, flags=re.MULTILINE
    )


def parser() -> MarkdownIt:
    """Return a parser for CommonMark and tables, with HTML as separate tokens."""
    return MarkdownIt("commonmark").enable("table")


def render(text: str, pictures: Mapping[str, str], sections: Sequence[str]) -> markupsafe.Markup:
    """Render the report's Markdown as HTML. ``pictures`` are elements to show instead of picture
    files, by the path of the file; ``sections`` are those of the notes, as HTML."""
    from qjump_mn.report import mathematics  # matplotlib takes half a second to import

    markdown = parser()
    mathematics.enable(markdown)
    for name in ("html_block", "html_inline"):
        markdown.add_render_rule(name, _html)
    markdown.add_render_rule("html_literal", _literally)
    markdown.add_render_rule("figure_close", _literally)
    markdown.add_render_rule("image", _picture)
    markdown.add_render_rule("text", _text)
    tokens = markdown.disable("mathematics").parse(text)
    _typeset_headings(tokens, markdown.enable("mathematics"))
    _name_headings(tokens)
    _insert_contents(tokens)
    _mark_quotations(tokens)
    _make_figures(tokens)
    _mark_tables(tokens)
    environment = {"pictures": pictures, "sections": sections}
    return markupsafe.Markup(markdown.renderer.render(tokens, markdown.options, environment))


def _html(
    self: RendererProtocol, tokens: Sequence[Token], index: int, _options: Any, environment: Any
) -> str:
    """Keep the template's own HTML, insert the notes, and escape everything else."""
    content = tokens[index].content
    if mark := _NOTES.fullmatch(content.strip()):
        return f'<section class="own">\n{environment["sections"][int(mark[1])]}</section>\n'
    return content if _OURS.fullmatch(content) else html.escape(content)


def _literally(self: RendererProtocol, tokens: Sequence[Token], index: int, *_: Any) -> str:
    return tokens[index].content


def _picture(
    self: RendererProtocol, tokens: Sequence[Token], index: int, _options: Any, environment: Any
) -> str:
    return str(
        environment["pictures"].get(
            tokens[index].attrs.get("src"), html.escape(tokens[index].content)
        )
    )


def _text(self: RendererProtocol, tokens: Sequence[Token], index: int, *_: Any) -> str:
    return html.escape(templating.whole(tokens[index].content))


def _typeset_headings(tokens: Sequence[Token], markdown: MarkdownIt) -> None:
    """Parse the mathematics in headings of the notes; elsewhere a dollar sign is one."""
    for heading, inline, _, after in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        if heading.type == "heading_open" and _NOTES.fullmatch(after.content.strip()):
            inline.children = markdown.parseInline(inline.content)[0].children


def _name_headings(tokens: Sequence[Token]) -> None:
    """Give each heading the anchor that code hosts give it in report.md."""
    seen: set[str] = set()
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.tag != "h1":
            slug = re.sub(r"[^\w -]", "", inline.content).lower().replace(" ", "-")
            numbered = (f"{slug}-{number}" for number in count(1))
            name = slug if slug not in seen else next(name for name in numbered if name not in seen)
            seen.add(name)
            token.attrs["id"] = name


def _insert_contents(tokens: list[Token]) -> None:
    """List the sections below the summary and the line behind it."""
    items = "".join(
        f'<li><a href="#{token.attrs["id"]}">{_typeset(inline)}</a></li>\n'
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and token.tag == "h2"
    )
    ends = [at for at, token in enumerate(tokens) if token.type == "paragraph_close"]
    summary = next((at for at, token in enumerate(tokens) if token.type == "blockquote_close"), -1)
    place = next((at for at in ends if at > summary >= 0), None)
    if place is not None and items:
        contents = f'<nav class="contents" aria-label="Contents"><ul>\n{items}</ul></nav>\n'
        tokens.insert(place + 1, _literal(contents))


def _mark_quotations(tokens: Sequence[Token]) -> None:
    """Make the first quotation the summary, and others warnings."""
    quotations = [
        token for token in tokens if token.type.startswith("blockquote") and token.level == 0
    ]
    for token in quotations[:2]:
        token.tag = "section"
    for number, token in enumerate(quotations[::2]):
        token.attrs |= (
            {"class": "alert"} if number else {"class": "summary", "aria-label": "Summary"}
        )


def _make_figures(tokens: Sequence[Token]) -> None:
    """Make figures of the pictures, with the paragraph behind each as its caption."""
    for place, inline in enumerate(tokens):
        if [child.type for child in inline.children or ()] == ["image"]:
            figure, end, caption, caption_end = (tokens[place + offset] for offset in (-1, 1, 2, 4))
            figure.tag = "figure"
            end.hidden = True
            caption.tag, caption_end.type = "figcaption", "figure_close"
            caption_end.content = "</figcaption>\n</figure>\n"


def _mark_tables(tokens: list[Token]) -> None:
    """Give each table a caption, and label its cells for narrow pages."""
    caption, place = "", 0
    while place < len(tokens):
        token = tokens[place]
        if token.type == "heading_open":
            caption = _words(tokens[place + 1])
        elif found := _SUMMARY.search(token.content) if token.type == "html_block" else None:
            caption = html.unescape(found[1])
        elif token.type == "table_open":
            end = next(at for at in range(place, len(tokens)) if tokens[at].type == "table_close")
            tokens[place : end + 1] = _table(tokens[place : end + 1], caption)
        place += 1


def _table(tokens: Sequence[Token], caption: str) -> list[Token]:
    heads = [_words(inline) for token, inline in pairwise(tokens) if token.type == "th_open"]
    kind = "stack" if any(heads) else "kv"
    shown = html.escape(caption)
    opening = (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{shown}">'
        f'<table class="{kind}">\n'
        f"<caption>{shown}</caption>\n"
    )
    _mark_cells(tokens, heads)
    body = tokens[1:-1]
    if kind == "kv":
        body = body[next(at for at, token in enumerate(body) if token.type == "thead_close") + 1 :]
    return [_literal(opening), *body, _literal("</table></div>\n")]


def _mark_cells(tokens: Sequence[Token], heads: Sequence[str]) -> None:
    """Mark numbers, verdicts and headings; label each cell with its heading."""
    columns: Iterator[int] = iter(())
    for token, inline, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.type == "tr_open":
            columns = count()
        elif token.type in ("th_open", "td_open"):
            column, is_head = next(columns), token.type == "th_open"
            is_named = bool(heads[column])
            heads_row = not is_head and not is_named and column == 0
            token.tag = closing.tag = "th" if heads_row or (is_head and is_named) else "td"
            attrs = {"scope": "col" if is_head else "row"} if token.tag == "th" else {}
            if token.tag == "td" and is_named:
                attrs["data-label"] = heads[column]
            if token.attrs:  # a style, to the right
                attrs["class"] = "n"
            if status := _STATUS.fullmatch(inline.content) if not column else None:
                attrs["class"] = f"v {status[1].lower().replace(' ', '-')}"
            token.attrs = dict[str, str | int | float](attrs)


def _words(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())


def _typeset(inline: Token) -> str:
    """Return words as HTML, with their mathematics."""
    from qjump_mn.report import mathematics

    return "".join(
        mathematics.picture(child.content)
        if child.type == "mathematics"
        else html.escape(child.content)
        for child in inline.children or ()
    )


def _literal(content: str) -> Token:
    return Token("html_literal", "", 0, content=content)
