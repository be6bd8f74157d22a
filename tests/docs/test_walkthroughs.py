"""Pages to follow step by step: their files are written, their commands run in their order, and
what they show is what is printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

import qjump_mn
from qjump_mn.results import directory, outcome
from tests.support.processes import cli

DOCS = Path(qjump_mn.__file__).parents[1] / "docs"
PAGES = ("first-hour.md", "teaching.md", "research.md")
FENCE = re.compile(
    r"(?:<!-- (?P<note>[^\n]*) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)```", re.DOTALL
)


class Step(NamedTuple):
    """A box of a page: a file in TOML, commands, or what the last command printed (text). ``note``
    is "guest" for what boots one, and else says why it is not run here."""

    language: str
    text: str
    note: str


def steps(page: str) -> list[Step]:
    """The boxes of a page; each must be one of those."""
    found = [
        Step(match["language"], match["text"], match["note"] or "")
        for match in FENCE.finditer((DOCS / page).read_text())
    ]
    assert found and {step.language for step in found} <= {"toml", "text", ""}
    assert all(re.fullmatch("|guest|not run: .+", step.note) for step in found)
    return found


def walk(page: str, folder: Path, note: str) -> None:
    """Write every file of a page, and run the commands that have this note."""
    said = ""
    for step in steps(page):
        if step.language == "toml":
            path = folder / step.text.partition("\n")[0].removeprefix("# ")
            path.parent.mkdir(exist_ok=True)
            path.write_text(step.text)
        elif step.note == note and not step.language:
            said = "".join(called(line, folder) for line in step.text.splitlines())
        elif step.language and not note:
            printed = [" ".join(line.split()) for line in said.splitlines()]
            assert [
                line for line in step.text.splitlines() if " ".join(line.split()) not in printed
            ] == [], said


def called(line: str, folder: Path) -> str:
    """What a command of a page prints; it must end as the page says."""
    words = shlex.split(line, comments=True)
    assert words[0] == "qjump-mn", line
    done = cli(*words[1:], cwd=folder)
    expected = re.search(r"# exit code (\d+)$", line)
    assert done.returncode == (int(expected[1]) if expected else 0), (
        f"{line}\n{done.stdout}{done.stderr}"
    )
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_followed(page: str, tmp_path: Path) -> None:
    walk(page, tmp_path, "")


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(step.note == "guest" for step in steps(page))]
)
def test_what_a_page_does_with_real_linux(page: str, tmp_path: Path) -> None:
    walk(page, tmp_path, "guest")
    found = outcome.read(directory.existing(tmp_path / "results/last").path)
    assert found.believable and not found.missing
