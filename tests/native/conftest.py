"""The programs in C, each built plainly and with sanitizers: every test runs with both."""

from __future__ import annotations

import pytest

from tests.support.native_programs import BUILDS, Program


def _built(name: str) -> object:
    @pytest.fixture(scope="session", params=BUILDS, name=name)
    def program(
        request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> Program:
        return Program(name, request.param, tmp_path_factory.mktemp(name))

    return program


fanin, memload, nsping, q2pc, shuffle = map(_built, "fanin memload nsping q2pc shuffle".split())
