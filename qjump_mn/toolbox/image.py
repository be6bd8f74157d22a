"""Write the guest's initramfs: a base from packages (slow, rarely changed) and an overlay of our
files."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.process import temp_dirs
from qjump_mn.toolbox import cpio, selection
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.tree import Tree

_BASE_NEEDS_BYTES = 300 << 20
_IMAGE_NEEDS_BYTES = 200 << 20
_BASE = "base.cpio"
_KEPT = 6  # of 121 MB each: the tests have four bare ones, one a kernel, and a whole one

# The base's own files, besides those of packages. /run and /dev are mounted over by /init.
_OWN = {
    "etc/hosts": Node.file(b"127.0.0.1 localhost\n"),
    "etc/hostname": Node.file(b"guest\n"),
    "etc/resolv.conf": Node.file(b""),  # ovs-vswitchd complains without
    "etc/fstab": Node.file(b""),
    "etc/openvswitch": Node.folder(),
    "var/log/openvswitch": Node.folder(),
    "var/lib/openvswitch": Node.folder(),
    "var/run": Node.link("/run"),
    "root": Node.folder(0o700),
    "tmp": Node.folder(0o1777),
    "usr/lib/tc": Node.folder(),
    **{name: Node.folder() for name in ("dev", "proc", "run", "sys")},
}


def base(tree: Tree, progress: Callable[[str], None] = lambda line: None) -> Path:
    """Return the file `base.cpio` of a tree."""

    def build(folder: Path) -> None:
        progress("building the base of the guest's image, about 20 s")
        chosen = selection.files(tree)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            python = {
                name: node
                for name, node in chosen.items()
                if name.endswith(".py") and isinstance(node.content, Path)
            }
            _write(python, Path(scratch))
            _compile(tree, Path(scratch), Path(scratch))
            nodes = chosen | selection.dropped_in(Path(scratch)) | _OWN
            with (folder / _BASE).open("wb") as file:
                file.writelines(cpio.archive(nodes))

    code = [
        cache.hash_of_code(Path(str(name)))
        for name in (__file__, selection.__file__, cpio.__file__)
    ]
    key = cache.hash_of(tree.packages_sha256, *code)
    made = cache.artefact(
        "image-base", key, build, needs_bytes=_BASE_NEEDS_BYTES, progress=progress
    )
    return made / _BASE


def initramfs(
    tree: Tree, overlay: Mapping[str, Node], progress: Callable[[str], None] = lambda line: None
) -> Path:
    """Return the file `initrd`: the base, then the overlay, whose names win over the base's."""
    foundation = base(tree, progress)

    def build(folder: Path) -> None:
        with (folder / "initrd").open("wb") as file, foundation.open("rb") as below:
            shutil.copyfileobj(below, file, 1 << 20)
            file.writelines(cpio.archive(dict(overlay)))

    contents = [
        f"{name} {node.mode} {cache.hash_of(_content(node))}"
        for name, node in sorted(overlay.items())
    ]
    key = cache.hash_of(foundation.parent.name, *contents)
    fresh = cache.find("image", key) is None
    path = cache.artefact("image", key, build, needs_bytes=_IMAGE_NEEDS_BYTES, progress=progress)
    if fresh:
        cache.prune("image", _KEPT)
        cache.prune("image-base", _KEPT)
    return path / "initrd"


def python_package(tree: Tree, package: Path, target: str) -> dict[str, Node]:
    """Return a Python package below the folder `target`, with bytecode, so that the guest need not
    compile."""
    nodes: dict[str, Node] = {}
    with temp_dirs.folder() as top:
        home = Path(top, target, package.name)
        for source in sorted(package.rglob("*.py")):
            copy = home / source.relative_to(package)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
        _compile(tree, home, Path(top))
        for name, node in selection.dropped_in(Path(top)).items():
            nodes[name] = Node.folder() if node.content is None else Node.file(_content(node))
    return nodes


def _compile(tree: Tree, folder: Path, top: Path) -> None:
    """Write bytecode for every Python file in `folder`, with source names as if `top` were /.

    It is never checked against its source, because an initramfs has no useful times.
    """
    pythons = (tree.root / "usr/bin").glob("python3.*")
    interpreter = next(
        f"usr/bin/{path.name}"
        for path in sorted(pythons)
        if re.fullmatch(r"python3\.\d+", path.name)
    )
    options = [
        "-q",
        "-f",
        "--invalidation-mode",
        "unchecked-hash",
        "-s",
        str(top),
        "-p",
        "/",
        str(folder),
    ]
    environment = {"PYTHONHOME": str(tree.root / "usr"), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    argv = tree.program(interpreter, "-s", "-S", "-m", "compileall", *options)
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise MachineError(
            f"Python files for the guest do not compile:\n{done.stdout}{done.stderr}"
        )


def _write(nodes: Mapping[str, Node], folder: Path) -> None:
    for name, node in nodes.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_content(node))


def _content(node: Node) -> bytes:
    return node.content.read_bytes() if isinstance(node.content, Path) else node.content or b""
