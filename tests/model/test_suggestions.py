"""What is suggested for an unknown word."""

from __future__ import annotations

import pytest

from qjump_mn.errors import UsageError
from qjump_mn.model import suggestions
from qjump_mn.model.suggestions import MAX_NAMED, nearest

MANY = [f"word{number}" for number in range(MAX_NAMED + 1)]


@pytest.mark.parametrize(
    ("word", "known", "see", "end"),
    [
        ("x", [], "", "there are none"),
        ("zzz", ["ab", "cd"], "", "known are ab, cd"),
        ("idel", ["idle"], "", "did you mean 'idle'?"),
        ("idel", ["qjump", "idle"], "", "did you mean 'idle'? (all: idle, qjump)"),
        ("q", ["qz", "x", "qa"], "", "did you mean 'qa' or 'qz'? (all: qa, qz, x)"),
        ("", ["ab"], "", "known are ab"),
        ("abcd", ["ab-d"], "", "did you mean 'ab-d'?"),
        ("abcd", ["a--d"], "", "did you mean 'a--d'?"),
        ("abcd", ["a---"], "", "known are a---"),
        ("zzz", MANY, "see there", "see there"),
        ("zzz", MANY[:-1], "see there", f"known are {', '.join(MANY[:-1])}"),
        ("zzz", MANY, "", f"known are {', '.join(MANY[:MAX_NAMED])} and 1 others"),
        (
            "wrod7",
            MANY,
            "see there",
            "did you mean 'word7'? (nearest: word7, word17, word0, word1, word2, word3; see there)",
        ),
        (
            "word24",
            MANY,
            "",
            "did you mean 'word24'? (nearest: word24, word2, word4, word12, word14, word20)",
        ),
        (
            "word1",
            MANY,
            "",
            "did you mean 'word1', 'word10', 'word11', 'word12', 'word13' or 'word14'?",
        ),
        ("alone", [*(f"{n}" * 5 for n in range(MAX_NAMED)), "along"], "", "did you mean 'along'?"),
        ("alone", [*MANY, "along", "alo"], "", "did you mean 'along'? (nearest: along, alo)"),
    ],
)
def test_nearest_suggests_completions_or_the_most_alike(
    word: str, known: list[str], see: str, end: str
) -> None:
    assert nearest(word, known, see) == end


def test_require_passes_known_words() -> None:
    suggestions.require("there is no arm", "idle", ["idle"])
    with pytest.raises(UsageError, match="there is no arm 'idel': did you mean 'idle'"):
        suggestions.require("there is no arm", "idel", ["idle"])
