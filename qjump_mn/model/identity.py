"""Hash what is run: equal runs have equal hashes, whatever their names. SHA-256 of canonical
JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

EMPTY: tuple[Any, ...] = (None, "", [], {})
EXACT = 2**53
"""Below this, integers and integral floats correspond one to one."""


def sha256(value: Any) -> str:
    """Return the SHA-256, in hexadecimal, of the canonical JSON of structs, dicts, sequences and
    values.
    """
    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: Any) -> Any:
    """Return ``value`` as dicts, lists and plain values that are equal for equal runs.

    Fields that a struct's class names in ``NOT_RUN`` are left out. So are fields that are None or
    empty: a new feature then does not change the identity of plans that do not use it. 12.0 becomes
    12, because JSON, TOML and ``-s`` do not distinguish them.
    """
    if isinstance(value, msgspec.Struct):
        return _fields(value)
    if isinstance(value, dict):
        return {str(key): canonical(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [canonical(entry) for entry in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return int(value)
    return value


def _fields(struct: msgspec.Struct) -> dict[str, Any]:
    kept = [name for name in struct.__struct_fields__ if name not in getattr(struct, "NOT_RUN", ())]
    fields = {name: canonical(getattr(struct, name)) for name in kept}
    fields = {name: value for name, value in fields.items() if value not in EMPTY}
    config = struct.__struct_config__
    return fields if config.tag is None else {**fields, str(config.tag_field): config.tag}
