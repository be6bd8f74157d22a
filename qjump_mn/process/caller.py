"""Say who called sudo."""

from __future__ import annotations

import os
from typing import NamedTuple


class Caller(NamedTuple):
    """A user id and a group id."""

    user: int
    group: int


def caller() -> Caller | None:
    """Return who called sudo; None without root or sudo."""
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not user.isdigit() or not group.isdigit():
        return None
    return Caller(int(user), int(group))
