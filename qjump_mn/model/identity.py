"""What is run alike has one identity, whatever it is called: SHA-256 of one form of JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

EMPTY: tuple[Any, ...] = (None, "", [], {})
EXACT = 2**53
"""Below this every integral float is one integer, and the other way round."""


def sha256(value: Any) -> str:
    """SHA-256 of the canonical JSON of structs, dicts, sequences and plain values, in hexadecimal."""
    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: Any) -> Any:
    """``value`` as dicts, lists and plain values, the same for all that is run alike.

    Fields of a struct that its class names in ``NOT_RUN`` are left out. So is a field that is None or
    empty: what is not there is not run, and a feature that a plan does not use leaves its identity as it
    was before there was that feature. 12.0 is 12: JSON, TOML and ``-s`` do not tell them apart.
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
