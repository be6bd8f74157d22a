"""Distributions of somebody else's, as an installer leaves them, for the tests of what extends
us."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def make(
    folder: Path, name: str, group: str, points: Mapping[str, str], modules: Mapping[str, str]
) -> Path:
    """A folder for ``sys.path`` with a distribution: its entry points of ``group``, and its
    modules' text."""
    metadata = folder / name / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{point} = {value}" for point, value in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for module, text in modules.items():
        (metadata.parent / f"{module}.py").write_text(text)
    return metadata.parent
