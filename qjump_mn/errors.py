"""The errors a user may meet: each is one sentence (what, where, what to do) and an exit code."""


class QJumpError(Exception):
    """An error with a sentence for the user; the command line prints it without a traceback."""

    exit_code = 1


class UsageError(QJumpError):
    """What was asked for makes no sense: unknown name, value out of range, wrong unit."""

    exit_code = 2


class MachineError(QJumpError):
    """This machine cannot do it: a program, a kernel feature, a right or room is missing."""

    exit_code = 3


class InvalidRunError(QJumpError):
    """The run ended, but it may not be believed: the network built is not the network planned."""

    exit_code = 4


class LostError(QJumpError):
    """A program or the guest died, or overran its deadline; what it left is quoted."""

    exit_code = 5
    waited_s = 0.0
    """How long it had waited for a core before, on our clock."""
