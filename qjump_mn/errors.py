"""The errors a user may meet: each is one sentence (what, where, what to do) and an exit code."""

from qjump_mn.executor.errors import LostError, MachineError, QJumpError

__all__ = ["InvalidRunError", "LostError", "MachineError", "QJumpError", "UsageError"]


class UsageError(QJumpError):
    """What was asked for makes no sense: unknown name, value out of range, wrong unit."""

    exit_code = 2


class InvalidRunError(QJumpError):
    """The run ended, but it may not be believed: the network built is not the network planned."""

    exit_code = 4
