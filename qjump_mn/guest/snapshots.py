"""Bring a machine up once, keep it, and fork it.

Memory is a file that QEMU maps: shared while the machine is brought up, so that it *is* the snapshot when the
machine stops; private, copy on write, in every fork, so that a fork costs no copy and forks share what they
do not write. Everything else (300 KB) goes through QEMU's own snapshots into an empty qcow2 file that no
device uses.

Measured, 1 GB machine with 340 MB in use, ms: save 30, a fork runs after 70, and memory takes as much of the
disk as is in use. By `migrate` to a file, for comparison (without rr): raw 910 to save, 360 until two forks
at once are loaded; mapped-ram 1180 and 230; zstd -1 1200 and 1330, for 80 MB instead of 327. So nothing is
compressed.

The machine runs under rr=record from its first instruction, and stops when a watchdog expires while the guest
is idle: QEMU's main loop then warps the clock to the watchdog's timer and stops the machine in one go. When
the guest stops the machine itself, by a write to pvpanic's port, the main loop may warp the clock to the next
timer before it has stopped: a race that 1 of 6 builds decided otherwise than the rest, by 3 ms. So a snapshot
is reproducible: built anew, and beside a loaded host, it has the same memory bit for bit, and a run from boot
without any snapshot gives the same bits as a fork.

QEMU's `migrate` cannot be used with 10.0.13: under rr=record it fails an assertion (replay_mutex_locked), and
a machine saved without rr fails one (diff >= 0) when it goes on with rr.
"""

from __future__ import annotations

import functools
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from qjump_mn import cache, scratch
from qjump_mn.errors import LostError
from qjump_mn.guest import machine as machine_module
from qjump_mn.guest.cores import core
from qjump_mn.guest.job import JOB_BYTES, Image, Progress, Setup, Snapshot, encode_setup
from qjump_mn.guest.machine import Files, Machine, Stop, machine, qemu_argv

Start = Callable[[list[str], Files], AbstractContextManager[Machine]]
"""Starts a QEMU on the core that was taken for it."""

_KEPT = 6
_NAME = "ready"
_STATE_BYTES = 50 << 20


class _Facts(msgspec.Struct, frozen=True):
    """What is written beside a snapshot."""

    sha256: str
    reproducible: bool
    wall_s: float


def take(
    image: Image,
    setup: Setup,
    progress: Progress,
    *,
    memory_mb: int,
    wall_deadline_s: float,
    stop: Stop | None = None,
) -> Snapshot:
    """The machine after its setup, from the cache or brought up now. Raises LostError when it does not get
    there."""
    stop = stop or Stop()

    def build(folder: Path) -> None:
        with core(progress, stop.event) as number:
            progress("bringing the guest up for a snapshot")
            start = functools.partial(machine, core=number, stop=stop)
            _bring_up(image, setup, folder, progress, memory_mb, wall_deadline_s, start)

    code = [cache.hash_of_code(Path(str(name))) for name in (machine_module.__file__, __file__)]
    hashes = [image.sha256[name] for name in ("qemu", "kernel", "initrd")]
    key = cache.hash_of(*hashes, encode_setup(setup), str(memory_mb), *code)
    fresh = cache.find("snapshot", key) is None
    path = cache.artefact(
        "snapshot", key, build, needs_bytes=(memory_mb << 20) + _STATE_BYTES, progress=progress
    )
    if fresh:
        cache.prune("snapshot", _KEPT)
    facts = msgspec.json.decode((path / "facts.json").read_bytes(), type=_Facts)
    return Snapshot(path, image, setup, memory_mb, facts.sha256, facts.reproducible, facts.wall_s)


def private_memory(snapshot: Snapshot) -> str:
    """The memory of a fork: the snapshot's, copied on write."""
    return f"{_backend(snapshot.path, snapshot.memory_mb)},share=off,readonly=on,rom=off"


