"""Load the templates of pages and texts, and escape values for Markdown."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import markupsafe

FOLDER = Path(__file__).parent / "templates"


def page(name: str) -> jinja2.Template:
    """Load a template of HTML, which escapes values unless they are Markup."""
    return _environment(autoescape=True).get_template(name)


def text(name: str) -> jinja2.Template:
    """Load a template of Markdown, which escapes values unless they are Markup."""
    return _environment(autoescape=False).get_template(name)


def sentence(words: object) -> str:
    """Capitalise the first letter."""
    return str(words)[:1].upper() + str(words)[1:]


def whole(words: str) -> str:
    """Keep a unit on the line of its value, however narrow the column."""
    return re.sub(r"(?<=[\d\]]) (?=(?:ms|us)\b)", "\N{NO-BREAK SPACE}", words)


_LINK = re.compile(r"\](?=[(\[:])")
"""What makes links, pictures and their definitions of the brackets before it."""

_CODE_PAIRS = re.compile(r"[^`\\]*(`[^`\\]+`[^`\\]+)*(`[^`\\]+`)?")
"""Words with whole pieces of code: an odd backtick would turn inside out what follows in the
line."""

_MARKS = re.compile(
    r"(`[^`]*`)|\\(?=[!-/:-@\[-`{-~])|\*(?! )|(?<! )\*|(?<!\w)_|_(?!\w)|&(?=#?\w+;)"
)
"""What Markdown would take for marks or entities; pieces of code stay as they are."""


def plain(value: Any) -> Any:
    """Escape a value for Markdown, so that it has no HTML, links, pictures, emphasis or lines of
    its own: a reader of a stranger's report must see words as words. Markup stays as it is."""
    if not isinstance(value, str) or isinstance(value, markupsafe.Markup):
        return value
    words = " ".join(value.splitlines())
    if not _CODE_PAIRS.fullmatch(words):
        words = words.replace("`", "\0")
    words = _MARKS.sub(_escaped, words).replace("<", "&lt;").replace("\0", "&#96;")
    return _LINK.sub(r"]\\", words)


def _escaped(mark: re.Match[str]) -> str:
    return mark[1] or ("&amp;" if mark[0] == "&" else f"\\{mark[0]}")


def code(words: object) -> markupsafe.Markup:
    """Write a cell of a table as code, without the backticks that would end it; "" for no words."""
    inside = " ".join(str(words).splitlines()).replace("`", "'").replace("|", "\\|")
    return markupsafe.Markup(f"`{inside}`" if inside else "")


def cell(value: object) -> markupsafe.Markup:
    """Escape a value for a cell of a Markdown table."""
    if isinstance(value, markupsafe.Markup):
        return value
    return markupsafe.Markup(plain(str(value)).replace("|", "\\|"))


def lines(values: Iterable[object]) -> markupsafe.Markup:
    """Join the lines of one cell; empty ones are left out."""
    return markupsafe.Markup("<br>".join(filter(None, map(cell, values))))


def strong(words: object, is_strong: bool = True) -> markupsafe.Markup:
    """Set words in bold, unless ``is_strong`` is false."""
    return markupsafe.Markup(f"**{plain(str(words))}**" if is_strong else plain(str(words)))


def soft(words: str) -> markupsafe.Markup:
    """Set apart words of a cell that are less important."""
    return markupsafe.Markup(f"*{cell(words)}*")


def table(
    heads: Sequence[str], rows: Iterable[Sequence[object]], numbers: int = 1
) -> markupsafe.Markup:
    """Write a Markdown table; columns from ``numbers`` on hold numbers."""
    under = ["---:" if column >= numbers else "---" for column in range(len(heads))]
    shown = (map(cell, heads), under, *(map(cell, row) for row in rows))
    return markupsafe.Markup("\n".join(f"| {' | '.join(cells)} |" for cells in shown))


def _block(texts: Iterable[str]) -> markupsafe.Markup:
    """Write lines of code, behind a fence that none of them ends."""
    inside = "\n".join(texts)
    fence = max([2, *map(len, re.findall("`+", inside))]) * "`" + "`"
    return markupsafe.Markup(f"{fence}\n{inside}\n{fence}")


def _raw(words: object) -> markupsafe.Markup:
    """Escape words for a line of HTML."""
    return markupsafe.escape(" ".join(str(words).splitlines()))


def load() -> None:
    """Compile every template now."""
    for name in _environment(autoescape=False).list_templates():
        _environment(autoescape=".html." in name).get_template(name)


@functools.cache
def _environment(*, autoescape: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=autoescape,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=None if autoescape else plain,
    )
    environment.filters |= {"block": _block, "raw": _raw, "sentence": sentence, "strong": strong}
    environment.globals["table"] = table
    return environment
