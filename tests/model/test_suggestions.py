"""What is suggested for an unknown word, and how msgspec's errors are explained."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec
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


class Ping(msgspec.Struct, tag="ping", tag_field="program", forbid_unknown_fields=True):
    host: str
    count: int | float = 1


class Bulk(msgspec.Struct, tag="iperf", tag_field="program", forbid_unknown_fields=True):
    flows: list[str]
    mode: Literal["tcp", "udp"] = "tcp"


class Spec(msgspec.Struct, forbid_unknown_fields=True):
    BESIDE: ClassVar = ("backends",)

    title: str
    loads: dict[str, Ping | Bulk] = {}
    panels: list[Ping] = []
    shown: bool = True


def explained(**raw: Any) -> str:
    with pytest.raises(msgspec.ValidationError) as wrong:
        msgspec.convert(raw, Spec)

    def decode(kind: type, value: Any) -> Any:
        raise NotImplementedError

    message, place = suggestions.placed(str(wrong.value), raw, Spec, decode)
    return suggestions.sentence(message, place, raw, Spec)


PING = {"program": "ping", "host": "h1"}


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"title": 5}, "title: must be a text (got a whole number)"),
        ({"title": "T", "shown": "no"}, "shown: must be true or false (got a text)"),
        (
            {"title": "T", "loads": {"a": PING, "b": PING | {"count": "x"}}},
            "loads.b.count: must be a number (got a text)",
        ),
        (
            {"title": "T", "loads": {"a": PING, "b": {"program": "pong"}}},
            "loads.b.program: there is no program 'pong': known are ping, iperf",
        ),
        (
            {"title": "T", "loads": {"b": {"host": "h1"}}},
            "loads.b: Object missing required field `program`: known are ping, iperf",
        ),
        (
            {"title": "T", "loads": {"b": {"program": "iperf", "flows": [], "mode": "tpc"}}},
            "loads.b.mode: 'tpc' is not possible: did you mean 'tcp'? (all: tcp, udp)",
        ),
        (
            {"title": "T", "loads": {"b": PING | {"flows": []}}},
            "loads.b: Object contains unknown field `flows`: known are host, count",
        ),
        (
            {"title": "T", "backend": []},
            "Object contains unknown field `backend`: did you mean 'backends'? (all: backends, "
            "title, loads, panels, shown, presets)",
        ),
        (
            {"title": "T", "panels": [PING, {**PING, "cuont": 1}]},
            "panels[1]: Object contains unknown field `cuont`: did you mean 'count'? (all: count, host)",
        ),
        ({"panels": [{}], "loads": {}}, "required and missing: title, panels[0].host"),
        ({"loads": {"b": {"program": "ping"}}}, "required and missing: title, loads.b.host"),
        ({}, "Object missing required field `title`"),
    ],
)
def test_sentence_explains_msgspecs_error_and_lists_choices(
    raw: dict[str, Any], sentence: str
) -> None:
    assert explained(**raw) == sentence
