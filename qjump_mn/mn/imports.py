"""Find the Debian packages of what a script imports, and of what a command did not find."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGES = {
    "dpkt": "python3-dpkt",
    "matplotlib": "python3-matplotlib",
    "networkx": "python3-networkx",
    "numpy": "python3-numpy",
    "pandas": "python3-pandas",
    "psutil": "python3-psutil",
    "requests": "python3-requests",
    "scapy": "python3-scapy",
    "scipy": "python3-scipy",
    "seaborn": "python3-seaborn",
    "simplejson": "python3-simplejson",
    "tabulate": "python3-tabulate",
    "termcolor": "python3-termcolor",
    "tqdm": "python3-tqdm",
    "yaml": "python3-yaml",
}
"""Packages of modules that scripts import and the machine does not have."""

_MISSING_MODULE = re.compile(rb"ModuleNotFoundError: No module named '(\w+)")
_MISSING_PROGRAM = re.compile(rb"(?:^|: )([\w.+-]+): (?:command )?not found$", re.MULTILINE)


def packages(script: Path) -> tuple[str, ...]:
    """Return the packages of the modules that a script and those beside it import."""
    found: dict[str, None] = {}
    todo, seen = [script], set()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in _imported(path):
            local = [path.parent / f"{name}.py", path.parent / name / "__init__.py"]
            beside = [one for one in local if one.is_file()]
            todo += beside
            if not beside and name in PACKAGES:
                found[PACKAGES[name]] = None
    return tuple(sorted(found))


def _imported(path: Path) -> Iterator[str]:
    """Yield the first words of the modules that a file imports, wherever it does."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def advice(output: bytes) -> str:
    """Return what to do about the first module or program that a command did not find; "" if it
    found all."""
    if match := _MISSING_MODULE.search(output):
        module = match[1].decode()
        package = PACKAGES.get(module, f"python3-{module}")
        return f"the machine has no Python module {module}: try --packages {package}"
    if match := _MISSING_PROGRAM.search(output):
        program = match[1].decode(errors="replace")
        return f"the machine has no program {program}: add its Debian package with --packages"
    return ""
