"""What hosts take for running programs, where code itself takes no time: declared, and drawn by the seed."""

from __future__ import annotations

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model.units import Duration

MOST = Duration(10**7)
"""Longer than that is a program's own work."""


class Clock(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The mean times that a host takes: ``syscall`` for each system call of a program, and ``wakeup`` from
    when a program that sleeps is woken until it runs. Each one is drawn evenly between 0 and twice the mean,
    by the trial's seed.

    For the guest, whose clock stands still while code runs; a host's own kernel takes what it takes, and the
    simulator has no programs. What hosts take for a *frame* is the link's ``host_time`` and ``host_jitter``.
    """

    syscall: Duration = Duration(0)
    wakeup: Duration = Duration(0)

    def check(self, where: str) -> None:
        """Raise :class:`UsageError` that begins with ``where`` for a time out of range."""
        for name, value in (("syscall", self.syscall), ("wakeup", self.wakeup)):
            if value > MOST:
                raise UsageError(f"{where}: clock.{name} = {value} is out of range: use at most {MOST}")

    def plan(self) -> ClockPlan | None:
        """It in plain numbers; None where nothing takes a time."""
        made = ClockPlan(syscall_ns=int(self.syscall), wakeup_ns=int(self.wakeup))
        return made if made != ClockPlan() else None


class ClockPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """:class:`Clock` in ns."""

    syscall_ns: int = 0
    wakeup_ns: int = 0

    @property
    def told(self) -> str:
        """It in words, for every figure."""
        parts = [
            f"{name} of {ns / 1e3:g} us"
            for ns, name in ((self.syscall_ns, "system calls"), (self.wakeup_ns, "wake-ups"))
            if ns
        ]
        return f"{' and '.join(parts)} on average put in"
