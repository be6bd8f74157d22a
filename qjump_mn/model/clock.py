"""The time that hosts take to run programs, as the experiment declares it and the seed draws it."""

from __future__ import annotations

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model.units import Duration

MAX_TIME = Duration(10**7)
"""A longer time would be the program's own work."""


class Clock(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The mean times that a host takes: ``syscall`` for each system call of a program, ``wakeup``
    from the wake-up of a sleeping program until it runs. Each time is drawn uniformly between 0 and
    twice the mean, from the trial's seed.

    Only the guest uses them, because its clock stands still while code runs. The time that a host
    takes for a *frame* is the link's ``host_time`` and ``host_jitter``.
    """

    syscall: Duration = Duration(0)
    wakeup: Duration = Duration(0)

    def check(self, where: str) -> None:
        """Raise :class:`UsageError` that begins with ``where`` for a time out of range."""
        for name, value in (("syscall", self.syscall), ("wakeup", self.wakeup)):
            if value > MAX_TIME:
                raise UsageError(
                    f"{where}: clock.{name} = {value} is out of range: use at most {MAX_TIME}"
                )

    def plan(self) -> ClockPlan | None:
        """Return the times in ns, or None if both are 0."""
        plan = ClockPlan(syscall_ns=int(self.syscall), wakeup_ns=int(self.wakeup))
        return plan if plan != ClockPlan() else None


class ClockPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """:class:`Clock` in ns."""

    syscall_ns: int = 0
    wakeup_ns: int = 0

    @property
    def told(self) -> str:
        """The declared times in words, for every figure."""
        parts = [
            f"{name} of {ns / 1e3:g} us"
            for ns, name in ((self.syscall_ns, "system calls"), (self.wakeup_ns, "wake-ups"))
            if ns
        ]
        return f"{' and '.join(parts)} on average put in"
