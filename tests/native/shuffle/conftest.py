"""Workers of shuffle on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.native_programs import WAIT_S, Program, Running, free_port

Workers = Callable[[int], list[str]]


@pytest.fixture
def workers(shuffle: Program) -> Iterator[Workers]:
    """Starts workers and returns their addresses; at the end each must still run, and end well."""
    with ExitStack() as stack:
        running: list[Running] = []

        def start(count: int) -> list[str]:
            addresses = []
            for _ in range(count):
                port = free_port()
                worker = shuffle.started("worker", "--listen", str(port))
                running.append(stack.enter_context(worker))
                running[-1].wait_for_port("tcp", port)
                addresses.append(f"127.0.0.1:{port}")
            return addresses

        yield start
        for process in running:
            assert process.poll() is None, "a worker outlives its jobs"
            process.terminate()
            assert process.communicate(timeout=WAIT_S) == ("", "")
            assert process.returncode == 0
