"""Read-only arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


class ReadOnly:
    """A class whose arrays are read-only, also in copies: `copy` and `pickle` would make them
    writable."""

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.__dict__.update(state)
