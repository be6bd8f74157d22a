"""What whoever made a run writes about it: kept, placed, and never more than text."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import markdown_it
import pytest

from qjump_mn.analysis import pipeline
from qjump_mn.analysis.__main__ import main
from qjump_mn.errors import UsageError
from qjump_mn.report import notes
from tests.report.test_report import Reader
from tests.support import synthetic

EVIL = '<script>alert("x")</script>'
OWN = f"""Before any heading.

# Introduction

A *priority* is bound to a rate: `tc qdisc | grep <root>`.

| level | rate |
|---|---|
| 7 | low |

## critique

{EVIL}

Inline {EVIL} and <img src=x onerror=alert(1)> and [a link](javascript:alert(1)).

> # A heading in a quotation

## Related work in `<script>`

pFabric.
"""
ONE_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)


def sections(folder: Path, text: str) -> notes.Written:
    (folder / notes.NAME).write_text(text)
    return notes.read(folder)


def test_notes_begin_with_headings_and_are_never_overwritten(tmp_path: Path) -> None:
    run = synthetic.make(tmp_path / "results").path
    pipeline.analyse(run)
    path = run / notes.NAME
    begun = path.read_text()
    assert [line.removeprefix("## ") for line in begun.splitlines() if line.startswith("## ")] == [
        *notes.SECTIONS
    ]
    page, text = ((run / name).read_text() for name in ("report.html", "report.md"))
    for content in (Reader(page).text, text):
        assert f"Not written: {', '.join(notes.SECTIONS)}." in content
    assert '<section class="own">' not in page
    path.write_text(OWN)
    pipeline.analyse(run)
    assert path.read_text() == OWN
    page, text = ((run / name).read_text() for name in ("report.html", "report.md"))
    for content in (Reader(re.sub("<nav.*?</nav>", "", page, flags=re.DOTALL)).text, text):
        places = [
            content.index(part)
            for part in ("bound to a rate", "Original result", "alert(", "pFabric.")
        ]
        assert places == sorted(places)
        assert "Not written: Subset and motivation, Ablation, Challenges." in content
    assert page.count('<section class="own">') == 4
    assert ">Related work in &lt;script&gt;</h2>" in page
    assert "## Related work in &lt;script>\n" in text and "<script" not in text
    assert Reader(page).open == []


def test_nothing_of_it_becomes_html(tmp_path: Path) -> None:
    own = sections(tmp_path, OWN)
    page = own.placed["Critique"].html
    assert EVIL in Reader(page).text
    for forbidden in ("<script", "<img", "<a ", "<h1", "<h2"):
        assert forbidden not in page
    tokens = [
        child
        for section in (*own.placed.values(), *own.others)
        for token in markdown_it.MarkdownIt("commonmark").parse(section.markdown)
        for child in (token, *(token.children or ()))
    ]
    assert tokens and not any(token.type.startswith("html") for token in tokens)
    assert "alert(" in own.placed["Critique"].markdown


@pytest.mark.parametrize(
    "text",
    [
        "<!-- open\n\n<script>",
        "`<b>` <b>",
        "\\`<script>`\n",
        "> <a\n> href='x'>",
        "- <div>\n  <p>\n\n  </p>",
        "<![CDATA[<script>]]>",
        "<?php echo ?>",
        "| <b> |\n|---|\n| <script> |",
    ],
)
def test_html_in_any_dress_is_text_in_markdown_too(text: str, tmp_path: Path) -> None:
    own = sections(tmp_path, f"## Critique\n\n{text}\n")
    for token in (
        markdown_it.MarkdownIt("commonmark").enable("table").parse(own.placed["Critique"].markdown)
    ):
        assert not any(one.type.startswith("html") for one in (token, *(token.children or ())))
    assert "<script" not in own.placed["Critique"].html


def test_comments_and_empty_headings_are_left_out_and_code_is_kept(tmp_path: Path) -> None:
    own = sections(
        tmp_path,
        "## Introduction\n\n<!-- what to write -->\n\n## Critique\n\nIt <!-- so --> "
        "holds.\n\n```c\n#include <stdio.h>\n```\n",
    )
    assert list(own.placed) == ["Critique"]
    assert own.empty == ["Introduction", "Subset and motivation", "Ablation", "Challenges"]
    assert "#include <stdio.h>" in own.placed["Critique"].markdown
    assert "#include &lt;stdio.h&gt;" in own.placed["Critique"].html
    assert "so" not in Reader(own.placed["Critique"].html).text.split()


def test_a_second_section_of_one_title_is_kept_too(tmp_path: Path) -> None:
    own = sections(tmp_path, "## Critique\n\none\n\n## Critique\n\ntwo\n")
    assert own.placed["Critique"].markdown == "one"
    assert [(section.title, section.markdown) for section in own.others] == [("Critique", "two")]


def test_page_embeds_pictures_of_the_run_and_no_other_file(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "my plot.png").write_bytes(ONE_PIXEL)
    (tmp_path / "secret.png").write_bytes(b"secret")
    (run / "link.png").symlink_to(tmp_path / "secret.png")
    pictures = "![mine](my%20plot.png) ![up](../secret.png) ![link](link.png) ![none](none.png) ![web](https://a.b/c.png) ![text](notes.md)"
    page = sections(run, f"## Critique\n\n{pictures}\n").placed["Critique"].html
    assert (
        f'<img src="data:image/png;base64,{base64.b64encode(ONE_PIXEL).decode()}" alt="mine">'
        in page
    )
    assert page.count("<img") == 1 and base64.b64encode(b"secret").decode() not in page
    for missing in ("../secret.png", "link.png", "none.png", "notes.md"):
        assert f"the run directory has no picture {missing}" in page
    assert '<a href="https://a.b/c.png">web</a>' in page
    impossible = sections(
        run, f"## Critique\n\n![zero](a%00.png) ![long]({'a' * 300}.png)\n"
    ).placed["Critique"]
    assert impossible.html.count("the run directory has no picture") == 2


def test_what_is_no_text_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = synthetic.make(tmp_path / "results").path
    (run / notes.NAME).write_bytes("Motivación".encode("latin-1"))
    with pytest.raises(UsageError, match="is not UTF-8 text: save it as that"):
        notes.read(run)
    assert main([str(run)]) == 2
    assert (
        capsys.readouterr().err
        == f"qjump-mn: {run / notes.NAME} is not UTF-8 text: save it as that\n"
    )
    assert not (run / "report.html").exists()
