"""How msgspec's errors are explained, with the choices."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec
import pytest

from qjump_mn.resolve import type_errors


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

    message, place = type_errors.placed(str(wrong.value), raw, Spec, decode)
    return type_errors.sentence(message, place, raw, Spec)


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
