"""One image and one snapshot for all tests that run in the guest; both come from the cache when they are
there."""

from __future__ import annotations

import pytest

from qjump_mn.guest import Image, Setup, Snapshot, prepare, snapshot
from tests.guest import trees


@pytest.fixture(scope="session")
def image() -> Image:
    """The guest's image; skips where there is no tree to build it of."""
    trees.kernel_tree(None)
    return prepare(print)


@pytest.fixture(scope="session")
def booted(image: Image) -> Snapshot:
    """A machine that has booted and done nothing else; its context is the text "{'answer': 42}"."""
    return snapshot(image, Setup(entry="builtins:str", args={"answer": 42}), print)
