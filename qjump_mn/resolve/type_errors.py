"""Explain msgspec's validation errors in the words of a user's file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import inspect

from qjump_mn.model import suggestions
from qjump_mn.programs import registry

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
"""msgspec's names of types, and what users call them."""


def placed(
    message: str, raw: dict[str, Any], kind: type, decode: Callable[[type, Any], Any]
) -> tuple[str, str]:
    """Split msgspec's message into text and location, and replace ``arms[...]`` in the location by
    the name of the entry. ``decode`` is the ``dec_hook``.
    """
    text, _, place = message.partition(" - at ")
    place = place.strip("`").removeprefix("$.")
    table, dots, rest = place.partition("[...]")
    field = next(
        (field for field in msgspec.structs.fields(kind) if field.encode_name == table), None
    )
    if dots and field is not None and isinstance(raw[table], dict):
        for name, entry in raw[table].items():
            try:
                msgspec.convert({name: entry}, field.type, dec_hook=decode)
            except msgspec.ValidationError:
                place = f"{table}.{name}{rest}"
                break
    return text, place


def sentence(message: str, place: str, raw: Any, kind: type) -> str:
    """Explain msgspec's ``message`` about the location ``place`` ("workloads.ping.program") in
    ``raw``, and list the choices.
    """
    message = _in_words(message)
    plain = f"{place}: {message}" if place else message
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
        return (
            f"{place}: {wrong[1]!r} is not possible: {suggestions.nearest(wrong[1], words)}"
            if words
            else plain
        )
    if field := re.fullmatch(r"Object missing required field `(.*)`", message):
        tags = _tags(_members(parts, raw, kind), field[1])
        if tags:
            return f"{plain}: known are {', '.join(tags)}"
        missing = list(_missing(_flat(inspect.type_info(kind)), raw, ""))
        return f"required and missing: {', '.join(missing)}" if len(missing) > 1 else plain
    if field := re.fullmatch(r"Object contains unknown field `(.*)`", message):
        structs = _structs(_members(parts, raw, kind), _at(parts, raw))
        more = () if parts else ("presets", *getattr(kind, "BESIDE", ()))
        if structs:
            known = [*(member.encode_name for member in structs[0].fields), *more]
            return f"{plain}: {suggestions.nearest(field[1], known)}"
    return plain


def _in_words(message: str) -> str:
    """Translate msgspec's message about a value of the wrong type; return others unchanged. TOML
    has no null.
    """
    match = re.fullmatch(r"Expected `([a-z |]+)`, got `([a-z]+)`", message)
    if match is None:
        return message
    expected = [KINDS.get(kind, kind) for kind in match[1].split(" | ") if kind != "null"]
    if "a whole number" in expected and "a number" in expected:
        expected.remove("a whole number")
    return f"must be {' or '.join(expected)} (got {KINDS.get(match[2], match[2])})"


def _missing(members: list[inspect.Type], value: Any, place: str) -> Iterator[str]:
    """Yield the locations of all required fields that are missing."""
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
                for key, entry in value.items():
                    yield from _missing(_flat(member.value_type), entry, f"{place}.{key}")
    elif isinstance(value, (list, tuple)):
        for member in members:
            if isinstance(member, (inspect.ListType, inspect.VarTupleType)):
                for number, entry in enumerate(value):
                    yield from _missing(_flat(member.item_type), entry, f"{place}[{number}]")


def _members(parts: list[str], raw: Any, kind: type) -> list[inspect.Type]:
    """Return the types that a value at the location ``parts`` may have; none if they are
    unknown."""
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
                kind
                for field in struct.fields
                if field.encode_name == part
                for kind in _flat(field.type)
            ]
        members = below
    return members


def _flat(kind: inspect.Type) -> list[inspect.Type]:
    if isinstance(kind, inspect.CustomType):
        return [inspect.type_info(struct) for struct in registry.structs(kind.cls)] or [kind]
    return list(kind.types) if isinstance(kind, inspect.UnionType) else [kind]


def _structs(members: list[inspect.Type], value: Any) -> list[inspect.StructType]:
    """Return the structs that ``value`` may be; of several, the one with its tag."""
    structs = [member for member in members if isinstance(member, inspect.StructType)]
    if len(structs) > 1 and isinstance(value, dict):
        return [
            struct
            for struct in structs
            if struct.tag_field and value.get(struct.tag_field) == struct.tag
        ]
    return structs


def _tags(members: list[inspect.Type], field: str) -> list[str]:
    """Return the values of ``field`` if it is the tag of structs, such as the program of a
    workload.
    """
    structs = (member for member in members if isinstance(member, inspect.StructType))
    return [str(struct.tag) for struct in structs if struct.tag_field == field]


def _at(parts: list[str], raw: Any) -> Any:
    for part in parts:
        if isinstance(raw, dict):
            raw = raw.get(part)
        elif isinstance(raw, (list, tuple)) and part.isdigit() and int(part) < len(raw):
            raw = raw[int(part)]
        else:
            return None
    return raw
