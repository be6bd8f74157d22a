"""Servers for memload: the real memcached, one for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from qjump_mn import toolbox
from tests.support.native_programs import Running, free_port


@pytest.fixture(scope="session")
def memcached_program() -> list[str]:
    """The toolbox's memcached, which is the guest's; the host's if there is no toolbox yet."""
    if toolbox.found():
        return toolbox.toolbox().program("usr/bin/memcached")
    path = shutil.which("memcached")
    if not path:
        pytest.skip("there is no memcached: neither is the toolbox built, nor is it installed here")
    return [path]


@pytest.fixture
def memcached(memcached_program: list[str]) -> Iterator[str]:
    """A memcached of its own for each test; its address."""
    port = free_port()
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    options = f"-l 127.0.0.1 -p {port} -U 0 -m 64 -t 1".split()
    with Running([*memcached_program, *user, *options]) as server:
        server.wait_for_port("tcp", port)
        yield f"127.0.0.1:{port}"


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "log"
