"""Find the Debian packages of what a script imports, and say what to do about what a command did
not find or could not read."""

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

PYTHON2 = frozenset(
    (
        "BaseHTTPServer", "ConfigParser", "Queue", "SimpleHTTPServer", "SocketServer", "StringIO",
        "Tkinter", "cPickle", "commands", "httplib", "sets", "thread", "urllib2", "urlparse",
    )
)  # fmt: skip
"""Modules that only Python 2 has."""

EXAMPLES = "mininet.examples"
"""A package of Mininet's repository that Debian's package of Mininet does not have."""

_MISSING_MODULE = re.compile(rb"ModuleNotFoundError: No module named '([\w.]+)")
_UNREADABLE = re.compile(
    rb'File "(?:/root/work/)?([^"\n]+)", line (\d+)\n(?:.*\n){1,3}'
    rb"(SyntaxError: (?:Missing parentheses|multiple exception types)|TabError)"
)
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
    """Return what to do about the first script in Python 2, or the first module or program that a
    command did not find; "" if there is none."""
    if match := _UNREADABLE.search(output):
        path, number = match[1].decode(errors="replace"), int(match[2])
        if match[3] == b"TabError":
            return (
                f"{path}:{number} mixes tabs and spaces, which only Python 2 reads: write spaces, "
                f"for example with  expand -i {path}"
            )
        return f"{path}:{number} is Python 2: convert it, for example with  2to3 -w {path}"
    if match := _MISSING_MODULE.search(output):
        return _missing_module(match[1].decode(errors="replace"))
    if match := _MISSING_PROGRAM.search(output):
        program = match[1].decode(errors="replace")
        return f"the machine has no program {program}: add its Debian package with --packages"
    return ""


def _missing_module(name: str) -> str:
    if name.startswith(EXAMPLES):
        return f"Debian's Mininet has no {EXAMPLES}: add --mininet FOLDER, a checkout of Mininet"
    module = name.partition(".")[0]
    if module in PYTHON2:
        return f"the module {module} is of Python 2: convert its script, for example with  2to3 -w"
    package = PACKAGES.get(module, f"python3-{module}")
    return f"the machine has no Python module {module}: try --packages {package}"
