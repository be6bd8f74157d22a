"""fanin, built plainly and with sanitizers: every test runs with both."""

from __future__ import annotations

import pytest

from tests.support.native_programs import BUILDS, Program


@pytest.fixture(scope="session", params=BUILDS)
def fanin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program("fanin", request.param, tmp_path_factory.mktemp("fanin"))
