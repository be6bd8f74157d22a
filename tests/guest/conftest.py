"""One image, one snapshot and one laboratory for all tests that run in the guest, and another user; image and
snapshot come from the cache when they are there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qjump_mn.guest import Image, Setup, Snapshot, prepare, snapshot
from tests.guest import strangers, trees
from tests.guest.laboratory import Laboratory
from tests.guest.patched import patches, source, tc, tc_patches, tc_source, tools
from tests.guest.strangers import Stranger

__all__ = ["patches", "source", "tc", "tc_patches", "tc_source", "tools"]  # fixtures


@pytest.fixture(scope="session")
def image() -> Image:
    """The guest's image; skips where there is no tree to build it of."""
    trees.kernel_tree(None)
    return prepare(print)


@pytest.fixture(scope="session")
def booted(image: Image) -> Snapshot:
    """A machine that has booted and done nothing else; its context is the text "{'answer': 42}"."""
    return snapshot(image, Setup(entry="builtins:str", args={"answer": 42}), print)


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    return Laboratory(tmp_path_factory.mktemp("laboratory"))


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    with strangers.made() as someone:
        yield someone
