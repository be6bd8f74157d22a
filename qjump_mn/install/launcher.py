"""Start the checkout that contains the current folder, else the one this command was installed
from.

This is the `qjump-mn` command of a machine. bootstrap copies it into the system's path, and writes
the checkout and the Python to use before its last lines. It decides whose code runs, as root too,
so it imports nothing from a checkout before it has checked who may write there. It uses the
standard library only, and syntax of old Pythons.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Iterator
from typing import NoReturn

EXIT_MACHINE = 3
CODE = ("qjump_mn", "native", "simulator", "kernel", "kmod-patches")
"""The folders of a checkout with code that runs, or is compiled, on this machine."""
BUILT = ("target", "build")
"""Folders in them that cargo and make leave; nothing is run from there."""
BREAKS_PYTHON = ("PYTHONHOME", "PYTHONINSPECT", "PYTHONOPTIMIZE", "PYTHONPLATLIBDIR")
"""Variables with which Python does not find its library, waits for input at its end, or drops
docstrings and assertions; bootstrap unsets the same."""


def checkout_of(folder: str) -> str:
    """Return the checkout that contains ``folder``; "" if there is none."""
    while True:
        if all(
            os.path.isfile(os.path.join(folder, name)) for name in ("bootstrap", "qjump_mn/run.py")
        ):
            return folder
        if folder == os.path.dirname(folder):
            return ""
        folder = os.path.dirname(folder)


def trusted_users() -> set[int]:
    """Return the users whose code this process may run: root, its own user and sudo's caller."""
    caller = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return {0, os.geteuid(), *([int(caller)] if caller.isdigit() else [])}


def distrust(checkout: str) -> str:
    """Return which file lets another user change what the checkout runs, and why; "" if none
    does."""
    checkout = os.path.realpath(checkout)
    names = ("bootstrap", "requirements.lock", *CODE)
    paths = [checkout, *(os.path.join(checkout, name) for name in names)]
    reasons = (
        distrust_path(path, deep=os.path.basename(path) in CODE, skip=BUILT)
        for path in paths
        if os.path.exists(path)
    )
    return next(filter(None, reasons), "")


def distrust_path(path: str, *, deep: bool = False, skip: tuple[str, ...] = ()) -> str:
    """Return which file lets another user change ``path``, and why; "" if none does.

    The folders above count too, because whoever may write there may replace what is below. ``deep``
    also checks everything in the folder ``path``, except folders named in ``skip``.
    """
    path = os.path.realpath(path)
    above = path
    while above != os.path.dirname(above):
        above = os.path.dirname(above)
        # In a sticky folder, such as /tmp, nobody can replace what is somebody else's.
        reason = _distrust(above, sticky_is_safe=True)
        if reason:
            return reason
    return next(filter(None, map(_distrust, _below(path, skip) if deep else [path])), "")


def _below(path: str, skip: tuple[str, ...]) -> Iterator[str]:
    """Yield the folder and everything in it."""
    yield path
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if name not in skip]
        yield from (os.path.join(folder, name) for name in (*folders, *files))


def _distrust(path: str, *, sticky_is_safe: bool = False) -> str:
    """Return why another user may change this one file or folder; "" if none may."""
    if os.path.islink(path):
        if os.path.isdir(path):
            return f"{path} is a link to a folder"
        return distrust_path(path) if os.path.exists(path) else ""
    try:
        status = os.stat(path)
    except OSError as error:
        return f"{path} cannot be checked ({error.strerror})"
    if status.st_uid not in trusted_users():
        return f"{path} belongs to another user"
    if sticky_is_safe and status.st_mode & stat.S_ISVTX:
        return ""
    if status.st_mode & stat.S_IWOTH:
        return f"{path} can be written by every user"
    if status.st_mode & stat.S_IWGRP and not _is_private(status):
        return f"{path} can be written by its group"
    return ""


def _is_private(status: os.stat_result) -> bool:
    """Return whether the group is root's, or the owner's own group as Debian and Ubuntu make it."""
    import grp
    import pwd

    if status.st_gid == 0:
        return True
    try:
        owner, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    return owner.pw_name == group.gr_name and set(group.gr_mem) <= {owner.pw_name}


def launch(installed_from: str, python: str) -> NoReturn:
    """Replace this process with the right checkout's command line.

    If there is none, or it may not be trusted, end with exit code 3.
    """
    try:
        here = checkout_of(os.getcwd())
    except FileNotFoundError:  # the current folder was removed
        here = ""
    checkout = here or installed_from
    if ":" in checkout:
        _end(
            f"{checkout} has a colon in its path, which separates folders in PYTHONPATH: move the "
            "checkout"
        )
    if not os.path.isfile(os.path.join(checkout, "qjump_mn/run.py")):
        _end(f"{checkout} is gone: run the bootstrap of another checkout")
    # An ordinary user may use the checkout that root has installed, whoever it belongs to.
    if os.geteuid() == 0 or checkout != installed_from:
        reason = distrust(checkout)
        if reason:
            who = "as root, " if os.geteuid() == 0 else ""
            _end(
                f"{who}the checkout {checkout} is not run: {reason}; chown it, or chmod go-w, first"
            )
    if not os.access(python, os.X_OK):
        _end(f"{python} is gone: run  {shlex.quote(os.path.join(checkout, 'bootstrap'))}")
    for name in BREAKS_PYTHON:
        os.environ.pop(name, None)
    os.environ["PYTHONPATH"] = checkout
    os.execv(python, [python, "-P", "-m", "qjump_mn.run", *sys.argv[1:]])


def _end(sentence: str) -> NoReturn:
    sys.stderr.write(f"qjump-mn: {sentence}\n")
    raise SystemExit(EXIT_MACHINE)
