"""Names of files: what may become one, and those that steps write and results read."""

from __future__ import annotations

import re

from qjump_mn.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,79}")


def check(where: str, *names: str) -> None:
    """Raise :class:`UsageError` for a name that cannot be one of a file or a folder."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{where}: {name[:80]!r} is no name: use letters, digits and _ . + - (the first one of the "
                "former two), 80 at most"
            )


def counters(when: str, node: str) -> str:
    """The file of one reading of a node's qdiscs; the machine's node is called :data:`topology.SWITCHES`."""
    return f"asbuilt/{when}/tc-{node}.json"
