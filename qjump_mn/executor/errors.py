"""Errors raised while steps are carried out: a sentence for the user, and an exit code.

A sentence says what is wrong, where, and what to do.
"""


class QJumpError(Exception):
    """An error for the user; the command line prints its sentence without a traceback."""

    exit_code = 1


class MachineError(QJumpError):
    """This machine lacks something: a program, a kernel feature, a permission or disk space."""

    exit_code = 3


class LostError(QJumpError):
    """A program or the guest died, or overran its deadline; the sentence quotes its last output."""

    exit_code = 5
    waited_s = 0.0
    """Seconds on the host's clock that the guest waited for a core before it started."""
