"""What a word could have been that is not known, and what a value of a file, where msgspec only says that
it is wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec
from msgspec import inspect

from qjump_mn.errors import UsageError

MOST_NAMED, FEW_NAMED = 24, 6
"""A sentence names up to so many known words; of more than that only the nearest few, if one is like it."""
LIKE = 0.5
"""From here on a word is like another."""


KINDS = {
    "array": "a list",
    "bool": "true or false",
    "date": "a date",
    "datetime": "a date with a time",
    "float": "a number",
    "int": "a whole number",
    "null": "nothing",
    "object": "a table",
    "str": "a text",
    "time": "a time of day",
}
"""msgspec's kinds of values, in a user's words."""


def nearest(word: str, known: list[str], see: str = "") -> str:
    """A sentence's end that suggests known words: those that begin with ``word``, sorted, or else the one
    most like it; then the others, of many only those like it. ``see`` says where all of many are listed."""
    if not known:
        return "there are none"
    likest = sorted(known, key=lambda one: _likeness(word, one), reverse=True)
    alike = [one for one in likest if _likeness(word, one) >= LIKE]
    begin = sorted(one for one in known if word and one.startswith(word))
    named = begin[:FEW_NAMED] or alike[:1]
    if len(known) <= MOST_NAMED:
        if not named:
            return f"known are {', '.join(known)}"
        every = ", ".join([*named, *(one for one in known if one not in named)])
        return f"did you mean {_or(named)}?{f' (all: {every})' if len(known) > len(named) else ''}"
    if not named:
        return see or f"known are {', '.join(likest[:MOST_NAMED])} and {len(known) - MOST_NAMED} others"
    also = f"nearest: {', '.join(alike[:FEW_NAMED])}" if len(named) == 1 and len(alike) > 1 else ""
    more = "; ".join(filter(None, (also, see)))
    return f"did you mean {_or(named)}?{f' ({more})' if more else ''}"


def require(start: str, word: str, known: Collection[str]) -> None:
    """Raise :class:`UsageError`, a sentence that begins with ``start``, for a word that is not ``known``."""
    if word not in known:
        raise UsageError(f"{start} {word!r}: {nearest(word, list(known))}")


def _or(words: list[str]) -> str:
    """The words in quotation marks, as alternatives."""
    *before, last = map(repr, words)
    return f"{', '.join(before)} or {last}" if before else last


def _likeness(word: str, other: str) -> float:
    """From 0 to 1."""
    return difflib.SequenceMatcher(None, other, word).ratio()


def placed(
    message: str, raw: dict[str, Any], kind: type, decode: Callable[[type, Any], Any]
) -> tuple[str, str]:
    """msgspec's sentence and its place, in which ``arms[...]`` has got the name of the table's entry;
    ``decode`` is the ``dec_hook``."""
    text, _, place = message.partition(" - at ")
    place = place.strip("`").removeprefix("$.")
    table, dots, rest = place.partition("[...]")
    field = next((field for field in msgspec.structs.fields(kind) if field.encode_name == table), None)
    if dots and field is not None and isinstance(raw[table], dict):
        for name, entry in raw[table].items():
            try:
                msgspec.convert({name: entry}, field.type, dec_hook=decode)
            except msgspec.ValidationError:
                place = f"{table}.{name}{rest}"
                break
    return text, place


def sentence(message: str, place: str, raw: Any, kind: type) -> str:
    """msgspec's ``message`` about ``place`` ("workloads.ping.program") of ``raw``, with the choices."""
    message = _in_words(message)
    whole = f"{place}: {message}" if place else message
    parts = re.findall(r"[^.\[\]]+", place)
    if wrong := re.fullmatch(r"Invalid (?:enum )?value '(.*)'", message):
        members, tags = (
            _members(parts, raw, kind),
            _tags(_members(parts[:-1], raw, kind), parts[-1] if parts else ""),
        )
        if tags:
            return f"{place}: there is no {parts[-1]} {wrong[1]!r}: known are {', '.join(tags)}"
        words = [
            str(value)
            for member in members
            if isinstance(member, inspect.LiteralType)
            for value in member.values
        ]
        return f"{place}: {wrong[1]!r} is not possible: {nearest(wrong[1], words)}" if words else whole
    if field := re.fullmatch(r"Object missing required field `(.*)`", message):
        tags = _tags(_members(parts, raw, kind), field[1])
        if tags:
            return f"{whole}: known are {', '.join(tags)}"
        all_of_them = list(_missing(_flat(inspect.type_info(kind)), raw, ""))
        return f"required and missing: {', '.join(all_of_them)}" if len(all_of_them) > 1 else whole
    if field := re.fullmatch(r"Object contains unknown field `(.*)`", message):
        structs = _structs(_members(parts, raw, kind), _at(parts, raw))
        more = () if parts else ("presets", *getattr(kind, "BESIDE", ()))
        return (
            f"{whole}: {nearest(field[1], [*(one.encode_name for one in structs[0].fields), *more])}"
            if structs
            else whole
        )
    return whole


