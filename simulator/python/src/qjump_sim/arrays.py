"""Arrays that nobody writes to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


class ReadOnly:
    """What has read-only arrays, whose copies have such too: `copy` and `pickle` make writable ones."""

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.__dict__.update(state)
