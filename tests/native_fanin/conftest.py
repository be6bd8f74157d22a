"""fanin, built plainly and with sanitizers: every test runs with both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.measured import BUILDS, build


@pytest.fixture(scope="session", params=BUILDS)
def fanin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("fanin", request.param, tmp_path_factory.mktemp("fanin"))