def _in_words(message: str) -> str:
    """msgspec's sentence on a value of another kind, in a user's words; TOML has no null. Others as they
    are."""
    other = re.fullmatch(r"Expected `([a-z |]+)`, got `([a-z]+)`", message)
    if other is None:
        return message
    wanted = [KINDS.get(kind, kind) for kind in other[1].split(" | ") if kind != "null"]
    if "a whole number" in wanted and "a number" in wanted:
        wanted.remove("a whole number")
    return f"needs {' or '.join(wanted)}, and has {KINDS.get(other[2], other[2])}"


def _missing(members: list[inspect.Type], value: Any, place: str) -> Iterator[str]:
    """The places of all that is required and not there."""
    if isinstance(value, dict):
        for struct in _structs(members, value):
            for field in struct.fields:
                below = f"{place}.{field.encode_name}" if place else field.encode_name
                if field.encode_name in value:
                    yield from _missing(_flat(field.type), value[field.encode_name], below)
                elif field.required:
                    yield below
        for member in members:
            if isinstance(member, inspect.DictType):
                for key, one in value.items():
                    yield from _missing(_flat(member.value_type), one, f"{place}.{key}")
    elif isinstance(value, (list, tuple)):
        for member in members:
            if isinstance(member, (inspect.ListType, inspect.VarTupleType)):
                for number, one in enumerate(value):
                    yield from _missing(_flat(member.item_type), one, f"{place}[{number}]")


def _members(parts: list[str], raw: Any, kind: type) -> list[inspect.Type]:
    """The types that a value at the place ``parts`` may have; none where that cannot be told."""
    members = _flat(inspect.type_info(kind))
    for number, part in enumerate(parts):
        below: list[inspect.Type] = []
        for member in members:
            if isinstance(member, inspect.DictType):
                below += _flat(member.value_type)
            elif isinstance(member, (inspect.ListType, inspect.VarTupleType)):
                below += _flat(member.item_type)
        for struct in _structs(members, _at(parts[:number], raw)):
            below += [
                one for field in struct.fields if field.encode_name == part for one in _flat(field.type)
            ]
        members = below
    return members


def _flat(kind: inspect.Type) -> list[inspect.Type]:
    if isinstance(kind, inspect.CustomType) and hasattr(kind.cls, "structs"):
        return [inspect.type_info(struct) for struct in kind.cls.structs()]
    return list(kind.types) if isinstance(kind, inspect.UnionType) else [kind]


def _structs(members: list[inspect.Type], value: Any) -> list[inspect.StructType]:
    """The tables that ``value`` may be; of several that the one whose tag it has."""
    structs = [member for member in members if isinstance(member, inspect.StructType)]
    if len(structs) > 1 and isinstance(value, dict):
        return [
            struct for struct in structs if struct.tag_field and value.get(struct.tag_field) == struct.tag
        ]
    return structs


def _tags(members: list[inspect.Type], field: str) -> list[str]:
    """What ``field`` may be where it tells tables from each other, such as the programs of workloads."""
    return [str(one.tag) for one in members if isinstance(one, inspect.StructType) and one.tag_field == field]


def _at(parts: list[str], raw: Any) -> Any:
    for part in parts:
        if isinstance(raw, dict):
            raw = raw.get(part)
        elif isinstance(raw, (list, tuple)) and part.isdigit() and int(part) < len(raw):
            raw = raw[int(part)]
        else:
            return None
    return raw
