"""``notes.md``: what whoever made a run writes about it, and how the report shows that.

It is a text of somebody's own, or a stranger's from a bundle: nothing of it becomes HTML but what Markdown
makes of it, and no file outside of the run directory is read for it.
"""

from __future__ import annotations

import base64
import html
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import markupsafe
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token

from qjump_mn.errors import UsageError, reason_of
from qjump_mn.report import markdown

NAME = "notes.md"
BEGINNING = Path(__file__).parent / "templates" / NAME
SECTIONS = ("Introduction", "Subset and motivation", "Ablation", "Challenges", "Critique")
"""Those that have a place of their own in the report; others come behind the last of them."""

PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
}
MOST_BYTES = 16 << 20
"""Of a picture."""


def kind_of(picture: PurePath) -> str | None:
    """The type of a picture by its name, as browsers call it; None for another file."""
    return PICTURES.get(picture.suffix.lower())


_WHOSE = "In the words of whoever made this run:"
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


class Section(NamedTuple):
    """What stands below a heading, as HTML and as Markdown without HTML in it."""

    title: str
    html: markupsafe.Markup
    markdown: str

    @property
    def signed(self) -> tuple[str, str]:
        """The Markdown and the HTML, each with whose words they are."""
        link = f'<a href="{NAME}">{NAME}</a>'
        return (
            f"{self.markdown}\n\n*{_WHOSE} [{NAME}]({NAME})*",
            f'{self.html}<p class="soft">{_WHOSE} {link}</p>\n',
        )


NOTHING = Section("", markupsafe.Markup(), "")


class Written(NamedTuple):
    """The sections of a text that have a place, by their titles in :data:`SECTIONS`, those that have none,
    and the titles that nothing is written below."""

    placed: Mapping[str, Section]
    others: Sequence[Section]
    empty: Sequence[str]

    def section(self, title: str) -> Section:
        """What is written below a title; :data:`NOTHING` where that is nothing."""
        return self.placed.get(title, NOTHING)

    @property
    def sections(self) -> list[Section]:
        """All sections, the placed ones first."""
        return [*self.placed.values(), *self.others]

    def place(self, section: Section) -> markupsafe.Markup:
        """Mark where a section stands in the report's Markdown."""
        return markdown.place(self.sections.index(section))


def begin(folder: Path) -> None:
    """Write the headings into ``notes.md`` of a run directory, unless there is such a file."""
    try:
        with (folder / NAME).open("x", encoding="utf-8") as file:
            file.write(BEGINNING.read_text(encoding="utf-8"))
    except FileExistsError:
        pass


def read(folder: Path) -> Written:
    """What is written in the run directory; raise :class:`UsageError` where that cannot be read."""
    path = folder / NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text: save it as that") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {reason_of(error)}") from None
    known = {title.casefold(): title for title in SECTIONS}
    placed: dict[str, Section] = {}
    others = []
    for title, content in _split(text):
        section = Section(title, _html(content, folder), _without_html(content))
        place = known.get(title.casefold(), "")
        if not section.html.strip():
            continue
        if place and place not in placed:
            placed[place] = section._replace(title=place)
        else:
            others.append(section)
    return Written(placed, others, [title for title in SECTIONS if title not in placed])


def _split(text: str) -> Iterator[tuple[str, str]]:
    """The titles of the two upper levels, and what stands below each; "Notes" is what stands before them."""
    lines = text.splitlines()
    title, first = "Notes", 0
    tokens = markdown.parser().parse(text)
    for place, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag in ("h1", "h2") and token.level == 0 and token.map:
            yield title, "\n".join(lines[first : token.map[0]])
            title, first = _plain(tokens[place + 1]), token.map[1]
    yield title, "\n".join(lines[first:])


def _plain(inline: Token) -> str:
    """A title without its marks."""
    found = "".join(child.content for child in inline.children or () if child.type != "html_inline")
    return " ".join(found.split()) or "Notes"


def _html(text: str, folder: Path) -> markupsafe.Markup:
    renderer = markdown.parser()
    renderer.add_render_rule("html_inline", _as_text)
    renderer.add_render_rule("html_block", _as_paragraph)
    renderer.add_render_rule("image", _picture)
    environment = {"folder": folder}
    tokens = renderer.parse(text, environment)
    for token in tokens:
        if token.tag in ("h1", "h2"):  # in a quotation: the page has its own
            token.tag = "h3"
    return markupsafe.Markup(renderer.renderer.render(tokens, renderer.options, environment))


def _as_text(self: RendererProtocol, tokens: Sequence[Token], index: int, *_: Any) -> str:
    """HTML as what it looks like, without comments."""
    return html.escape(_COMMENT.sub("", tokens[index].content))


def _as_paragraph(self: RendererProtocol, tokens: Sequence[Token], index: int, *_: Any) -> str:
    text = _as_text(self, tokens, index).strip()
    return f"<p>{text}</p>\n" if text else ""


def _picture(
    self: RendererProtocol, tokens: Sequence[Token], index: int, _options: Any, environment: Any
) -> str:
    """A picture of the run directory as a part of the page; a link to one that lies elsewhere in the net."""
    source = str(tokens[index].attrs.get("src", ""))
    about = html.escape(tokens[index].content)
    if re.match(r"https?://", source):
        return f'<a href="{html.escape(source)}">{about or "picture"}</a>'
    folder = environment["folder"].resolve()
    name = urllib.parse.unquote(source)
    try:
        path = (folder / name).resolve()
        is_there = path.is_relative_to(folder) and path.is_file()
    except (OSError, ValueError):  # too long, or with a zero
        is_there = False
    if not is_there or (kind := kind_of(path)) is None:
        return f"<em>{about} (the run directory has no picture {html.escape(name)})</em>"
    if path.stat().st_size > MOST_BYTES:
        return f"<em>{about} ({html.escape(name)} has more than {MOST_BYTES >> 20} MiB)</em>"
    content = base64.b64encode(path.read_bytes()).decode()
    return f'<img src="data:{kind};base64,{content}" alt="{about}">'


def _without_html(text: str) -> str:
    """Markdown of which no reader makes HTML of its own: tags are shown as text, comments are left out."""
    lines = text.splitlines()
    for token in reversed(markdown.parser().parse(text)):
        pieces = [child.content for child in token.children or () if child.type == "html_inline"]
        if token.type == "html_block":
            pieces = [token.content.strip("\n")]
        if pieces and token.map:
            first, end = token.map
            block = "\n".join(lines[first:end])
            for piece in dict.fromkeys(pieces):
                block = block.replace(piece, _escaped(_COMMENT.sub("", piece)))
            lines[first:end] = block.splitlines()
    found = "\n".join(lines).strip()
    return _escaped(found) if _has_html(found) else found


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;")


def _has_html(text: str) -> bool:
    tokens = [child for token in markdown.parser().parse(text) for child in (token, *(token.children or ()))]
    return any(token.type in ("html_block", "html_inline") for token in tokens)
