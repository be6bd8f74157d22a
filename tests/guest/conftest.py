"""One image and one laboratory for all tests that run in the guest, and another user; the image
comes from the cache when it is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qjump_mn.guest import Image, Setup, prepare
from tests.guest import strangers, trees
from tests.guest.laboratory import Laboratory
from tests.guest.patched import patches, source, tc, tc_patches, tc_source, tools
from tests.guest.strangers import Stranger

__all__ = ["patches", "source", "tc", "tc_patches", "tc_source", "tools"]  # fixtures


@pytest.fixture(scope="session")
def image() -> Image:
    """The guest's image; skips where there is no tree to build it of."""
    trees.toolbox()
    return prepare(print)


@pytest.fixture(scope="session")
def booted() -> Setup:
    """A guest that has booted and done nothing else; its context is the text "{'answer': 42}"."""
    return Setup(entry="builtins:str", args={"answer": 42})


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    return Laboratory(tmp_path_factory.mktemp("laboratory"))


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    with strangers.made() as someone:
        yield someone
