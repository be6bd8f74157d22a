"""The image that a guest starts from: a tree's QEMU and kernel, and an initramfs of ours."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from qjump_mn import cache, toolbox
from qjump_mn.guest.job import Image, Progress
from qjump_mn.toolbox import debug, machines, overlay
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.image import initramfs
from qjump_mn.toolbox.machine_file import INITRD, KERNEL, QEMU, TREE

_ARTEFACTS = 3
"""A guest's files are in so many, each of which may be damaged: two trees and the image."""


def prepare(
    progress: Progress = lambda line: None,
    *,
    extra: Mapping[str, bytes | Path] | None = None,
    other_kernel: str | None = None,
    bare: bool = False,
    of_packages: bool = False,
) -> Image:
    """Everything that a guest needs: the reference machine, or tree, kernel modules, programs and initramfs,
    built now or found in the cache.

    `extra` are more files for the guest, by names relative to /. `other_kernel` takes another kernel, of
    :data:`qjump_mn.toolbox.OTHER_KERNELS` or, for tests, as "debug" or "races", one that debug.py builds. A
    `bare` image, for tests, is without our programs and can run scripts only (overlay.py). Building needs
    root, using what root built does not. With ``of_packages`` it is made of packages whatever machine there
    is. What of it is damaged is named and made again. Raises MachineError with what is missing.
    """
    for _ in range(_ARTEFACTS):
        try:
            return _prepared(progress, extra or {}, other_kernel, bare, of_packages)
        except cache.DamagedError as error:
            progress(f"{error}: it is made again")
    return _prepared(progress, extra or {}, other_kernel, bare, of_packages)


@cache.sentences()
def _prepared(
    progress: Progress,
    extra: Mapping[str, bytes | Path],
    other_kernel: str | None,
    bare: bool,
    of_packages: bool,
) -> Image:
    if not (extra or other_kernel or bare or of_packages) and (machine := machines.reference(progress)):
        return _of_machine(machine)
    tree = toolbox.toolbox(progress)
    differences = toolbox.differences(tree)
    if differences:
        progress(f"not the machine of the reference runs: {toolbox.summary(differences)}")
    match other_kernel:
        case None:
            kernel = tree
        case debug.SUITE | debug.RACES:
            kernel = debug.kernel_tree(other_kernel, progress)
        case suite:
            kernel = toolbox.made(f"kernel-{suite}", progress)
    own = overlay.nodes(tree, kernel, bare=bare, progress=progress)
    own |= {name: Node.file(content) for name, content in extra.items()}
    initrd = initramfs(tree, kernel, own, progress)
    return _described(tree, kernel, initrd, differences)


def _of_machine(folder: Path) -> Image:
    facts = machines.facts(folder)
    hashes = {"qemu": f"{TREE}/{QEMU}", "kernel": KERNEL, "initrd": INITRD}
    return Image(
        tree=folder / TREE,
        kernel=folder / KERNEL,
        initrd=folder / INITRD,
        sha256={name: cache.checked_hash(folder / member) for name, member in hashes.items()},
        qemu_version=facts.qemu_version,
        packages=facts.packages,
        packages_sha256=facts.packages_sha256,
        differences=[],
        identity=machines.read().image,
        release=_release(facts.packages),
    )


def _described(tree: toolbox.Tree, kernel: toolbox.Tree, initrd: Path, differences: list[str]) -> Image:
    files = {"qemu": tree.root / QEMU, "kernel": kernel.kernel, "initrd": initrd}
    sha256 = {name: cache.checked_hash(path) for name, path in files.items()}
    version = tree.output(QEMU, "--version")
    return Image(
        tree=tree.root,
        kernel=kernel.kernel,
        initrd=initrd,
        sha256=sha256,
        qemu_version=version.splitlines()[0].removeprefix("QEMU emulator version "),
        packages=[f"{package.name}={package.version}" for package in tree.packages],
        packages_sha256=tree.packages_sha256,
        differences=differences,
        identity=_identity(sha256),
        release=kernel.kernel_release,
    )


def _release(packages: Sequence[str]) -> str:
    """The release of the kernel among packages, name=version; Debian's names of these begin with it."""
    found = (re.match(r"linux-image-(\d[^=]*)=", package) for package in packages)
    return next((match[1] for match in found if match), "")


def _identity(sha256: Mapping[str, str]) -> str:
    return hashlib.sha256("".join(sorted(sha256.values())).encode()).hexdigest()
