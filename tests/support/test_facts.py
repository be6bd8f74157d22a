"""Facts: shown once for all that they depend on, and by what is run then."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from qjump_mn.guest import Image
from tests.support import facts
from tests.support.result_store import VARIABLE

IMAGE = Image(Path(), Path(), {"kernel": "2", "initrd": "3"}, [], "4", [], "5", "7.3")


def shown(sessions: list[str]) -> facts.Test:
    """A test that enters in which session it is run."""

    @facts.of_the_guest
    def test(image: Image, number: int) -> None:
        sessions.append(os.environ[VARIABLE])
        assert number != 3

    return test


@pytest.mark.usefixtures("session")
def test_fact_is_shown_for_each_image_and_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions: list[str] = []
    test = shown(sessions)
    other = replace(IMAGE, identity="6")
    for image in (IMAGE, IMAGE, other, other):
        test(image=image, number=1)
    assert len(sessions) == 2
    monkeypatch.setattr(facts, "_machine", lambda: ["another"])
    test(image=IMAGE, number=1)
    assert len(sessions) == 3


def test_nothing_that_is_kept_shows_a_fact(session: Path) -> None:
    sessions: list[str] = []
    shown(sessions)(image=IMAGE, number=1)
    assert sessions == [str(session.with_name("fresh"))]
    assert os.environ[VARIABLE] == str(session)
    assert (session / "log").read_text() == "same bits run\n"


@pytest.mark.usefixtures("session")
def test_what_is_not_so_is_no_fact() -> None:
    sessions: list[str] = []
    test = shown(sessions)
    for _ in range(2):
        with pytest.raises(AssertionError):
            test(image=IMAGE, number=3)
    assert len(sessions) == 2
