"""The guest: a machine with its own clock, in which an entry point runs. It knows nothing of networks or
experiments.

    image = prepare(print)
    base = snapshot(image, Setup(entry="package.module:bring_up", args={...}), print)
    result = run(image, Job(entry="package.module:measure", args={...}, seed=7), Path("out"), snapshot=base)

`run` with a setup instead of a snapshot boots, sets up and measures in one go ("cold") and gives the same
bits. Measured on two cores: image 121 MB; boot 12 s, 1.8 virtual s; a snapshot costs 0.03 s, a fork runs
after 0.07 s and is done with an empty job after 0.8 s; 2 MB of results take 0.1 s.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from qjump_mn import cache, scratch, toolbox
from qjump_mn.errors import LostError, QJumpError, UsageError
from qjump_mn.guest import snapshots, store
from qjump_mn.guest.cores import core
from qjump_mn.guest.job import Image, Job, Progress, Result, Setup, Snapshot, encode_job, encode_setup
from qjump_mn.guest.machine import Files, Machine, Stop, end_orphans, machine, qemu_argv
from qjump_mn.guest.result import Trailer, unpack
from qjump_mn.toolbox import debug, overlay
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.image import initramfs

__all__ = [
    "Image",
    "Job",
    "Progress",
    "Result",
    "Setup",
    "Snapshot",
    "Stop",
    "check",
    "end_orphans",
    "prepare",
    "run",
    "snapshot",
]

MEMORY_MB = 1024


def prepare(
    progress: Progress = lambda line: None,
    *,
    extra: Mapping[str, bytes | Path] | None = None,
    other_kernel: str | None = None,
    bare: bool = False,
) -> Image:
    """Build, or find in the cache, everything that a guest needs: tree, kernel modules, programs, initramfs.

    `extra` are more files for the guest, by names relative to /. For tests: `other_kernel` takes a kernel
    that is locked ("6.1", "7") or, as "debug", the one that debug.py builds, and a `bare` image is without
    our programs and can run scripts only (overlay.py). Building needs root, using what root built does not.
    Raises MachineError with what is missing.
    """
    tree = toolbox.toolbox(progress)
    if differences := toolbox.differences(tree):
        progress(f"not the machine of the reference runs: {toolbox.summary(differences)}")
    match other_kernel:
        case None:
            kernel = tree
        case debug.SUITE:
            kernel = debug.kernel_tree(progress)
        case suite:
            kernel = toolbox.made(f"kernel-{suite}", progress)
    own = overlay.nodes(tree, kernel, bare=bare, progress=progress)
    own |= {name: Node.file(content) for name, content in (extra or {}).items()}
    initrd = initramfs(tree, kernel, own, progress)
    return _described(tree, kernel, initrd)


def snapshot(
    image: Image,
    setup: Setup,
    progress: Progress = lambda line: None,
    *,
    memory_mb: int = MEMORY_MB,
    wall_deadline_s: float = 900.0,
    stop: Stop | None = None,
) -> Snapshot:
    """The machine after `setup`, from the cache or brought up now. Needs no root.

    Raises LostError with the console's last lines when the setup fails, the guest dies or a deadline passes,
    and when `stop` ends it.
    """
    return snapshots.take(
        image, setup, progress, memory_mb=memory_mb, wall_deadline_s=wall_deadline_s, stop=stop
    )


@store.kept
def run(
    image: Image,
    job: Job,
    out: Path,
    *,
    snapshot: Snapshot | None = None,
    setup: Setup | None = None,
    wall_deadline_s: float = 1800.0,
    progress: Progress = lambda line: None,
    memory_mb: int = MEMORY_MB,
    stop: Stop | None = None,
) -> Result:
    """Run `job` in a fork of `snapshot`, or cold: boot, `setup`, job. Its files are unpacked into `out` (made
    if absent).

    The console is kept as `out`/console.log. An exception in the entry is exit code 5 with its traceback on
    the console. May be called from several threads at once: each waits for a core of its own. The deadline
    begins when the core is there. Raises LostError, which says how long was waited, when there is no complete
    result: panic, out of memory, deadline, or `stop` ended it; the console is kept then too.
    """
    if snapshot and setup:
        raise UsageError("a run has a snapshot or a setup, not both")
    encoded = encode_job(job)
    stop, console, asked = stop or Stop(), out / "console.log", time.monotonic()

    def waiting(line: str) -> None:
        _keep(image, snapshot)  # every 30 s
        progress(line)

    with core(waiting, stop.event) as number, scratch.folder() as folder:
        started = time.monotonic()
        _keep(image, snapshot)
        out.mkdir(parents=True, exist_ok=True)
        files = Files(Path(folder))
        files.setup.write_bytes(encode_setup(snapshot.setup if snapshot else setup or Setup()))
        files.job.write_bytes(encoded)
        memory = snapshots.private_memory(snapshot) if snapshot else snapshots.own_memory(memory_mb)
        if snapshot:
            snapshots.copy_state(snapshot, files)
        argv = qemu_argv(image, files, memory, stopping=False, state=snapshot is not None)
        try:
            with machine(argv, files, number, stop) as guest:
                trailer = _follow(guest, snapshot, out, wall_deadline_s, progress)
        except LostError as error:
            error.waited_s = started - asked
            raise
        finally:
            if files.console.exists():
                shutil.copyfile(files.console, console)
        wall_s = time.monotonic() - started
    sha256 = dict(image.sha256) | {"job": hashlib.sha256(encoded).hexdigest(), "result": trailer.sha256}
    if snapshot:
        sha256["snapshot"] = snapshot.sha256
    virtual_s, waited_s = trailer.virtual_ns / 1e9, started - asked
    return Result(trailer.exit_code, virtual_s, wall_s, waited_s, console, sha256, argv, image.qemu_version)


def _follow(
    guest: Machine, snapshot: Snapshot | None, out: Path, wall_deadline_s: float, progress: Progress
) -> Trailer:
    """Let the machine run to its end; its files are in ``out`` then."""
    if snapshot:
        snapshots.restore(guest, snapshot)
    guest.wait_ended(wall_deadline_s, progress)
    trailer = unpack(guest.files.result, out)
    if trailer is None:
        raise guest.lost("the guest ended without a result")
    return trailer


def _keep(image: Image, snapshot: Snapshot | None) -> None:
    """Keep what a run starts from in the cache, whatever else is pruned."""
    for path in (image.initrd.parent, *([snapshot.path] if snapshot else [])):
        cache.used(path)


def check() -> str:
    """Why the guest does not work on this machine, in a sentence; empty when it boots and runs a job (15 s).
    Builds no toolbox."""
    if toolbox.found() is None:
        return "the guest is not built yet"
    try:
        with scratch.folder() as folder:
            result = run(prepare(), Job(script="print('hello')"), Path(folder), wall_deadline_s=300)
            stdout = Path(folder, "stdout").read_text()
    except QJumpError as error:
        return str(error)
    return (
        ""
        if result.exit_code == 0 and stdout == "hello\n"
        else f"a job in the guest ended with exit code {result.exit_code}"
    )


def _described(tree: toolbox.Tree, kernel: toolbox.Tree, initrd: Path) -> Image:
    qemu = "usr/bin/qemu-system-x86_64"
    version = subprocess.run(
        tree.program(qemu, "--version"), capture_output=True, text=True, check=True
    ).stdout
    sha256 = {"qemu": tree.root / qemu, "kernel": kernel.kernel, "initrd": initrd}
    return Image(
        tree=tree.root,
        kernel=kernel.kernel,
        initrd=initrd,
        sha256={name: cache.hash_of_file(path) for name, path in sha256.items()},
        qemu_version=version.splitlines()[0].removeprefix("QEMU emulator version "),
        packages=[f"{package.name}={package.version}" for package in tree.packages],
        packages_sha256=tree.packages_sha256,
        differences=toolbox.differences(tree),
    )
