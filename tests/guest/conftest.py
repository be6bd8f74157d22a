"""One image and one snapshot for all tests that run in the guest; both come from the cache when they are there."""

from __future__ import annotations

import pytest

from qjump_mn.errors import MachineError
from qjump_mn.guest import Image, Setup, Snapshot, prepare, snapshot


@pytest.fixture(scope="session")
def image() -> Image:
    """The guest's image; skips when this machine can neither build it nor find it."""
    try:
        return prepare(print)
    except MachineError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def booted(image: Image) -> Snapshot:
    """A machine that has booted and done nothing else; its context is the text "{'answer': 42}"."""
    return snapshot(image, Setup(entry="builtins:str", args={"answer": 42}), print)
