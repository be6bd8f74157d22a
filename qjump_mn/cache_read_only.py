"""Use what the cache has, and neither build nor remove an artefact: for `doctor`, which must not take
minutes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from qjump_mn.errors import MachineError

_ENABLED = ContextVar("cache_read_only", default=False)


class NotBuiltError(MachineError):
    """An artefact is missing or damaged, and must not be built now."""


@contextmanager
def enabled() -> Iterator[None]:
    """Within the block, cache.py raises NotBuiltError in this thread where it would build or remove."""
    token = _ENABLED.set(True)
    try:
        yield
    finally:
        _ENABLED.reset(token)


def check(sentence: str) -> None:
    """Raise NotBuiltError with this sentence within :func:`enabled`."""
    if _ENABLED.get():
        raise NotBuiltError(sentence)
