"""Correct environment variables that would break Python, a library or a program that we start.

The standard library only: install/environment.py needs this before there is anything else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

NO_HOME = "/nonexistent"
"""The home of a user who has none; Debian's system users have the same."""

MIN_COLUMNS = 20
"""A narrower terminal is taken for a mistake in $COLUMNS: tables and help need more."""

_XDG = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


def settle(breaks_python: Sequence[str]) -> None:
    """Correct the variables of this process, and so those of the programs that it starts.

    Those named in ``breaks_python`` are unset.

    A path that must be absolute and is not counts as unset, as the XDG Base Directory Specification
    says, and so does a terminal size that is not a sensible number.
    """
    for name in breaks_python:
        os.environ.pop(name, None)
    for name in _XDG:
        if not os.path.isabs(os.environ.get(name, "")):
            os.environ.pop(name, None)
    for name, minimum in (("COLUMNS", MIN_COLUMNS), ("LINES", 1)):
        value = os.environ.get(name, "")
        if not (value.isdecimal() and minimum <= int(value) < 1 << 15):
            os.environ.pop(name, None)
    os.environ["HOME"] = home()


def home() -> str:
    """Return the user's home: an absolute $HOME, else the user database's, else ``NO_HOME``."""
    named = os.environ.get("HOME", "")
    if os.path.isabs(named):
        return named
    import pwd

    try:
        recorded = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return NO_HOME
    return recorded if os.path.isabs(recorded) else NO_HOME


def user_cache() -> str:
    """Return the user's cache folder: an absolute $XDG_CACHE_HOME, else .cache in the home."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return named if os.path.isabs(named) else os.path.join(home(), ".cache")
