"""Suggest corrections for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from qjump_mn.errors import UsageError

MAX_NAMED, FEW_NAMED = 24, 6
"""A sentence lists at most ``MAX_NAMED`` known words. If there are more, it lists the ``FEW_NAMED``
nearest.
"""
MIN_LIKENESS = 0.5
"""Suggest words that are at least this alike."""


def nearest(word: str, known: list[str], see: str = "") -> str:
    """Return the end of a sentence that suggests known words: those that begin with ``word``,
    sorted, or else the one most like it; then the others, or if there are many, the similar ones.
    ``see`` says where a user finds a complete list.
    """
    if not known:
        return "there are none"
    ranked = sorted(known, key=lambda candidate: _likeness(word, candidate), reverse=True)
    similar = [candidate for candidate in ranked if _likeness(word, candidate) >= MIN_LIKENESS]
    completions = sorted(candidate for candidate in known if word and candidate.startswith(word))
    suggested = completions[:FEW_NAMED] or similar[:1]
    if len(known) <= MAX_NAMED:
        if not suggested:
            return f"known are {', '.join(known)}"
        every = ", ".join([*suggested, *(other for other in known if other not in suggested)])
        return (
            "did you mean "
            f"{_or(suggested)}?{f' (all: {every})' if len(known) > len(suggested) else ''}"
        )
    if not suggested:
        return (
            see or f"known are {', '.join(ranked[:MAX_NAMED])} and {len(known) - MAX_NAMED} others"
        )
    has_more = len(suggested) == 1 and len(similar) > 1
    also = f"nearest: {', '.join(similar[:FEW_NAMED])}" if has_more else ""
    more = "; ".join(filter(None, (also, see)))
    return f"did you mean {_or(suggested)}?{f' ({more})' if more else ''}"


def require(start: str, word: str, known: Collection[str]) -> None:
    """Raise :class:`UsageError`, which begins with ``start``, for a word that is not ``known``."""
    if word not in known:
        raise UsageError(f"{start} {word!r}: {nearest(word, list(known))}")


def _or(words: list[str]) -> str:
    """Return the words, quoted, as alternatives: "'a', 'b' or 'c'"."""
    *before, last = map(repr, words)
    return f"{', '.join(before)} or {last}" if before else last


def _likeness(word: str, other: str) -> float:
    """Return the similarity of two words, from 0 to 1."""
    return difflib.SequenceMatcher(None, other, word).ratio()
