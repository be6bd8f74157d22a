"""Compile a kernel module from a user's C file, against exactly the kernel of guests.

A module needs the kernel's headers, its configuration and the names that it exports. The names are
read from the program itself, so nothing of the kernel is compiled again. The compiler reads a
stranger's file where a run is repeated, so it is confined (tree.py).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from qjump_mn import cache, toolbox
from qjump_mn.errors import MachineError, UsageError
from qjump_mn.toolbox import cpio, processors, um
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.tree import Tree

Progress = Callable[[str], None]

_HEADERS, _MODULE = "module-headers", "module"
_TAKES = "about 30 s, once"
_KEPT, _KEPT_HEADERS = 50, 2
_PROGRAM = "linux"
_NOTES, _ARCHIVE = "notes", "module.cpio"
_FAILED = 42
_MAX_LINES = 30

# What headers are not made of, in tar's words: two thirds of the source.
_LEFT_OUT = "*/drivers/*.[ch] */sound/*.[ch] *.dts *.dtsi *.rst */tools/testing/*"

# After CONFIGURE. Without versions of symbols, a line has no checksum. All names are for GPL'd
# modules, so that modpost refuses others.
_PREPARE = r"""nice make -s -j$(nproc) modules_prepare
line='0x00000000\t\1\tvmlinux\tEXPORT_SYMBOL_GPL\t'
nm ../linux | sed -n "s/^.* __ksymtab_\(.*\)$/$line/p" >Module.symvers
find arch/um arch/x86 scripts include -name '*.o' -delete
mkdir ../headers
cp -a --parents Makefile .config Module.symvers scripts include arch/um arch/x86/Makefile* \
    arch/x86/include arch/x86/um ../headers
"""

# With limits: a file may let the compiler run for ever, or take all memory.
_COMPILE = rf"""
ulimit -t 120
ulimit -v 4194304
ulimit -f 204800
export TMPDIR=/build ARCH=um
echo 'obj-m := '"$1".o >Kbuild
make -s -C /mnt M=/build modules 2>&1 || exit {_FAILED}
"""


class Compiled(NamedTuple):
    """A module: an archive that adds it to a guest's initramfs, and the compiler's warnings."""

    archive: Path
    warnings: str


def compiled(
    file: str, source: str, path: str, kernel: Path, progress: Progress = lambda line: None
) -> Compiled:
    """Return the module of a C file, compiled for the program `kernel` now or earlier.

    The archive has it at `path`.

    Raises UsageError with what the compiler says, and MachineError where nothing can be compiled.
    """
    if processors.here() != processors.X86_64.name:
        raise MachineError(
            f"{file} cannot be compiled on {processors.here()}: use a computer with x86-64 Linux"
        )
    headers = _headers(kernel, progress)
    tree = toolbox.made(um.LOCK, progress)

    def build(target: Path) -> None:
        progress(f"compiling {file}")
        with tempfile.TemporaryDirectory(dir=target) as scratch:
            notes = _compile(tree, headers, file, source, Path(scratch))
            module = Path(scratch, file).with_suffix(".ko").read_bytes()
        (target / _NOTES).write_text(notes)
        nodes = {path.removeprefix("/"): Node.file(module)}
        with (target / _ARCHIVE).open("wb") as archive:
            archive.writelines(cpio.archive(nodes))

    key = cache.hash_of(headers.parent.name, _COMPILE, file, source, path)
    fresh = cache.find(_MODULE, key) is None
    folder = cache.artefact(_MODULE, key, build, progress=progress)
    if fresh:
        cache.prune(_MODULE, _KEPT)
    return Compiled(folder / _ARCHIVE, (folder / _NOTES).read_text())


def _headers(kernel: Path, progress: Progress) -> Path:
    """Return the folder of headers, configuration and exported names, made now if there is none."""

    def build(target: Path) -> None:
        tree = toolbox.made(um.LOCK, progress)
        progress(f"preparing the kernel's headers for modules, {_TAKES}")
        with tempfile.TemporaryDirectory(dir=target) as name:
            scratch = Path(name)
            um.copy_sources(scratch)
            (scratch / _PROGRAM).write_bytes(kernel.read_bytes())
            options = " ".join(f"--exclude={pattern}" for pattern in _LEFT_OUT.split())
            script = ["sh", "-e", "-c", um.CONFIGURE + _PREPARE]
            tree.run(script, scratch, {"TAR_OPTIONS": options})
            (scratch / "headers").rename(target / "headers")

    key = cache.hash_of(um.identity(), cache.recorded_hash(kernel), _LEFT_OUT, _PREPARE)
    fresh = cache.find(_HEADERS, key) is None
    made = cache.artefact(_HEADERS, key, build, needs_bytes=um.NEEDS_BYTES, progress=progress)
    if fresh:
        cache.prune(_HEADERS, _KEPT_HEADERS)
    return made / "headers"


def _compile(tree: Tree, headers: Path, file: str, source: str, scratch: Path) -> str:
    """Compile the file in an empty folder, and return the compiler's warnings."""
    (scratch / file).write_text(source)
    script = ["sh", "-e", "-c", _COMPILE, "sh", Path(file).stem]
    done = tree.run_confined(script, scratch, headers)
    output = _readable(done.stdout)
    if done.returncode == _FAILED:
        raise UsageError(f"{file} does not compile for Linux:\n{output}")
    if done.returncode:
        raise MachineError(f"{file} cannot be compiled here:\n{output}")
    return output


def _readable(output: str) -> str:
    """Return what a compiler prints, without our folders and what a terminal obeys, and not too
    much of it."""
    lines = [
        "".join(one if one.isprintable() else " " for one in line)
        .replace("/build/", "")
        .replace("/mnt/", "")
        for line in output.splitlines()
        if not line.startswith("make")
    ]
    if len(lines) > _MAX_LINES:
        lines[_MAX_LINES:] = [f"and {len(lines) - _MAX_LINES} more lines"]
    return "\n".join(lines)
