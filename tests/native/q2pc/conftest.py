"""q2pc, built plainly and with sanitizers: every test runs with both."""

from __future__ import annotations

import pytest

from tests.support.native_programs import BUILDS, Program


@pytest.fixture(scope="session", params=BUILDS)
def q2pc(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program("q2pc", request.param, tmp_path_factory.mktemp("q2pc"))
