"""Facts that a long test found out, kept by the hash of all that they depend on.

A green run of the same sources with the same compiler stays green.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qjump_mn import cache
from qjump_mn.guest import Image
from qjump_mn.toolbox import Tree, build, crates
from qjump_mn.toolbox.build import Recipe
from tests.support import result_store
from tests.support.result_store import VARIABLE, Kind

Test = Callable[..., None]


def established(what: str, key: str, find_out: Callable[[], None]) -> None:
    """Run `find_out`, which raises what is wrong. If it ended well for this `key` before, seldom
    run it.

    `what` names the fact in the session's summary. All that is kept is that `find_out` returned.
    Guests and simulated trials that it needs are run.
    """

    def work(folder: Path) -> None:
        with afresh():
            find_out()

    session = result_store.session()
    assert session is not None, "tests/conftest.py names it"
    result_store.once(session, Kind(what, type(None)), key, work)


def of(what: str, parts: Callable[..., Iterable[str]]) -> Callable[[Test], Test]:
    """Makes a fact of what a test shows: until the code of its module is another, or what `parts`
    gives for its arguments."""

    def fact(test: Test) -> Test:
        module = Path(inspect.getfile(test))

        @functools.wraps(test)
        def shown(**arguments: Any) -> None:
            named = [value for value in arguments.values() if isinstance(value, str)]
            code = [test.__name__, *named, cache.hash_of_code(module)]
            established(what, cache.hash_of(*code, *parts(**arguments)), lambda: test(**arguments))

        return shown

    return fact


def _guest(image: Image, **_: object) -> list[str]:
    return [*result_store.guest_code(), *result_store.describe(image), *_machine()]


of_the_guest = of("same bits", _guest)
"""For tests of what is so for their argument `image` on this machine."""


def _machine() -> list[str]:
    """The processors and the kernel."""
    models = re.findall(r"^model name.*", Path("/proc/cpuinfo").read_text(), re.M)
    return [*sorted(set(models)), *os.uname()[2:]]


@contextmanager
def afresh() -> Iterator[None]:
    """A time in which nothing is taken of what is kept, and nothing is kept: the session's other
    folder has the log alone."""
    before = os.environ[VARIABLE]
    os.environ[VARIABLE] = str(Path(before).with_name("fresh"))
    try:
        yield
    finally:
        os.environ[VARIABLE] = before


def key_of(tree: Tree, recipe: Recipe) -> str:
    """The hash of compiler, sources and script, and of the modules that bring them together."""
    return cache.hash_of(
        build.key_of(tree, recipe),
        *(cache.hash_of_code(Path(str(module.__file__))) for module in (build, crates)),
    )
