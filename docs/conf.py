"""Configure Sphinx to make a site of the repository's Markdown; `bench/site.py` runs it.

Pages are the files as they are, with the links that a code host shows too. On the site
docs/simulator-api.md has every field of the package, from its sources, and docs/simulator.md a link
to the simulator in a browser. README.md of this folder lists the pages: its headings are the parts
of the site's contents, and a page that it leaves out is a warning.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import qjump_mn
from bench import figures, gallery, marks, simulator_api
from bench.web import PLACE

project = "qjump-mn"
author = "The qjump-mn maintainers"
release = version = qjump_mn.__version__

extensions = ["myst_nb"]
root_doc = "docs/README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/*.ipynb",
    "docs/figures/*.md",
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
html_static_path = ["static"]
html_css_files = ["gallery.css"]
templates_path = ["templates"]


def contents(parts: dict[str, str]) -> str:
    """Return Sphinx's lists of pages: a list for each part of a page, by its title, from the links
    in its text."""
    lists = []
    for title, text in parts.items():
        links = re.findall(r"\[([^]]+)\]\(([^)]+)\.(?:md|ipynb)\)", text)
        pages = [f"{words} </docs/{page}>" for words, page in links]
        lists.append(
            "\n".join(["```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```"])
        )
    return "\n\n".join(lists)


def _complete(app: Any, page: str, source: list[str]) -> None:
    """Add to a page what only the site has."""
    if page == root_doc:
        parts = (part.partition("\n") for part in source[0].split("\n## ")[1:])
        source[0] += "\n" + contents({title: text for title, _, text in parts})
    elif page == "docs/figures":
        table = marks.read(figures.PAGE, "figures")
        source[0] += "\n\n" + contents({"Every figure": table})
    elif page == "docs/simulator-api":
        source[0] = simulator_api.in_full(source[0])
    elif page == "docs/simulator" and app.tags.has("simulator"):
        link = f'<a href="../{PLACE}">{PLACE}</a>'
        source[0] = source[0].replace(f"`{PLACE}` of the site", link)


def _show_thumbnails(app: Any, page: str, template: str, context: Any, tree: Any) -> None:
    if page == "docs/gallery":
        context["body"] = gallery.with_thumbnails(context["body"])


def _finish(app: Any, exception: Exception | None) -> None:
    if exception is None:
        gallery.write_thumbnails(Path(app.outdir))


def setup(app: Any) -> None:
    """Connect to Sphinx, which calls this first."""
    app.connect("source-read", _complete)
    app.connect("html-page-context", _show_thumbnails)
    app.connect("build-finished", _finish)
