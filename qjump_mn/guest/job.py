"""What is to be done in the guest, and what came of it: plain data, strict, encoded the same way every
time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.processes import Used

Progress = Callable[[str], None]
"""Called with one short line, without a newline; may be called from the thread that called us only."""

Clock = Callable[[float], None]
"""Called every second or so with the seconds that the machine's clock has run, to whole seconds; may be
called from the thread that called us only."""

JOB_BYTES = 65536
"""Every job is padded to this, so that all forks of a snapshot and a cold run start alike; only its own bytes
are read, 20 kB in 4 virtual ms. Data belong into the image (`prepare(extra=…)`), not into the job."""


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is brought up before the stopping point and shared by every fork.

    `entry` names a function `module:function` taking `args` (a dict) and returning any object, the context;
    None means that nothing is set up and the context is None. It runs in the agent's process, as root.
    """

    entry: str | None = None
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    virtual_deadline_s: float = 300.0


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one fork, or one cold run, does: an entry point or a script, a seed and a deadline in virtual
    seconds.

    `entry` names a function `module:function` called as `function(context, args, outdir)`: `context` is what
    the setup returned, `args` the dict below, `outdir` an empty folder whose files become the result. It
    returns the exit code (None is 0). `script` is Python source instead, run as a program of its own in
    `outdir` (its output is kept there as `stdout` and `stderr`), and `files` are texts, by name, that it
    finds beside it and can import. A line on the console (an entry's standard output, /dev/console) that
    starts with "qjump-mn: " reaches the host's progress callback.
    """

    entry: str | None = None
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    script: str | None = None
    files: dict[str, str] = msgspec.field(default_factory=dict)
    seed: int = 0
    virtual_deadline_s: float = 600.0


class Image(msgspec.Struct, frozen=True):
    """Kernel, initramfs and the tree that QEMU runs from.

    `sha256` has the keys `qemu`, `kernel` and `initrd`; `packages` is the complete list `name=version` of the
    tree, and `differences` says in one sentence each how it differs from the locked reference (empty: it is
    the reference). `identity` is what runs are compared by: the same for every host's QEMU of the same
    version, with the same kernel and initramfs. `release` is the kernel's, such as 6.12.107+deb13-amd64.
    """

    tree: Path
    kernel: Path
    initrd: Path
    sha256: dict[str, str]
    qemu_version: str
    packages: list[str]
    packages_sha256: str
    differences: list[str]
    identity: str
    release: str = ""


class Snapshot(msgspec.Struct, frozen=True):
    """A machine stopped after its setup: `path` is a folder of the cache.

    `sha256` is that of its memory, the same wherever the same image was brought up by the same QEMU;
    `reproducible` is false when the machine was not idle at the stopping point and that may not hold.
    `wall_s` is what bringing it up took.
    """

    path: Path
    image: Image
    setup: Setup
    memory_mb: int
    sha256: str
    reproducible: bool
    wall_s: float


class Result(msgspec.Struct, frozen=True):
    """What a run left.

    `exit_code` is the job's own; `virtual_s` and `wall_s` are the job's duration on the guest's clock and the
    whole run's on ours, without `waited_s`, the time before until there was a core. `console` is the
    console's full text. `sha256` has the keys qemu, kernel, initrd, snapshot (absent when cold), job and
    result (the stream of files as it left the guest); `argv` is QEMU's command line, and `used` the host's
    processor and memory.
    """

    exit_code: int
    virtual_s: float
    wall_s: float
    waited_s: float
    console: Path
    sha256: dict[str, str]
    argv: list[str]
    qemu_version: str
    used: Used | None = None


def encode_setup(setup: Setup) -> bytes:
    """The bytes that the agent reads as its setup."""
    return _encode(msgspec.to_builtins(setup))


def encode_job(job: Job) -> bytes:
    """The bytes that the agent reads as its job. Raises UsageError for a job with no entry and no script, or
    both."""
    if (job.entry is None) == (job.script is None):
        raise UsageError("a guest job has either an entry or a script")
    if not job.virtual_deadline_s > 0:
        raise UsageError(f"a guest job needs a virtual deadline above 0 s, not {job.virtual_deadline_s}")
    return _encode(msgspec.to_builtins(job))


def _encode(fields: Mapping[str, Any]) -> bytes:
    packed = zlib.compress(msgspec.json.encode(fields, order="sorted"), 9)
    framed = len(packed).to_bytes(4, "big") + packed
    if len(framed) > JOB_BYTES:
        raise UsageError(
            f"a guest job of {len(framed)} bytes is too long, {JOB_BYTES} fit: put its data into the image"
        )
    return framed.ljust(JOB_BYTES, b"\0")
