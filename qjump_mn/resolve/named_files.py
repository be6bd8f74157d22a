"""Read the files that experiments and schemes name: traces of links, and kernel modules."""

from __future__ import annotations

from pathlib import Path

from qjump_mn.errors import UsageError, reason_of
from qjump_mn.links import commands
from qjump_mn.model import words
from qjump_mn.model.scheme import Module
from qjump_mn.resolve import loading


def trace(where: str, name: str) -> tuple[int, ...]:
    """Return the opportunities of topologies/``name``.trace in each ms of it.

    Raises :class:`UsageError` that begins with ``where``.
    """
    path, text = _read(f"{where}: link.trace", "topologies", words.FILE, name, ".trace")
    try:
        return commands.opportunities(text)
    except ValueError as error:
        raise UsageError(f"{path}{error}") from None


def module(where: str, file: str) -> Module:
    """Return the kernel module whose source is schemes/``file``.

    Raises :class:`UsageError` that begins with ``where``.
    """
    _, text = _read(f"{where}: module", "schemes", words.MODULE, file)
    found = Module(file=file, source=text)
    found.check(where)
    return found


def path_of(kind: str, file: str) -> Path | None:
    """Return the first ``kind``/``file`` in the order of search; None if there is none."""
    folders = loading.folders(kind)
    return next((path for folder in folders if (path := folder / file).is_file()), None)


def _read(
    where: str, kind: str, rules: words.Kind, name: str, suffix: str = ""
) -> tuple[Path, str]:
    """Return the path and the text of ``kind``/``name````suffix``, a name that obeys ``rules``."""
    if problem := rules.problem(name):
        raise UsageError(f"{where}: {problem}")
    path = path_of(kind, f"{name}{suffix}")
    if path is None:
        raise UsageError(
            f"{where}: there is no file {name}{suffix}: put it into "
            f"{' or '.join(map(str, loading.folders(kind)[:-1]))}"
        )
    try:
        return path, path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {reason_of(error)}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text in UTF-8: save it as such") from None
