"""What a guest starts from: Linux as a program, and an initramfs of ours."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from qjump_mn import cache, toolbox
from qjump_mn.errors import MachineError
from qjump_mn.guest import outer
from qjump_mn.guest.job import Image, Progress
from qjump_mn.toolbox import image, machines, overlay, um
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox import outer_machine as toolbox_outer
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.machine_file import INITRD, KERNEL, OUTER
from qjump_mn.toolbox.tree import Tree


@cache.sentences()
def prepare(
    progress: Progress = lambda line: None,
    *,
    extra: Mapping[str, bytes | Path] | None = None,
    of_packages: bool = False,
) -> Image:
    """Everything that a guest needs: the reference machine, or kernel, programs and initramfs, built now or
    found in the cache.

    `extra` are more files for the guest, by names relative to /. Building needs root, using what root built
    does not. With ``of_packages`` it is made of packages whatever machine there is. Raises
    MachineError with what is missing.
    """
    check_processor()
    if not (extra or of_packages) and (machine := machines.reference(progress)):
        return _of_machine(machine, progress)
    tree = toolbox.toolbox(progress)
    differences = toolbox.differences(tree)
    if differences:
        progress(f"not the machine of the reference runs: {toolbox.summary(differences)}")
    kernel = um.kernel(progress)
    more = {name: Node.file(content) for name, content in (extra or {}).items()}
    initrd = image.initramfs(tree, overlay.nodes(tree, progress) | more, progress)
    sha256 = {"kernel": cache.recorded_hash(kernel), "initrd": cache.recorded_hash(initrd)}
    packages = [f"{package.name}={package.version}" for package in tree.packages]
    return Image(
        kernel=kernel,
        initrd=initrd,
        sha256=sha256,
        packages=packages,
        packages_sha256=cache.hash_of(tree.packages_sha256, locks.read(um.LOCK).identity),
        differences=differences,
        identity=_identity(tree, extra or {}),
        release=_release(kernel),
        outer=_around(None, progress),
    )


def check_processor() -> None:
    """Raise MachineError where this computer lacks what guests run in on its processor."""
    if outer.is_wanted():
        outer.qemu()


def _identity(tree: Tree, extra: Mapping[str, bytes | Path]) -> str:
    """What stands for the machine in a run: what is built and runs, whatever is written about it."""
    parts = {
        "toolbox": tree.packages_sha256,
        "Linux": um.identity(),
        "packages' files": cache.recorded_hash(image.base(tree)),
        **overlay.identities(),
        **{f"/{name}": _hash(content) for name, content in extra.items()},
    }
    return cache.hash_of(*(f"{name} {value}" for name, value in sorted(parts.items())))


def _hash(content: bytes | Path) -> str:
    return cache.hash_of(content if isinstance(content, bytes) else content.read_bytes())


def _of_machine(folder: Path, progress: Progress) -> Image:
    facts = machines.facts(folder)
    return Image(
        kernel=folder / KERNEL,
        initrd=folder / INITRD,
        sha256={name: cache.recorded_hash(folder / name) for name in (KERNEL, INITRD)},
        packages=facts.packages,
        packages_sha256=facts.packages_sha256,
        differences=[],
        identity=machines.read().image,
        release=facts.release,
        outer=_around(folder / OUTER, progress),
    )


def _around(given: Path | None, progress: Progress) -> Path | None:
    """The machine around each guest, that of a machine file if it has one; None where there is no need."""
    if not outer.is_wanted():
        return None
    progress(f"guests run in {outer.QEMU}, which takes some {outer.SLOWER} times as long: docs/machine.md")
    return given if given and given.is_dir() else toolbox_outer.machine(progress)


def _release(kernel: Path) -> str:
    """The kernel's own word for its version, such as 7.3.4."""
    try:
        done = subprocess.run([kernel, "--version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        cache.check(kernel)
        raise MachineError(f"Linux as a program does not run here: {error}") from error
    return done.stdout.strip()
