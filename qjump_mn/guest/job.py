"""What is to be done in the guest, and what came of it: plain data, strict, encoded the same way every time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from qjump_mn.errors import UsageError

Progress = Callable[[str], None]
"""Called with one short line, without a newline; may be called from the thread that called us only."""

JOB_BYTES = 4096
"""A job is padded to a multiple of this: forks of one snapshot then start alike whatever they are to do. A longer job costs
time in every fork, for fw_cfg is read byte by byte (see agent.py): put data into the image, not into the job."""


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is brought up before the stopping point and shared by every fork.

    `entry` names a function `module:function` taking `args` (a dict) and returning any object, the context; None
    means that nothing is set up and the context is None. It runs in the agent's process, as root.
    """

    entry: str | None = None
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    virtual_deadline_s: float = 300.0


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one fork, or one cold run, does: an entry point or a script, a seed and a deadline in virtual seconds.

    `entry` names a function `module:function` called as `function(context, args, outdir)`: `context` is what the setup
    returned, `args` the dict below, `outdir` an empty folder whose files become the result. It returns the exit code (None
    is 0). `script` is Python source instead, run as a program of its own in `outdir` (its output is kept there as
    `stdout` and `stderr`). A line that starts with "qjump-mn: ", printed to standard output by an entry, reaches the
    host's progress callback.
    """

    entry: str | None = None
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    script: str | None = None
    seed: int = 0
    virtual_deadline_s: float = 600.0


class Image(msgspec.Struct, frozen=True):
    """Kernel, initramfs and the tree that QEMU runs from.

    `sha256` has the keys `qemu`, `kernel` and `initrd`; `packages` is the complete list `name=version` of the tree, and
    `differences` says in one sentence each how it differs from the locked reference (empty: it is the reference).
    """

    tree: Path
    kernel: Path
    initrd: Path
    sha256: dict[str, str]
    qemu_version: str
    packages: list[str]
    packages_sha256: str
    differences: list[str]


class Snapshot(msgspec.Struct, frozen=True):
    """A machine stopped after its setup: `path` is a folder of the cache; `sha256` covers memory and device state."""

    path: Path
    image: Image
    setup: Setup
    memory_mb: int
    sha256: str
    virtual_s: float
    wall_s: float


class Result(msgspec.Struct, frozen=True):
    """What a run left.

    `exit_code` is the job's own; `virtual_s` and `wall_s` are the job's duration on the guest's clock and the whole run's
    on ours. `console` is the console's full text. `sha256` has the keys qemu, kernel, initrd, snapshot (absent when cold),
    job and result (the stream of files as it left the guest); `argv` is QEMU's command line.
    """

    exit_code: int
    virtual_s: float
    wall_s: float
    console: Path
    sha256: dict[str, str]
    argv: list[str]
    qemu_version: str


def encode_setup(setup: Setup, *, cold: bool) -> bytes:
    """The bytes that the agent reads as its setup. `cold`: go on to the job at once, without the stopping point."""
    fields = {**msgspec.to_builtins(setup), "cold": cold}
    return _encode(fields)


def encode_job(job: Job) -> bytes:
    """The bytes that the agent reads as its job. Raises UsageError for a job with no entry and no script, or both."""
    if (job.entry is None) == (job.script is None):
        raise UsageError("a guest job has either an entry or a script")
    if not job.virtual_deadline_s > 0:
        raise UsageError(f"a guest job needs a virtual deadline above 0 s, not {job.virtual_deadline_s}")
    return _encode(msgspec.to_builtins(job))


def _encode(fields: Mapping[str, Any]) -> bytes:
    packed = zlib.compress(msgspec.json.encode(fields, order="sorted"), 9)
    framed = len(packed).to_bytes(4, "big") + packed
    return framed + bytes(-len(framed) % JOB_BYTES)
