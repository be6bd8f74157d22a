"""Prose moves no identity: with another comment and docstring in every source file the machine, the
simulator and the plans are the same; with another token in one of them they are not."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from qjump_mn.install import environment
from qjump_mn.toolbox import Tree, build, image, overlay
from qjump_mn.toolbox.cpio import Node
from tests.guest import vm
from tests.guest.vm import modules

NOT_COPIED = shutil.ignore_patterns(
    ".*", "__pycache__", "build", "target", "docs", "tests", "results", "*.egg-info"
)
IDENTITIES = """
import json
from qjump_mn import resolve
from qjump_mn.toolbox import arm64, machines
plans = {name: resolve.plan(name, "smoke", []).hash for name in ("fig3a", "fig9", "schemes")}
print(json.dumps({**machines.made_of(), **arm64.made_of(), **plans}))
"""
REMARK = "/* another\n   comment */\n"
ONE_COMMENT = {
    ".c": REMARK,
    ".h": REMARK,
    ".rs": REMARK + "// and one\n",
    ".patch": "Another message.\n",
}
"""What is put before the first line of a file, by its ending."""
AT_END = {".1", ".8", ".toml", ".mk", "Makefile", "Kbuild", "config", "Cargo.lock", ".sh"}


def reworded(path: Path) -> str | None:
    """The file with another comment, and docstring if it has one; None for what is no source."""
    text = path.read_text()
    if path.suffix == ".py":
        return redocumented(text)
    if path.suffix in ONE_COMMENT:
        return ONE_COMMENT[path.suffix] + re.sub(r"^(\t+|    )(?=\w)", r"\1  ", text, flags=re.M)
    if {path.suffix, path.name} & AT_END:
        return text + (
            '.\\" Another comment\n' if path.suffix in (".1", ".8") else "# another comment\n"
        )
    return None


def redocumented(source: str) -> str:
    """A Python file in which every docstring has more words, and every line that begins one a
    comment before it."""
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        if isinstance(node.value.value, str):
            line = lines[node.lineno - 1]
            lines[node.lineno - 1] = line.replace('"""', '"""Another docstring. ', 1)
    return "# another comment\n" + "\n".join(lines)


def identities(checkout: Path) -> dict[str, str]:
    variables = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", IDENTITIES],
        env=variables, cwd=checkout, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of every folder of sources that there is."""
    target = tmp_path_factory.mktemp("copy") / "checkout"
    return Path(shutil.copytree(environment.CHECKOUT, target, ignore=NOT_COPIED))


@pytest.fixture(scope="module")
def before(checkout: Path) -> dict[str, str]:
    return identities(checkout)


def test_prose_in_every_source_moves_no_identity(
    checkout: Path, before: dict[str, str], tmp_path: Path
) -> None:
    copy = shutil.copytree(checkout, tmp_path / "checkout")
    kinds = set()
    for path in sorted(copy.rglob("*")):
        text = reworded(path) if path.is_file() and "golden" not in path.parts else None
        if text is not None and text != path.read_text():
            path.write_text(text)
            kinds.add(path.suffix or path.name)
    assert kinds >= {
        ".py",
        ".c",
        ".h",
        ".rs",
        ".sh",
        ".patch",
        ".toml",
        ".mk",
        ".8",
        "Makefile",
        "Kbuild",
        "config",
    }
    assert identities(copy) == before


@pytest.mark.parametrize(
    ("name", "old", "new", "moved"),
    [
        ("kmod-patches/sch_qjump.c", "return", "return  2 *", {"Linux", "the plugins of tc"}),
        ("kmod-patches/tc/q_qjump.c", "return true", "return  2 * true", {"the plugins of tc"}),
        ("kernel/config", "CONFIG_HZ=250", "CONFIG_HZ=100", {"Linux"}),
        ("native/nsping/nsping.c", "return", "return  2 *", {"nsping"}),
        ("native/barrier/src/shutdown.rs", "false", "true", {"barrier"}),
        ("qjump_mn/executor/steps.py", "return", "return not", {"executor/steps.py"}),
        ("qjump_mn/guest/init.sh", "hostname guest", "hostname host", {"guest/init.sh"}),
        ("simulator/src/lib.rs", "pub mod", "mod", {"simulator"}),
        ("experiments/fig3a.toml", 'duration = "4s"', 'duration = "5s"', {"fig3a"}),
    ],
)
def test_another_token_moves_its_own_identity(
    name: str, old: str, new: str, moved: set[str], checkout: Path, before: dict[str, str]
) -> None:
    path = checkout / name
    text = path.read_text()
    assert old in text
    try:
        path.write_text(text.replace(old, new, 1))
        now = identities(checkout)
    finally:
        path.write_text(text)
    assert {key for key in before.keys() | now.keys() if before.get(key) != now.get(key)} == moved


def test_guest_has_programs_and_virtual_machine_has_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(tmp_path)
    contents = {"tc_plugins": "plugin", "native_programs": "program"}
    for function, name in contents.items():
        monkeypatch.setattr(build, function, with_file(name))
    monkeypatch.setattr(modules, "ours", with_file("module"))
    monkeypatch.setattr(image, "_compile", lambda *_: None)
    agent = "opt/qjump-mn/executor/agent.py"
    guest = set(overlay.nodes(tree))
    assert (
        guest > {"init", "plugin", "program", "usr/sbin/modprobe", agent} and "module" not in guest
    )
    assert set(vm.nodes(tree, tree)) == {"init", "plugin", "module", agent}


def with_file(name: str) -> Callable[..., dict[str, Node]]:
    return lambda *_: {name: Node.file(b"")}
