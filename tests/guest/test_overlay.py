"""What a guest is made of that is ours, and so which changes make another; of the virtual machine's image (vm/)
only those of kernel modules, tc's plugins, the agent and /init. Nothing is built: the keys of the builds are
compared."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qjump_mn import cache, environment
from qjump_mn.toolbox import Tree, build, cpio, image, overlay, um
from qjump_mn.toolbox.build import Recipe
from qjump_mn.toolbox.cpio import Node
from tests.guest import vm
from tests.guest.vm import modules

NOT_COPIED = shutil.ignore_patterns(
    ".*", "__pycache__", "build", "target", "docs", "tests", "results", "*.egg-info"
)
EXECUTOR = "qjump_mn/executor"
COMMENTS = {".py": "# a comment\n", ".sh": "# a comment\n", ".toml": "# a comment\n", ".rs": "// a comment\n"}
"""What is added to a file by its ending; `/* a comment */` to any other."""


def own_tree(folder: Path) -> Tree:
    """As much of a tree as keys need."""
    (folder / "var/lib/dpkg").mkdir(parents=True)
    (folder / "var/lib/dpkg/status").write_text("Package: gcc\nVersion: 1\nArchitecture: amd64\n")
    (folder / "usr/lib/modules/6.0").mkdir(parents=True)
    (folder / "usr/lib/modules/6.0/modules.dep").touch()
    return Tree(folder)


def keys(folder: Path) -> list[str]:
    """That of the guest, and of the virtual machine, of the package that is imported; run in copies of it,
    too."""
    tree = own_tree(folder)
    kernel = [f"{name} {cache.hash_of_file(path)}" for name, path in um.sources().items()]
    return [
        cache.hash_of(key(tree, lambda: overlay.nodes(tree)), *kernel),
        key(tree, lambda: vm.nodes(tree, tree)),
    ]


def key(tree: Tree, nodes: Callable[[], dict[str, Node]]) -> str:
    """A hash of all that an image holds of ours: of what is built the key, of any other file the content."""
    parts: list[str] = []
    empty = tree.root / "empty"
    empty.mkdir(exist_ok=True)

    def built(tree: Tree, what: str, recipe: Recipe, progress: object) -> Path:
        parts.append(build.key_of(tree, recipe))
        return empty

    def python_package(tree: Tree, package: Path, target: str) -> dict[str, Node]:
        return {f"{target}/{path.relative_to(package)}": Node.file(path) for path in package.rglob("*.py")}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "built", built)
        patch.setattr(overlay, "python_package", python_package)
        made = nodes()
    return cache.hash_of(*sorted(parts), *cpio.archive(made))


def keys_of(checkout: Path, folder: Path) -> list[str]:
    """Those of a checkout; what is to be measured lies in ``folder``."""
    code = (
        "import sys; from pathlib import Path; from tests.guest.test_overlay import keys, overlay; "
        "print(overlay.__file__, *keys(Path(sys.argv[1])))"
    )
    variables = {**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{environment.CHECKOUT}"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(folder)],
        env=variables, cwd=folder.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    imported, *made = done.stdout.split()
    assert imported == str(checkout / "qjump_mn/toolbox/overlay.py")
    return made


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of every folder of sources that there is."""
    return Path(
        shutil.copytree(environment.CHECKOUT, tmp_path_factory.mktemp("copy") / "checkout", ignore=NOT_COPIED)
    )


@pytest.fixture(scope="module")
def before(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Both keys of the copy."""
    return keys_of(checkout, tmp_path_factory.mktemp("before") / "tree")


def comment(paths: list[Path]) -> None:
    assert paths
    for path in paths:
        path.write_text(path.read_text() + COMMENTS.get(path.suffix, "/* a comment */\n"))


@pytest.fixture
def changed(checkout: Path) -> Iterator[list[Path]]:
    """Files of the copy that the test adds here and changes: they are restored."""
    files: list[Path] = []
    yield files
    for path in files:
        shutil.copyfile(environment.CHECKOUT / path.relative_to(checkout), path)


def differences(
    checkout: Path, before: list[str], changed: list[Path], patterns: str, folder: Path
) -> tuple[bool, bool]:
    """Whether a comment in all files that match changes the guest, and the virtual machine."""
    changed += [path for pattern in patterns.split() for path in checkout.glob(pattern)]
    comment(changed)
    guest, machine = (one != other for one, other in zip(before, keys_of(checkout, folder), strict=True))
    return guest, machine


def test_the_same_sources_have_the_same_keys(checkout: Path, before: list[str], tmp_path: Path) -> None:
    assert keys_of(checkout, tmp_path / "tree") == before
    assert len(set(before)) == 2


@pytest.mark.parametrize(
    "patterns",
    [
        *(f"{folder}/*.c" for folder in vm.MODULE_FOLDERS),
        "kmod-patches/tc/*.c",
        f"{EXECUTOR}/agent.py",
        "*/guest/init.sh",
    ],
)
def test_what_a_kernel_test_needs_changes_both(
    patterns: str, checkout: Path, before: list[str], changed: list[Path], tmp_path: Path
) -> None:
    assert differences(checkout, before, changed, patterns, tmp_path / "tree") == (True, True)


@pytest.mark.parametrize(
    "patterns",
    [
        f"{EXECUTOR}/[!a]*.py",
        "native/*/*.c native/*/*.h",
        "native/*/src/*.rs",
        "kernel/*.patch",
        "kernel/config",
    ],
)
def test_the_executor_and_each_program_and_the_kernel_change_the_guest_alone(
    patterns: str, checkout: Path, before: list[str], changed: list[Path], tmp_path: Path
) -> None:
    assert differences(checkout, before, changed, patterns, tmp_path / "tree") == (True, False)


def test_nothing_else_changes_either(
    checkout: Path, before: list[str], changed: list[Path], tmp_path: Path
) -> None:
    patterns = "qjump_mn/*.py qjump_mn/[!e]*/*.py experiments/*.toml simulator/*/src/*.rs"
    assert differences(checkout, before, changed, patterns, tmp_path / "tree") == (False, False)


def test_the_guest_has_programs_and_the_virtual_machine_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = own_tree(tmp_path / "tree")
    contents = {"tc_plugins": "plugin", "native_programs": "program"}
    for function, name in contents.items():
        monkeypatch.setattr(build, function, lambda *_, name=name: {name: Node.file(b"")})
    monkeypatch.setattr(modules, "ours", lambda *_: {"module": Node.file(b"")})
    monkeypatch.setattr(image, "_compile", lambda *_: None)
    agent = "opt/qjump-mn/executor/agent.py"
    guest = set(overlay.nodes(tree))
    assert guest > {"init", "plugin", "program", "usr/sbin/modprobe", agent} and "module" not in guest
    assert set(vm.nodes(tree, tree)) == {"init", "plugin", "module", agent}
