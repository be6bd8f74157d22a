"""What tests of the simulator share."""

from __future__ import annotations

from pathlib import Path

import pytest

from qjump_mn.toolbox import simulator
from tests.guest import trees


@pytest.fixture(scope="session")
def package() -> Path:
    """The simulator's Python package, built."""
    trees.toolbox()
    return simulator.package(print)
