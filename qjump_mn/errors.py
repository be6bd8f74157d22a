"""The errors a user may meet: each is one sentence (what, where, what to do) and an exit code."""

import errno

from qjump_mn.executor.errors import LostError, MachineError, QJumpError

__all__ = ["InvalidRunError", "LostError", "MachineError", "QJumpError", "UsageError", "no_room"]


class UsageError(QJumpError):
    """What was asked for makes no sense: unknown name, value out of range, wrong unit."""

    exit_code = 2


class InvalidRunError(QJumpError):
    """The run ended, but it may not be believed: the network built is not the network planned."""

    exit_code = 4


def no_room(error: BaseException) -> MachineError | None:
    """What to say where a disk is full, at whatever was being written; None of any other error."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    which = f", at {error.filename}" if error.filename else ""
    return MachineError(f"a disk is full{which}: make room; what was run is kept, resume and report go on")
