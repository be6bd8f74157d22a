"""Modules and packages import each other in no circle, even for the type checker alone."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import qjump_mn

ROOT = Path(qjump_mn.__file__).parent
NAME = "qjump_mn"

Imports = Mapping[str, set[str]]
"""The modules that each module imports."""


def modules(root: Path) -> dict[str, Path]:
    """The files below a package's folder, by module."""
    return {
        ".".join([NAME, *path.relative_to(root).with_suffix("").parts]).removesuffix(
            ".__init__"
        ): path
        for path in root.rglob("*.py")
    }


def imported(name: str, path: Path) -> Iterator[str]:
    """Every name that a module imports, wherever the statement is."""
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            origin = ".".join([*(above if node.level else ()), *filter(None, [node.module])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def imports(root: Path) -> Imports:
    """What each module imports of the package. The package itself, which only hands on the API and
    the version, is left out."""
    known = modules(root)

    def module_of(word: str) -> str:
        return word if word in known else word.rpartition(".")[0]

    return {
        name: {module_of(word) for word in imported(name, path)} & known.keys() - {name, NAME}
        for name, path in known.items()
        if name != NAME
    }


def grouped(found: Imports, group: Callable[[str], str]) -> Imports:
    """The imports between groups of modules."""
    groups: dict[str, set[str]] = {}
    for name, others in found.items():
        groups.setdefault(group(name), set()).update(map(group, others))
    return {name: others - {name} for name, others in groups.items()}


def circle(found: Imports) -> list[str]:
    """A circle of imports; empty if there is none."""
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def top(name: str) -> str:
    """The part of the package that a module is in."""
    return ".".join(name.split(".")[:2])


def within_cli(name: str) -> str:
    """The same, but each module and folder of the command line by itself."""
    return ".".join(name.split(".")[: 3 if name.startswith(f"{NAME}.cli.") else 2])


@pytest.mark.parametrize("group", [str, top, within_cli], ids=["modules", "packages", "cli"])
def test_imports_have_no_circle(group: Callable[[str], str]) -> None:
    found = grouped(imports(ROOT), group)
    assert len(found) > 15 and f"{NAME}.session" in found
    assert circle(found) == []


@pytest.mark.parametrize(
    "text",
    [
        "from qjump_mn import upper",
        "from qjump_mn.upper.one import THING",
        "from ..upper import one",
        "def function():\n    import qjump_mn.upper.one",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from qjump_mn.upper import one",
    ],
)
def test_a_circle_of_two_packages_is_found(tmp_path: Path, text: str) -> None:
    for name, content in (("upper/one", "from qjump_mn.lower import two\n"), ("lower/two", text)):
        path = tmp_path / f"{name}.py"
        path.parent.mkdir()
        (path.parent / "__init__.py").write_text("")
        path.write_text(content)
    (tmp_path / "__init__.py").write_text("from qjump_mn.upper import one\n")
    found = grouped(imports(tmp_path), top)
    assert sorted(set(circle(found))) == ["qjump_mn.lower", "qjump_mn.upper"]
