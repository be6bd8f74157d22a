"""``check`` as root: run it again as an ordinary user, with copies of files that only root can
read."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from qjump_mn.backends import building
from qjump_mn.cli.bundle import archive, hand_ins
from qjump_mn.cli.bundle.checking import Rerun
from qjump_mn.errors import UsageError
from qjump_mn.install.launcher import BUILT, CODE
from qjump_mn.process import temp_dirs, unprivileged
from qjump_mn.process.caller import Caller
from qjump_mn.results import directory

MAX_TABLE_BYTES = 256 << 20
DATA = ("experiments", "schemes", "topologies", "plots")
"""The folders of a checkout with what its code reads."""


def check(
    path: Path,
    out: Console,
    *,
    assigned: Path | None = None,
    rerun: Rerun,
    table: Path | None = None,
) -> int:
    """Run :func:`hand_ins.check` in a process of the user who called sudo, or of nobody.

    Returns its exit code. Raises the errors of :func:`readable_checkout`,
    :func:`unprivileged.run` and, for a rerun, :func:`building.build`.
    """
    user = unprivileged.user()
    with temp_dirs.folder() as name:
        folder = Path(name)
        checkout = readable_checkout(user, folder / "checkout")
        if rerun.wanted:  # the user may not write to root's cache
            building.build(lambda line: out.print(line, markup=False))
        words = ["check", str(_readable(path, folder / "files", user)), *_words(rerun)]
        if assigned:
            words += ["--assignment", str(_readable(assigned, folder / "assignment", user))]
        tables = folder / "table"
        tables.mkdir()
        if table:
            words += ["--table", str(tables / table.name)]
        handle = os.open(tables, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # From here on, root writes nothing there and follows no link.
            directory.hand_over(folder, user)
            code = unprivileged.run(user, words, folder, _variables(user), checkout)
            if table:
                _copy_table(table, handle)
        finally:
            os.close(handle)
    return code


def readable_checkout(user: Caller, folder: Path) -> Path:
    """Return this checkout, or a copy of it in the new ``folder`` if the user cannot read it.

    The copy has no git, so it does not know its commit. Raises :class:`MachineError` if the user
    cannot read this Python.
    """
    unprivileged.check_readable(user, Path(sys.executable))
    if unprivileged.first_unreadable(user, [unprivileged.CHECKOUT / "qjump_mn/run.py"]) is None:
        return unprivileged.CHECKOUT
    folder.mkdir()
    skipped = shutil.ignore_patterns("__pycache__", *BUILT)
    for path in unprivileged.CHECKOUT.iterdir():
        if path.name in (*CODE, *DATA):
            # A link may lead out of these folders: commands.py is that of mininet-qos.
            shutil.copytree(path, folder / path.name, ignore=skipped)
        elif path.is_file():
            shutil.copy(path, folder)
    return folder


def _words(rerun: Rerun) -> list[str]:
    words = {None: [], True: ["--rerun"], False: ["--no-rerun"]}[rerun.wanted]
    words += ["--arms", ",".join(rerun.arms)] if rerun.arms else []
    words += ["--sample", str(rerun.sample)] if rerun.sample else []
    return words + ["--debug"] * ("--debug" in sys.argv)


def _readable(path: Path, folder: Path, user: Caller) -> Path:
    """Return the file or folder of bundles if the user can read it, else a copy in the new
    ``folder``.

    Raises :class:`UsageError` if it does not exist.
    """
    path = path.absolute()
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    bundles = hand_ins.bundles(path) if path.is_dir() else []
    if unprivileged.first_unreadable(user, [path, *bundles]) is None:
        return path
    copied = folder / path.name
    copied.parent.mkdir()
    if bundles:
        copied.mkdir()
    for source in bundles or [path]:
        unprivileged.copy(source, copied / source.name if bundles else copied, archive.MAX_BYTES)
    return copied


def _variables(user: Caller) -> dict[str, str]:
    """Return environment variables with the absolute paths of folders that the user can read.

    The user's process does not start in the current folder, so that is added to QJUMP_MN_PATH.
    """
    folders = [
        *filter(None, os.environ.get("QJUMP_MN_PATH", "").split(os.pathsep)),
        str(Path.cwd()),
    ]
    variables = {"QJUMP_MN_PATH": folders, "QJUMP_MN_CACHE": [os.environ.get("QJUMP_MN_CACHE", "")]}
    return {
        name: os.pathsep.join(
            os.path.abspath(path)
            for path in paths
            if path and not unprivileged.first_unreadable(user, [Path(path).absolute()])
        )
        for name, paths in variables.items()
    }


def _copy_table(table: Path, folder: int) -> None:
    """Copy the table that the user's process has written into the opened folder, if it is a plain
    file."""
    with suppress(FileNotFoundError):
        handle = os.open(table.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(handle, "rb") as file:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                hand_ins.save(table, file.read(MAX_TABLE_BYTES))
