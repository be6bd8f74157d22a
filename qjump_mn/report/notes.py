"""Read ``notes.md``, the text that people write about their run, and show it in the report.

It may be a stranger's, from a bundle. So only Markdown becomes HTML, and no file outside the run
directory is read for it.
"""

from __future__ import annotations

import base64
import html
import itertools
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import markupsafe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token

from qjump_mn.errors import UsageError, reason_of
from qjump_mn.report import markdown, templating

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
    """Return a picture's media type by its name; None for another file."""
    return PICTURES.get(picture.suffix.lower())


_WHOSE = "In the words of whoever made this run:"
_BEFORE = "Notes"
"""The title of the text before the first heading."""
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


class Section(NamedTuple):
    """The text below a heading, as HTML, and as Markdown without HTML; ``heading`` is the title as
    Markdown."""

    title: str
    heading: markupsafe.Markup
    html: markupsafe.Markup
    markdown: str

    @property
    def signed(self) -> tuple[str, str]:
        """Return the Markdown and the HTML, each with its author."""
        link = f'<a href="{NAME}">{NAME}</a>'
        return (
            f"{self.markdown}\n\n*{_WHOSE} [{NAME}]({NAME})*",
            f'{self.html}<p class="soft">{_WHOSE} {link}</p>\n',
        )


NOTHING = Section("", markupsafe.Markup(), markupsafe.Markup(), "")


class Written(NamedTuple):
    """The sections with a place, by their titles in :data:`SECTIONS`; those without; and the empty
    titles."""

    placed: Mapping[str, Section]
    others: Sequence[Section]
    empty: Sequence[str]

    def section(self, title: str) -> Section:
        """Return the text below a title; :data:`NOTHING` if there is none."""
        return self.placed.get(title, NOTHING)

    @property
    def sections(self) -> list[Section]:
        """Return all sections, those with a place first."""
        return [*self.placed.values(), *self.others]

    def place(self, section: Section) -> markupsafe.Markup:
        """Mark the place of a section in the report's Markdown."""
        return markdown.place(self.sections.index(section))


def begin(folder: Path) -> None:
    """Write the headings into ``notes.md`` of a run directory, unless there is such a file."""
    try:
        with (folder / NAME).open("x", encoding="utf-8") as file:
            file.write(BEGINNING.read_text(encoding="utf-8"))
    except FileExistsError:
        pass


def read(folder: Path) -> Written:
    """Return the notes in the run directory. Raises :class:`UsageError` if they cannot be read."""
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
    for title, heading, content in _split(text):
        section = Section(title, heading, _html(content, folder), _without_html(content))
        place = known.get(title.casefold(), "")
        if not section.html.strip():
            continue
        if place and place not in placed:
            placed[place] = section._replace(title=place, heading=markupsafe.Markup(place))
        else:
            others.append(section)
    return Written(placed, others, [title for title in SECTIONS if title not in placed])


def _split(text: str) -> Iterator[tuple[str, markupsafe.Markup, str]]:
    """Return the titles of the two upper levels, as words and as Markdown, and the text below each;
    "Notes" is the text before them."""
    lines = text.splitlines()
    title, heading, first = _BEFORE, markupsafe.Markup(_BEFORE), 0
    tokens = _parser().parse(text)
    for place, token in enumerate(tokens):
        if (
            token.type == "heading_open"
            and token.tag in ("h1", "h2")
            and token.level == 0
            and token.map
        ):
            yield title, heading, "\n".join(lines[first : token.map[0]])
            title, heading = _title(tokens[place + 1])
            first = token.map[1]
    yield title, heading, "\n".join(lines[first:])


def _parser() -> MarkdownIt:
    from qjump_mn.report import mathematics  # matplotlib takes half a second to import

    parser = markdown.parser()
    mathematics.enable(parser)
    return parser


def _title(inline: Token) -> tuple[str, markupsafe.Markup]:
    """Return a title without Markdown marks, and as Markdown that has only its mathematics."""
    pieces: list[tuple[bool, str]] = []
    for child in inline.children or ():
        is_tex = child.type == "mathematics"
        mark = "$" * (1 + child.block) if is_tex else ""
        if child.type != "html_inline":
            text = " " if child.type == "softbreak" else child.content
            pieces.append((is_tex, f"{mark}{text}{mark}"))
    joined = [
        (is_tex, "".join(text for _, text in run))
        for is_tex, run in itertools.groupby(pieces, key=lambda piece: piece[0])
    ]
    marked = (
        _without_html(text) if is_tex else templating.plain(text).replace("$", "\\$")
        for is_tex, text in joined
    )
    words, heading = (
        " ".join("".join(some).split()) or _BEFORE
        for some in ((text for _, text in joined), marked)
    )
    return words, markupsafe.Markup(heading)


def _html(text: str, folder: Path) -> markupsafe.Markup:
    renderer = _parser()
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
    """Return HTML as visible text, without comments."""
    return html.escape(_COMMENT.sub("", tokens[index].content))


def _as_paragraph(self: RendererProtocol, tokens: Sequence[Token], index: int, *_: Any) -> str:
    text = _as_text(self, tokens, index).strip()
    return f"<p>{text}</p>\n" if text else ""


def _picture(
    self: RendererProtocol, tokens: Sequence[Token], index: int, _options: Any, environment: Any
) -> str:
    """Return a picture of the run directory as part of the page, and a link for one on the web."""
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
    """Return Markdown in which tags are shown as text, and comments are left out."""
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
    tokens = [
        child
        for token in markdown.parser().parse(text)
        for child in (token, *(token.children or ()))
    ]
    return any(token.type in ("html_block", "html_inline") for token in tokens)
