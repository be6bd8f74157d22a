"""The gallery: each page of figures, as that page and the table of all have it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from bench import figures, gallery, marks

ENTRY = re.compile(r"- \[!\[\]\(figures/(.+)\) (.+)\]\(figures/(.+)\.md\)\n  (.+)")


def entries() -> list[tuple[str, str, str, str]]:
    return ENTRY.findall(marks.read(gallery.PAGE, "gallery"))


def test_the_page_is_what_the_program_writes(capsys: pytest.CaptureFixture[str]) -> None:
    assert gallery.main([]) == 0
    assert capsys.readouterr().out.strip("\n") == marks.read(gallery.PAGE, "gallery")
    assert gallery.main(["--wrong"]) == 2


def test_every_page_with_a_picture_is_there_with_its_verdicts() -> None:
    found = entries()
    assert [name for _, _, name, _ in found] == [
        name for name, page in figures.written() if "\n![" in page
    ]
    assert len(found) > 25
    rows = marks.read(figures.PAGE, "figures").splitlines()
    for picture, title, name, verdicts in found:
        (row,) = (row for row in rows if f"(figures/{name}.md)" in row)
        assert row.startswith(f"| [{title}](") and row.endswith(f"| {verdicts} |")
        # The first one of its page.
        assert f"]({picture})" in (figures.PAGES / f"{name}.md").read_text().partition("\n| ")[0]
        assert (figures.PAGES / picture).is_file()


def test_thumbnails_are_small_and_keep_their_shape(tmp_path: Path) -> None:
    gallery.write_thumbnails(tmp_path)
    made = tmp_path / gallery.THUMBNAILS
    assert {path.name for path in made.iterdir()} == {picture for picture, *_ in entries()}
    for path in made.iterdir():
        with Image.open(path) as small, Image.open(figures.PAGES / path.name) as whole:
            assert max(small.size) <= gallery.WIDTH
            assert small.width / small.height == pytest.approx(whole.width / whole.height, rel=0.02)
    assert sum(path.stat().st_size for path in made.iterdir()) < 2_500_000


def test_a_page_of_the_site_shows_thumbnails() -> None:
    body = '<a href="figures/x.html"><img alt="" src="../_images/x-bars.png" /> x</a>'
    assert gallery.with_thumbnails(body) == (
        '<a href="figures/x.html"><img alt="" src="../_images/thumbnails/x-bars.png" '
        'loading="lazy" /> x</a>'
    )
