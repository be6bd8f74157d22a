"""Facts that a long test found out, kept by the hash of all that they depend on.

A green run of the same sources with the same compiler stays green.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qjump_mn import cache, remembered
from qjump_mn.guest import build, crates, store
from qjump_mn.guest.build import Recipe
from qjump_mn.guest.toolbox import Tree
from qjump_mn.remembered import VARIABLE, Kind

Test = Callable[..., None]


def established(what: str, key: str, find_out: Callable[[], None]) -> None:
    """Run `find_out`, which raises what is wrong. If it ended well for this `key` before, seldom run it.

    `what` names the fact in the session's summary. All that is kept is that `find_out` returned. Guests and
    simulated trials that it needs are run.
    """

    def work(folder: Path) -> None:
        with afresh():
            find_out()

    session = remembered.session()
    assert session is not None, "tests/conftest.py names it"
    remembered.once(session, Kind(what, type(None)), key, work)


def of_the_guest(test: Test) -> Test:
    """A test that shows what is so for its argument `image` on this machine: a fact, until the code of the
    test's module, image, QEMU or machine is another."""
    module = Path(inspect.getfile(test))

    @functools.wraps(test)
    def shown(**arguments: Any) -> None:
        image = arguments["image"]
        code = [test.__name__, cache.hash_of_code(module), *store.code()]
        key = cache.hash_of(*code, *store.described(image), *_machine())
        established("same bits", key, lambda: test(**arguments))

    return shown


def _machine() -> list[str]:
    """The processors and the kernel."""
    models = re.findall(r"^model name.*", Path("/proc/cpuinfo").read_text(), re.M)
    return [*sorted(set(models)), *os.uname()[2:]]


@contextmanager
def afresh() -> Iterator[None]:
    """A time in which nothing is taken of what is kept, and nothing is kept: the session's other folder has
    the log alone."""
    before = os.environ[VARIABLE]
    os.environ[VARIABLE] = str(Path(before).with_name("fresh"))
    try:
        yield
    finally:
        os.environ[VARIABLE] = before


def key_of(tree: Tree, recipe: Recipe) -> str:
    """The hash of compiler, sources and script, and of the modules that bring them together."""
    return cache.hash_of(
        build.key_of(tree, recipe), *(Path(str(module.__file__)).read_bytes() for module in (build, crates))
    )
