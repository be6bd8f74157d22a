"""Read the files that experiments and schemes name: traces of links, kernel modules, laws and
jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from qjump_mn.errors import UsageError, reason_of
from qjump_mn.links import commands
from qjump_mn.model import words
from qjump_mn.model.scheme import Law, Module, Setting
from qjump_mn.resolve import loading

_T = TypeVar("_T")

TRACE = "trace"
"""The suffix of a link's opportunities."""

MAX_TEXT = 4 << 20
"""Of a workload's file, because each of the plan's trials has it."""

MAX_LAW_BYTES = 1 << 20
"""The simulator reads no longer law."""


def trace(where: str, name: str) -> tuple[int, ...]:
    """Return the opportunities of topologies/``name``.trace in each ms of it.

    Raises :class:`UsageError` that begins with ``where``.
    """
    path, text = _read(f"{where}: link.trace", "topologies", words.FILE, name, f".{TRACE}")
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


def law(where: str, file: Setting) -> Law:
    """Return the congestion law in schemes/``file``, which the simulator has not seen yet.

    Raises :class:`UsageError` that begins with ``where``.
    """
    place = f"{where}: simulator.transport.law"
    path = _find(place, "schemes", words.LAW, str(file))
    code = _content(path)
    if len(code) > MAX_LAW_BYTES:
        raise UsageError(f"{place}: {path} has {len(code)} bytes: a law may have {MAX_LAW_BYTES}")
    return _decoded(path, lambda: Law.of(path.name, code))


def text(where: str, name: str, suffix: str) -> str:
    """Return the text of experiments/``name``.``suffix``, which a workload names.

    Raises :class:`UsageError` that begins with ``where``.
    """
    path, found = _read(where, "experiments", words.FILE, name, f".{suffix}")
    if len(found) > MAX_TEXT:
        raise UsageError(f"{where}: {path} has {len(found)} characters: {MAX_TEXT} at most")
    return found


def path_of(kind: str, file: str) -> Path | None:
    """Return the first ``kind``/``file`` in the order of search; None if there is none."""
    folders = loading.folders(kind)
    return next((path for folder in folders if (path := folder / file).is_file()), None)


def _read(
    where: str, kind: str, rules: words.Kind, name: str, suffix: str = ""
) -> tuple[Path, str]:
    """Return the path and the text of ``kind``/``name````suffix``, a name that obeys ``rules``."""
    path = _find(where, kind, rules, name, suffix)
    content = _content(path)
    text = _decoded(path, lambda: content.decode("utf-8-sig"))
    return path, text.replace("\r\n", "\n").replace("\r", "\n")


def _decoded(path: Path, decode: Callable[[], _T]) -> _T:
    try:
        return decode()
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text in UTF-8: save it as such") from None


def _find(where: str, kind: str, rules: words.Kind, name: str, suffix: str = "") -> Path:
    """Return the path of ``kind``/``name````suffix``, a name that obeys ``rules``."""
    if problem := rules.problem(name):
        raise UsageError(f"{where}: {problem}")
    path = path_of(kind, f"{name}{suffix}")
    if path is None:
        raise UsageError(
            f"{where}: there is no file {name}{suffix}: put it into "
            f"{' or '.join(map(str, loading.folders(kind)[:-1]))}"
        )
    return path


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {reason_of(error)}") from None
