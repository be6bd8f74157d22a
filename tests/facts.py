"""Facts that a long test found out, kept by the hash of all that they depend on.

A green run of the same sources with the same compiler stays green.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from qjump_mn import cache
from qjump_mn.guest import build, crates
from qjump_mn.guest.build import Recipe
from qjump_mn.guest.store import AGAIN, VARIABLE
from qjump_mn.guest.toolbox import Tree


def established(what: str, key: str, find_out: Callable[[], None]) -> None:
    """Run `find_out`, which raises what is wrong. If it ended well for this `key` before, seldom run it.

    `what` names the fact in the session's summary. All that is kept is that `find_out` returned.
    """
    session = Path(os.environ[VARIABLE])
    fact = session / "kept" / f"{what.replace(' ', '-')}-{key}"
    known = fact.exists()
    taken = known and random.SystemRandom().random() >= AGAIN
    if not taken:
        with suppress(FileNotFoundError):
            fact.rmdir()
        find_out()
    if fact.parent.is_dir():
        fact.mkdir(exist_ok=True)
        os.utime(fact)
    with (session / "log").open("a") as log:
        log.write(f"{what} {'taken' if taken else 'compared' if known else 'run'}\n")


def key_of(tree: Tree, recipe: Recipe) -> str:
    """The hash of compiler, sources and script, and of the modules that bring them together."""
    return cache.hash_of(
        build.key_of(tree, recipe), *(Path(str(module.__file__)).read_bytes() for module in (build, crates))
    )
