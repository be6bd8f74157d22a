"""The templates of pages and texts, with what they word things by."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import jinja2
import markupsafe

FOLDER = Path(__file__).parent / "templates"


def page(name: str) -> jinja2.Template:
    """A template of HTML: what it is given is text, unless it is Markup."""
    return _environment(autoescape=True).get_template(name)


def text(name: str) -> jinja2.Template:
    """A template of Markdown: what it is given is text, unless it is Markup."""
    return _environment(autoescape=False).get_template(name)


def sentence(words: object) -> str:
    """The same, beginning with a capital letter."""
    return str(words)[:1].upper() + str(words)[1:]


def whole(value: object) -> str:
    """A value whose unit stays on its line, however narrow the column."""
    told = re.sub(r"(?<=[\d\]]) (?=(?:ms|us)\b)", "\N{NO-BREAK SPACE}", str(value))
    return markupsafe.Markup(told) if isinstance(value, markupsafe.Markup) else told


def _cell(words: object) -> str:
    """What stands in a cell of a Markdown table."""
    return str(words).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


_LINK = re.compile(r"\](?=[(\[:])")
"""What makes links, pictures and their definitions of the brackets before it."""


_CODE_PAIRS = re.compile(r"[^`\\]*(`[^`\\]+`[^`\\]+)*(`[^`\\]+`)?")
"""Words with whole pieces of code: an odd backtick would turn inside out what follows in the line."""


def _plain(value: Any) -> Any:
    """A value in Markdown without HTML, links, pictures or lines of its own: a stranger's plan has words,
    which a reader of the report must see as words. Markup stays as it is."""
    if not isinstance(value, str) or isinstance(value, markupsafe.Markup):
        return value
    words = " ".join(value.splitlines()).replace("<", "&lt;")
    if not _CODE_PAIRS.fullmatch(words):
        words = words.replace("`", "&#96;")
    return _LINK.sub(r"]\\", words)


def _code(words: object) -> markupsafe.Markup:
    """What stands between backticks: as it is, but without backticks, which would end it."""
    return markupsafe.Markup(str(words).replace("`", "'"))


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
        finalize=None if autoescape else _plain,
    )
    environment.filters["code"] = _code
    environment.filters["cell"] = _cell
    environment.filters["verdict_class"] = lambda verdict: str(verdict).lower().replace(" ", "-")
    environment.filters["sentence"] = sentence
    environment.filters["whole"] = whole
    return environment
