"""The templates of pages and texts, with what they word things by."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import markupsafe

FOLDER = Path(__file__).parent / "templates"


def page(name: str) -> jinja2.Template:
    """A template of HTML: what it is given is text, unless it is Markup."""
    return _environment(autoescape=True).get_template(name)


def text(name: str) -> jinja2.Template:
    """A template of Markdown."""
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


def _environment(*, autoescape: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=autoescape,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["cell"] = _cell
    environment.filters["verdict_class"] = lambda verdict: str(verdict).lower().replace(" ", "-")
    environment.filters["sentence"] = sentence
    environment.filters["whole"] = whole
    return environment
