"""Configure Sphinx to make a site of the repository's Markdown; `bench/site.py` runs it.

Pages are the files as they are, with the links that a code host shows too. Only
docs/simulator-api.md has more on the site: every field of the package, from its sources. README.md
of this folder lists the pages: its headings are the parts of the site's contents, and a page that
it leaves out is a warning.
"""

from __future__ import annotations

import re
from typing import Any

import qjump_mn
from bench import simulator_api

project = "qjump-mn"
author = "The qjump-mn maintainers"
release = version = qjump_mn.__version__

extensions = ["myst_nb"]
root_doc = "docs/README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/*.ipynb",
    "contrib/*/README.md",
    "examples/*/README.md",
    "kernel/README.md",
    "kmod-patches/*.md",
    "mininet-qos/README.md",
    "native/*/README.md",
    "simulator/README.md",
    "simulator/python/README.md",
]
highlight_language = "none"
myst_heading_anchors = 4

# The notebook is run anew, in a folder of its own, and an error in it is an error of the site.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True

html_theme = "furo"
html_title = f"qjump-mn {release}"
html_copy_source = False
html_additional_pages = {"index": "index.html"}
templates_path = ["templates"]


def contents(text: str) -> str:
    """Return Sphinx's lists of pages from the links of each part of docs/README.md."""
    lists = []
    for part in text.split("\n## ")[1:]:
        links = re.findall(r"\[([^]]+)\]\(([^)]+)\.(?:md|ipynb)\)", part)
        pages = [f"{words} </docs/{page}>" for words, page in links]
        title = part.splitlines()[0]
        lists.append(
            "\n".join(["```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```"])
        )
    return "\n\n".join(lists)


def _complete(app: Any, page: str, source: list[str]) -> None:
    """Add to a page what only the site has."""
    if page == root_doc:
        source[0] += "\n" + contents(source[0])
    elif page == "docs/simulator-api":
        source[0] = simulator_api.in_full(source[0])


def setup(app: Any) -> None:
    """Connect to Sphinx, which calls this first."""
    app.connect("source-read", _complete)
