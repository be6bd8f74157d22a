"""Where benchmarks write in the documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import marks

DOCUMENT = "# Head\n\n<!-- bench/cost begin -->\nold\n\nlines\n<!-- bench/cost end -->\n\ntail\n"
DOCS = Path(__file__).parents[1] / "docs"


def test_only_what_lies_between_the_marks_changes(tmp_path: Path) -> None:
    path = tmp_path / "document.md"
    path.write_text(DOCUMENT)
    assert marks.read(path, "cost") == "old\n\nlines"
    marks.write(path, "cost", "new")
    assert path.read_text() == DOCUMENT.replace("old\n\nlines", "new")
    marks.write(path, "cost", marks.read(path, "cost"))
    assert path.read_text() == DOCUMENT.replace("old\n\nlines", "new")


@pytest.mark.parametrize("which", ["begin", "end"])
def test_a_document_without_both_marks_stays_as_it_is(which: str, tmp_path: Path) -> None:
    path = tmp_path / "document.md"
    for damaged in (DOCUMENT.replace(f"<!-- bench/cost {which} -->\n", ""), DOCUMENT + f"<!-- bench/cost {which} -->\n"):
        path.write_text(damaged)
        with pytest.raises(SystemExit, match="has not <!-- bench/cost begin --> and <!-- bench/cost end -->, once each"):
            marks.write(path, "cost", "new")
        assert path.read_text() == damaged


@pytest.mark.parametrize(("document", "name"), [("emulation.md", "emulation"), ("figures.md", "figures"), ("qdisc.md", "qdisc"), ("qdisc-cost.md", "qdisc")])
def test_every_document_has_the_marks_of_its_benchmark(document: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / document
    path.write_text((DOCS / document).read_text())
    assert marks.read(path, name)
    marks.write(path, name, marks.read(path, name))
    assert path.read_text() == (DOCS / document).read_text()
