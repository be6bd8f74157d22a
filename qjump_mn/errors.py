"""The errors a user may meet: each is one sentence (what, where, what to do) and an exit code."""

import errno
import shlex
from pathlib import Path

from qjump_mn.executor.errors import LostError, MachineError, QJumpError

__all__ = [
    "BEGINS",
    "InvalidRunError",
    "LostError",
    "MachineError",
    "QJumpError",
    "UsageError",
    "command",
    "describe",
    "error_of",
    "is_full",
    "last_words",
    "no_room",
    "reason_of",
    "user_program_line",
]

_OF_PATHS = {
    errno.EACCES,
    errno.EEXIST,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}


class UsageError(QJumpError):
    """What was asked for makes no sense: unknown name, value out of range, wrong unit."""

    exit_code = 2


class InvalidRunError(QJumpError):
    """The run ended, but it may not be believed: the network built is not the network planned."""

    exit_code = 4


BEGINS = "qjump-mn: "
"""A sentence that ends a process begins so on its standard error."""


def error_of(exit_code: int) -> type[QJumpError]:
    """The error that ends a process with this exit code."""
    kinds = (UsageError, MachineError, InvalidRunError)
    return next((kind for kind in kinds if kind.exit_code == exit_code), LostError)


def command(verb: str, run: Path) -> str:
    """The command line to paste that does something with a run directory."""
    return f"qjump-mn {verb} {shlex.quote(str(run))}"


def is_full(error: BaseException) -> bool:
    """Whether a disk, or somebody's share of it, has no room."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def reason_of(error: OSError) -> str:
    """The system's word for it, as a part of a sentence."""
    return (error.strerror or str(error)).lower()


def no_room(error: BaseException) -> MachineError | None:
    """What to say where a disk is full, at whatever was being written; None of any other error."""
    if not is_full(error):
        return None
    name = getattr(error, "filename", None)
    which = f", at {name}" if name else ""
    return MachineError(f"a disk is full{which}: make room; what was run is kept, resume and report go on")


def user_program_line(error: BaseException) -> str:
    """The innermost line of a user's own program that the error went through, "/path/measures.py, line 17";
    empty if there is none. Its modules belong to qjump_mn.programs, and their files lie elsewhere."""
    ours, line, step = Path(__file__).parent, "", error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        is_program = step.tb_frame.f_globals.get("__name__", "").startswith("qjump_mn.programs.")
        if is_program and not Path(file).is_relative_to(ours):
            line = f"{file}, line {step.tb_lineno}"
        step = step.tb_next
    return line


def describe(error: BaseException) -> str:
    """The error's type, text, and line in a user's own program, if it went through one: "ZeroDivisionError:
    division by zero, /path/measures.py, line 17"."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ", ".join(filter(None, [text, user_program_line(error)]))


def last_words(error: BaseException) -> tuple[str, int]:
    """What is said of an error that ends a process, and its exit code."""
    if isinstance(error, QJumpError):
        return str(error), error.exit_code
    if full := no_room(error):
        return str(full), full.exit_code
    if user_program_line(error):
        return f"your program fails with {describe(error)}: repair it", UsageError.exit_code
    if hasattr(error, "format_message"):  # click's own words for a wrong option
        return error.format_message(), UsageError.exit_code
    if isinstance(error, OSError) and error.errno in _OF_PATHS and "/" in str(error.filename):
        told = f"{error.filename} cannot be used ({reason_of(error)}): look whose it is, and what"
        return told, UsageError.exit_code
    where = "call again with --debug for the place"
    return f"an error that should not happen: {type(error).__name__}: {error}; {where}", LostError.exit_code
