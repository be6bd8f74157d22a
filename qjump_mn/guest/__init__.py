"""The guest: a machine with its own clock, in which an entry point runs. It knows nothing of networks or experiments.

    image = prepare(print)
    base = snapshot(image, Setup(entry="package.module:bring_up", args={...}), print)
    result = run(image, Job(entry="package.module:measure", args={...}, seed=7), Path("out"), snapshot=base)

`run` without a snapshot boots, sets up and measures in one go ("cold").
"""

from __future__ import annotations

from pathlib import Path

from qjump_mn.guest.job import Image, Job, Progress, Result, Setup, Snapshot

__all__ = ["Image", "Job", "Progress", "Result", "Setup", "Snapshot", "prepare", "run", "snapshot"]

MEMORY_MB = 1024


def prepare(progress: Progress = lambda line: None) -> Image:
    """Build, or find in the cache, everything that a guest needs: tree, kernel modules, programs, initramfs.

    Building needs root, using what root built does not. Raises MachineError with what is missing.
    """
    raise NotImplementedError


def snapshot(image: Image, setup: Setup, progress: Progress = lambda line: None, *, memory_mb: int = MEMORY_MB) -> Snapshot:
    """The machine after `setup`, from the cache or brought up now. Needs no root.

    Raises LostError with the console's last lines when the setup fails, the guest dies or a deadline passes.
    """
    raise NotImplementedError


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
) -> Result:
    """Run `job` in a fork of `snapshot`, or cold: boot, `setup`, job. Its files are unpacked into `out` (made if absent).

    The console is kept as `out`/console.log. An exception in the entry is exit
    code 5 with its traceback on the console. May be called from several threads at once; the caller sees to it that there
    are never more runs than cores. Raises LostError when there is no complete result: panic, out of memory, deadline.
    """
    raise NotImplementedError