def own_memory(memory_mb: int) -> str:
    """The memory of a machine that boots by itself."""
    return f"memory-backend-ram,id=ram,size={memory_mb}M"


def restore(guest: Machine, snapshot: Snapshot) -> None:
    """Put the snapshot's device state into a machine that was started with its memory, and let it run."""
    _without_memory(guest)
    _finish(guest, "snapshot-load", {"tag": _NAME, "vmstate": "state", "devices": ["state"]})
    guest.qmp.command("cont")


def copy_state(snapshot: Snapshot, files: Files) -> None:
    """A copy of the device state for one fork: QEMU opens it for writing."""
    shutil.copyfile(snapshot.path / "state", files.state)


def _bring_up(
    image: Image,
    setup: Setup,
    folder: Path,
    progress: Progress,
    memory_mb: int,
    wall_deadline_s: float,
    start: Start,
) -> None:
    started = time.monotonic()
    memory = f"{_backend(folder, memory_mb)},share=on"
    with scratch.folder() as temporary:
        files = Files(Path(temporary))
        files.setup.write_bytes(encode_setup(setup))
        files.job.write_bytes(bytes(JOB_BYTES))
        _empty_state(image, files, start)
        argv = [one for one in qemu_argv(image, files, memory, stopping=True, state=True) if one != "-S"]
        with start(argv, files) as guest:
            guest.wait_stopped(wall_deadline_s, progress)
            idle = "HLT=1" in guest.qmp.command("human-monitor-command", **{"command-line": "info registers"})
            _without_memory(guest)
            _finish(guest, "snapshot-save", {"tag": _NAME, "vmstate": "state", "devices": ["state"]})
            guest.qmp.command("quit")
            guest.wait_ended(60, progress)
        shutil.copyfile(files.state, folder / "state")
        shutil.copyfile(files.console, folder / "console")
    if not idle:
        progress(
            "the guest was not idle at its stopping point: another machine's snapshot may differ from this "
            "one"
        )
    facts = _Facts(cache.hash_of_file(folder / "memory"), idle, time.monotonic() - started)
    (folder / "facts.json").write_bytes(msgspec.json.encode(facts))


def _backend(folder: Path, memory_mb: int) -> str:
    return f"memory-backend-file,id=ram,size={memory_mb}M,mem-path={folder / 'memory'}"


def _without_memory(guest: Machine) -> None:
    # Memory that is a named, shared file stays where it is. In a fork it is private, and the stream holds
    # none of it.
    guest.qmp.command(
        "migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": True}]
    )


def _finish(guest: Machine, name: str, arguments: dict[str, object]) -> None:
    """Run a QMP job to its end."""
    guest.qmp.command(name, **{"job-id": name, **arguments})
    until = time.monotonic() + 60
    while True:
        job = next(one for one in guest.qmp.command("query-jobs") if one["id"] == name)
        if job["status"] == "concluded":
            if "error" in job:
                raise LostError(f"QEMU's {name} failed: {job['error']}")
            guest.qmp.command("job-dismiss", id=name)
            return
        if time.monotonic() > until:
            raise LostError(f"QEMU's {name} did not end within 60 s")
        time.sleep(0.002)


def _empty_state(image: Image, files: Files, start: Start) -> None:
    """Make the empty qcow2 file, by a QEMU without a machine: qemu-img is a package of its own."""
    files.state.touch()
    everything = qemu_argv(image, files, own_memory(1), stopping=False, state=False)
    program = everything[: everything.index("-nodefaults")]
    program += ["-machine", "none", "-nodefaults", "-no-user-config", "-display", "none"]
    with start(program, files) as blank:
        blank.qmp.command(
            "blockdev-add", **{"driver": "file", "filename": str(files.state), "node-name": "file"}
        )
        _finish(blank, "blockdev-create", {"options": {"driver": "qcow2", "file": "file", "size": 0}})
        blank.qmp.command("quit")
        blank.wait_ended(60, lambda line: None)
