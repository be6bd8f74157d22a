"""What of a test's parameters is left to the night."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def nightly(values: Iterable[Any], *, but: Collection[Any]) -> list[Any]:
    """Parameters of a test or fixture: those of ``but`` always, the others with --nightly."""
    return [
        value if value in but else pytest.param(value, marks=pytest.mark.nightly)
        for value in values
    ]
