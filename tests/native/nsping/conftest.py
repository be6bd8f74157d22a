"""The network namespaces in which nsping asks: one that answers, one whose kernel does not."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.native.app_util.qjau import SOURCE
from tests.support.native_programs import Running, network_of_its_own

SILENCE = "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all"
"""A command: this namespace's kernel answers no echo requests."""

Network = Callable[..., AbstractContextManager[list[str]]]
"""Makes a network namespace, set up by commands; the prefix that runs a program in it."""


@contextmanager
def namespace(*setup: str) -> Iterator[list[str]]:
    with Running([*network_of_its_own(*setup), "sleep", "3600"]) as holder:
        name = Path(f"/proc/{holder.pid}/comm")
        holder.wait_for("the namespace was set up", lambda: name.read_text() == "sleep\n")
        yield holder.prefix_beside()


@pytest.fixture(scope="session")
def network() -> Network:
    return namespace


@pytest.fixture(scope="session")
def answering() -> Iterator[list[str]]:
    with namespace() as prefix:
        yield prefix


@pytest.fixture(scope="session")
def silent() -> Iterator[list[str]]:
    with namespace(SILENCE) as prefix:
        yield prefix


@pytest.fixture(scope="session")
def qjau(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A prefix; its library comes before the sanitizers'."""
    folder = tmp_path_factory.mktemp("qjau")
    subprocess.run(["make", "-C", SOURCE, f"BUILD={folder}"], check=True, capture_output=True)
    return ["env", "ASAN_OPTIONS=verify_asan_link_order=0", str(folder / "qjau")]
