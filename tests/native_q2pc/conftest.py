"""q2pc, built plainly and with sanitizers: every test runs with both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.measured import BUILDS, build


@pytest.fixture(scope="session", params=BUILDS)
def q2pc(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("q2pc", request.param, tmp_path_factory.mktemp("q2pc"))
