"""Parts of pages that contain all of their data and fetch nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import markupsafe
import msgspec

from qjump_mn.report import templating


class Asset(NamedTuple):
    """A text of ours in a page, with its hash for the Content-Security-Policy."""

    text: markupsafe.Markup
    hash: str


def asset(names: Sequence[str]) -> Asset:
    """Return the files ``names`` of the templates as one style or script."""
    texts = ((templating.FOLDER / name).read_text(encoding="utf-8") for name in names)
    return inline("\n" + "".join(texts))


def inline(text: str) -> Asset:
    """Return a text as one style or script."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Asset(markupsafe.Markup(text), f"sha256-{digest}")


def json(content: Any) -> markupsafe.Markup:
    """Return JSON that cannot end the element it is in."""
    text = msgspec.json.encode(content).decode()
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return markupsafe.Markup(text)
