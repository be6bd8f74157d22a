"""The errors that carrying out steps may end with: one sentence (what, where, what to do) and an exit
code."""


class QJumpError(Exception):
    """An error with a sentence for the user; the command line prints it without a traceback."""

    exit_code = 1


class MachineError(QJumpError):
    """This machine cannot do it: a program, a kernel feature, a right or room is missing."""

    exit_code = 3


class LostError(QJumpError):
    """A program or the guest died, or overran its deadline; what it left is quoted."""

    exit_code = 5
    waited_s = 0.0
    """How long it had waited for a core before, on the clock of who ran it."""
