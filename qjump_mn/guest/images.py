"""Provide the image of a guest: a Linux kernel that runs as a program, and its initramfs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from qjump_mn import cache, toolbox
from qjump_mn.errors import MachineError
from qjump_mn.guest import outer
from qjump_mn.guest.job import Image, Progress
from qjump_mn.toolbox import image, machines, overlay, um
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox import outer_machine as toolbox_outer
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.lock import Lock
from qjump_mn.toolbox.machine_file import INITRD, KERNEL, OUTER
from qjump_mn.toolbox.tree import Tree

_CPIO_ALIGNMENT_BYTES = 4
_KEPT = 6  # of 121 MB each: as image.py keeps


@cache.sentences()
def prepare(
    progress: Progress = lambda line: None,
    *,
    extra: Mapping[str, bytes | Path] | None = None,
    of_packages: bool = False,
) -> Image:
    """Return the image: the reference machine, or one built from packages, now or earlier.

    `extra` are more files for the guest, by names relative to /. With ``of_packages`` the reference
    machine is not used. Building needs root; using what root built does not. Raises MachineError,
    which says what is missing.
    """
    check_processor()
    if not (extra or of_packages) and (machine := machines.reference(progress)):
        return _from_machine(machine, progress)
    tree = toolbox.toolbox(progress)
    differences = toolbox.differences(tree)
    if differences:
        progress(f"not the machine of the reference runs: {toolbox.summary(differences)}")
    kernel = um.kernel(progress)
    extra_nodes = {name: Node.file(content) for name, content in (extra or {}).items()}
    initrd = image.initramfs(tree, overlay.nodes(tree, progress) | extra_nodes, progress)
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
        outer=_outer_machine(None, progress),
    )


def with_archives(
    base: Image,
    archives: Sequence[Path],
    progress: Progress = lambda line: None,
    *,
    added: Sequence[Lock] = (),
) -> Image:
    """Return an image whose initramfs is the base's, followed by more cpio archives.

    Of two files with one name the later wins. ``added`` are the locks of the packages in the
    archives. The image is made if it is not in the cache, which takes its size.
    """
    parts = [base.initrd, *archives]
    hashes = [cache.recorded_hash(path) for path in parts]

    def build(folder: Path) -> None:
        with (folder / "initrd").open("wb") as file:
            for part in parts:
                with part.open("rb") as content:
                    shutil.copyfileobj(content, file, 1 << 20)
                file.write(bytes(-file.tell() % _CPIO_ALIGNMENT_BYTES))

    key, size_bytes = cache.hash_of("followed", *hashes), sum(one.stat().st_size for one in parts)
    fresh = cache.find("image", key) is None
    folder = cache.artefact("image", key, build, needs_bytes=size_bytes, progress=progress)
    if fresh:
        cache.prune("image", _KEPT)
    initrd = folder / "initrd"
    return msgspec.structs.replace(
        base,
        initrd=initrd,
        sha256={**base.sha256, "initrd": cache.recorded_hash(initrd)},
        packages=sorted({*base.packages, *(one for lock in added for one in _listed(lock))}),
        packages_sha256=cache.hash_of(base.packages_sha256, *(one.identity for one in added)),
        identity=cache.hash_of(base.identity, *hashes[1:]),
    )


def _listed(lock: Lock) -> list[str]:
    return [f"{name}={version}" for name, version in locks.versions(lock).items()]


def check_processor() -> None:
    """Raise MachineError if guests need QEMU on this processor and it is not installed."""
    if outer.is_wanted():
        outer.qemu()


def _identity(tree: Tree, extra: Mapping[str, bytes | Path]) -> str:
    """Return the hash that identifies the image: of what is built and runs, without prose."""
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


def _from_machine(folder: Path, progress: Progress) -> Image:
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
        outer=_outer_machine(folder / OUTER, progress),
    )


def _outer_machine(folder: Path | None, progress: Progress) -> Path | None:
    """Return the machine around each guest, or None if guests run directly on this host.

    It is in ``folder``, if that exists, or is built.
    """
    if not outer.is_wanted():
        return None
    progress(f"guests run in {outer.QEMU}, about {outer.SLOWER} times slower: see docs/machine.md")
    return folder if folder and folder.is_dir() else toolbox_outer.machine(progress)


def _release(kernel: Path) -> str:
    """Return the kernel's version, such as 7.3.4, as it prints it."""
    try:
        done = subprocess.run(
            [kernel, "--version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        cache.check(kernel)
        raise MachineError(f"Linux as a program does not run here: {error}") from error
    return done.stdout.strip()
