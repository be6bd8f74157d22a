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
import time
from pathlib import Path

from qjump_mn import cache, scratch
from qjump_mn.errors import LostError, UsageError
from qjump_mn.guest import snapshots, store
from qjump_mn.guest.cores import core
from qjump_mn.guest.images import prepare
from qjump_mn.guest.job import Clock, Image, Job, Progress, Result, Setup, Snapshot, encode_job, encode_setup
from qjump_mn.guest.machine import Files, Machine, Stop, end_orphans, machine, qemu_argv
from qjump_mn.guest.result import Trailer, unpack

__all__ = [
    "Image",
    "Job",
    "Progress",
    "Result",
    "Setup",
    "Snapshot",
    "Stop",
    "end_orphans",
    "prepare",
    "run",
    "snapshot",
]

MEMORY_MB = 1024


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
    clock: Clock | None = None,
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
        _keep(image, snapshot)  # whenever the line changes; a session holds them anyway (cache_holds.py)
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
                if snapshot:
                    snapshots.restore(guest, snapshot)
                guest.wait_ended(wall_deadline_s, progress, clock)
                trailer = _unpacked(guest, out)
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
    exit_code, version = trailer.exit_code, image.qemu_version
    return Result(exit_code, virtual_s, wall_s, waited_s, console, sha256, argv, version, guest.used)


def _unpacked(guest: Machine, out: Path) -> Trailer:
    """What an ended machine left; its files are in ``out`` then."""
    trailer = unpack(guest.files.result, out)
    if trailer is None:
        raise guest.lost("the guest ended without a result")
    return trailer


def _keep(image: Image, snapshot: Snapshot | None) -> None:
    """Keep what a run starts from in the cache, whatever else is pruned."""
    for path in (image.initrd.parent, *([snapshot.path] if snapshot else [])):
        cache.used(path)
