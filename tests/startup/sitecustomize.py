"""Give Python processes that tests start the session's store of results.

Python imports this at its start wherever conftest.py has put this folder into $PYTHONPATH. It wraps
the two modules after their import, so that all other processes pay for nothing. Standard library
only, and nothing that Python 3.8 does not know: the tests start old ones, too.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

STORE = "tests.support.result_store"
MODULES = ("qjump_mn.guest", "qjump_mn.backends.simulator")


class Finder:
    """Finds the two modules as Python does, and installs the store in them once they are
    executed."""

    @staticmethod
    def find_spec(name: str, path: object, target: object = None) -> ModuleSpec | None:
        if name not in MODULES:
            return None
        spec = PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            # While conftest.py imports the store itself, which it then installs.
            if install := getattr(_store(), "install", None):
                install(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _store() -> ModuleType:
    """The store, whose folder is not in the path of every process."""
    from importlib import util
    from pathlib import Path

    if STORE not in sys.modules:
        path = Path(__file__).resolve().parents[1] / "support/result_store.py"
        spec = util.spec_from_file_location(STORE, path)
        assert spec is not None and spec.loader is not None
        sys.modules[STORE] = util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[STORE])
    return sys.modules[STORE]


sys.meta_path.insert(0, Finder)
