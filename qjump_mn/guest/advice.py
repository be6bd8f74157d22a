"""What to do when a guest does not get through: its files may be damaged in a way that no glance shows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec

from qjump_mn import cache
from qjump_mn.errors import LostError, MachineError

ADVICE = f"if it is lost again, a file of the machine may be damaged: {cache.VERIFY}"

_OTHER_CAUSES = ("overran its deadline", "ran out of memory", "before its guest had started")
"""What the sentences say of guests that their own jobs, or a user, ended."""


@contextlib.contextmanager
def advised() -> Iterator[None]:
    """Adds the advice to the error of a guest that is lost, or of a QEMU that does not start; makes a
    MachineError of one about a snapshot's facts that cannot be read."""
    try:
        yield
    except (LostError, MachineError) as error:
        sentence = str(error)
        is_of_guest = isinstance(error, LostError) or sentence.startswith("QEMU does not start")
        if is_of_guest and not any(cause in sentence for cause in (cache.VERIFY, *_OTHER_CAUSES)):
            error.args = (f"{sentence}\n{ADVICE}",)
        raise
    except msgspec.MsgspecError as error:
        raise MachineError(f"what is kept of the machine cannot be read ({error}): {cache.VERIFY}") from error
