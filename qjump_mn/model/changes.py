"""Apply partial settings: structs whose fields are None where nothing is given."""

from __future__ import annotations

from typing import TypeVar

import msgspec

Base = TypeVar("Base", bound=msgspec.Struct)


def over(change: msgspec.Struct, base: Base) -> Base:
    """Return ``base`` with each field of ``change`` that is not None; ``base`` must have these
    fields.
    """
    given = {
        name: value
        for name in change.__struct_fields__
        if (value := getattr(change, name)) is not None
    }
    return msgspec.structs.replace(base, **given)
