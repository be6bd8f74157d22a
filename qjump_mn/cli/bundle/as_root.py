"""``check`` as root: the same command as an ordinary user, with copies of what only root can read."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from qjump_mn.backends import building
from qjump_mn.cli.bundle import archive, hand_ins
from qjump_mn.cli.bundle.checking import Rerun
from qjump_mn.errors import UsageError
from qjump_mn.process import temp_dirs, unprivileged
from qjump_mn.results import directory
from qjump_mn.results.directory import Caller

MOST_TABLE_BYTES = 256 << 20


def check(
    path: Path, out: Console, *, assigned: Path | None = None, rerun: Rerun, table: Path | None = None
) -> int:
    """Do what :func:`hand_ins.check` does in a process of the user who called sudo, or of nobody; return
    its exit code. Raises what :func:`unprivileged.check_checkout` and :func:`unprivileged.run` raise, and
    where a machine that is needed cannot be built."""
    user = unprivileged.user()
    unprivileged.check_checkout(user)
    if rerun.wanted:  # the user could not keep it
        building.build(lambda line: out.print(line, markup=False))
    with temp_dirs.folder() as name:
        folder = Path(name)
        words = ["check", str(_readable(path, folder / "files", user)), *_words(rerun)]
        if assigned:
            words += ["--assignment", str(_readable(assigned, folder / "assignment", user))]
        tables = folder / "table"
        tables.mkdir()
        if table:
            words += ["--table", str(tables / table.name)]
        handle = os.open(tables, os.O_RDONLY | os.O_DIRECTORY)
        try:
            directory.hand_over(folder, user)  # from here on root writes nothing there, and follows no link
            code = unprivileged.run(user, words, folder, _variables(user))
            if table:
                _take(table, handle)
        finally:
            os.close(handle)
    return code


def _words(rerun: Rerun) -> list[str]:
    words = {None: [], True: ["--rerun"], False: ["--no-rerun"]}[rerun.wanted]
    words += ["--arms", ",".join(rerun.arms)] if rerun.arms else []
    words += ["--sample", str(rerun.sample)] if rerun.sample else []
    return words + ["--debug"] * ("--debug" in sys.argv)


def _readable(path: Path, folder: Path, user: Caller) -> Path:
    """The file, or the folder of bundles, where the user can read it; else a copy in the new ``folder``.
    Raises :class:`UsageError` where there is none."""
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
        unprivileged.copy(source, copied / source.name if bundles else copied, archive.MOST_BYTES)
    return copied


def _variables(user: Caller) -> dict[str, str]:
    """What names folders, for the user's half: it is not started in this one, and reads not all of them."""
    own = [*filter(None, os.environ.get("QJUMP_MN_PATH", "").split(os.pathsep)), str(Path.cwd())]
    named = {"QJUMP_MN_PATH": own, "QJUMP_MN_CACHE": [os.environ.get("QJUMP_MN_CACHE", "")]}
    return {
        name: os.pathsep.join(
            os.path.abspath(path)
            for path in paths
            if path and not unprivileged.first_unreadable(user, [Path(path).absolute()])
        )
        for name, paths in named.items()
    }


def _take(table: Path, folder: int) -> None:
    """Copy the table that the user's half has left in the opened folder."""
    with suppress(FileNotFoundError):
        handle = os.open(table.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(handle, "rb") as file:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                hand_ins.save(table, file.read(MOST_TABLE_BYTES))
