"""The errors that end a command: a sentence for the user, and an exit code for scripts.

A sentence says what is wrong, where, and what to do.
"""

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

_PATH_ERRNOS = {
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
    """The request makes no sense: an unknown name, a value out of range, a wrong unit."""

    exit_code = 2


class InvalidRunError(QJumpError):
    """The run ended, but its results must not be used: the network built is not the one planned."""

    exit_code = 4


BEGINS = "qjump-mn: "
"""The prefix of the sentence that ends a process, on its standard error."""


def error_of(exit_code: int) -> type[QJumpError]:
    """Return the error class for an exit code; :class:`LostError` for an unknown one."""
    classes = (UsageError, MachineError, InvalidRunError)
    return next((error for error in classes if error.exit_code == exit_code), LostError)


def command(verb: str, run: Path) -> str:
    """Return a command line to paste, which applies ``verb`` to a run directory."""
    return f"qjump-mn {verb} {shlex.quote(str(run))}"


def is_full(error: BaseException) -> bool:
    """Whether the error says that a disk, or the user's quota, is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def reason_of(error: OSError) -> str:
    """Return the system's text for an error, in lower case, to stand within a sentence."""
    return (error.strerror or str(error)).lower()


def no_room(error: BaseException) -> MachineError | None:
    """Return the error to report when a disk is full; None if ``error`` says something else."""
    if not is_full(error):
        return None
    path = getattr(error, "filename", None)
    location = f", at {path}" if path else ""
    advice = "make room; finished trials are kept, and resume or report continues from them"
    return MachineError(f"a disk is full{location}: {advice}")


def user_program_line(error: BaseException) -> str:
    """Return the innermost line of a user's program in an error's traceback; empty if none.

    Such as "/path/measures.py, line 17". A user's modules are imported as qjump_mn.programs.*, but
    their files are outside this package.
    """
    package, line, entry = Path(__file__).parent, "", error.__traceback__
    while entry is not None:
        file = entry.tb_frame.f_code.co_filename
        is_program = entry.tb_frame.f_globals.get("__name__", "").startswith("qjump_mn.programs.")
        if is_program and not Path(file).is_relative_to(package):
            line = f"{file}, line {entry.tb_lineno}"
        entry = entry.tb_next
    return line


def describe(error: BaseException) -> str:
    """Return an error's type and text, and its line in a user's program, if it has one.

    Such as "ZeroDivisionError: division by zero, /path/measures.py, line 17".
    """
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ", ".join(filter(None, [text, user_program_line(error)]))


def last_words(error: BaseException) -> tuple[str, int]:
    """Return the message and the exit code for an error that ends a process."""
    if isinstance(error, QJumpError):
        return str(error), error.exit_code
    if full := no_room(error):
        return str(full), full.exit_code
    if user_program_line(error):
        return f"your program fails with {describe(error)}: repair it", UsageError.exit_code
    if hasattr(error, "format_message"):  # click's message about a wrong option
        return error.format_message(), UsageError.exit_code
    if isinstance(error, OSError) and error.errno in _PATH_ERRNOS and "/" in str(error.filename):
        advice = "check the path and its permissions"
        sentence = f"{error.filename} cannot be used ({reason_of(error)}): {advice}"
        return sentence, UsageError.exit_code
    sentence = (
        f"internal error: {type(error).__name__}: {error}; run again with --debug to see where"
    )
    return sentence, LostError.exit_code
