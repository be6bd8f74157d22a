"""What one arm, scheme or experiment has otherwise than another: structs whose fields are None where they are
not given."""

from __future__ import annotations

from typing import TypeVar

import msgspec

Base = TypeVar("Base", bound=msgspec.Struct)


def over(change: msgspec.Struct, base: Base) -> Base:
    """``base`` with what is given in ``change``, whose fields are among its own."""
    given = {name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not None}
    return msgspec.structs.replace(base, **given)
