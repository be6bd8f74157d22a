"""The package of drawings: inside ``qjump_mn`` when installed, beside it in the checkout."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import qjump_mn
from qjump_mn.errors import UsageError
from qjump_mn.model.loading import nearest
from qjump_mn.results.directory import RunDirectory, hand_over
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary, Drawing

PACKAGE = "qjump_mn.plots"


def plots() -> ModuleType:
    """The package ``plots``; the checkout's is imported under the name that the installed one has."""
    if PACKAGE in sys.modules:
        return sys.modules[PACKAGE]
    beside = Path(qjump_mn.__file__).parent.parent / "plots"
    if importlib.util.find_spec(PACKAGE) is not None:
        return importlib.import_module(PACKAGE)
    spec = importlib.util.spec_from_file_location(PACKAGE, beside / "__init__.py", submodule_search_locations=[str(beside)])
    if spec is None or spec.loader is None:
        raise ImportError(f"there are no drawings in {beside}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)
    return module


def names() -> list[str]:
    """The drawings there are."""
    folder = Path(plots().__path__[0])
    return sorted(path.stem for path in folder.glob("*.py") if path.stem not in ("__init__", "style", "notes"))


def check(name: str) -> None:
    """Raise :class:`UsageError` unless there is a drawing called ``name``."""
    if name not in names():
        raise UsageError(f"there is no drawing {name!r}: {nearest(name, names())}")


def draw(run: RunDirectory, manifest: Manifest, arms: Sequence[ArmSummary]) -> tuple[Drawing, ...]:
    """Draw the experiment's figures into ``fig/``; raise :class:`UsageError` if there is no such drawing."""
    check(manifest.plan.figure.plot)
    module = importlib.import_module(f"{plots().__name__}.{manifest.plan.figure.plot}")
    style = importlib.import_module(f"{plots().__name__}.style")
    drawings = []
    for figure in module.draw(run, manifest, arms):
        files = style.save(figure, run.figures)
        relative = {ending: path.relative_to(run.path).as_posix() for ending, path in files.items()}
        drawings.append(Drawing(name=figure.name, title=figure.title, caption=figure.caption, files=relative))
    hand_over(run.path)
    return tuple(drawings)
