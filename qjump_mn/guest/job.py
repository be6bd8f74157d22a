"""The setup, job, image and result of a guest as plain data, and how they are encoded.

The same data always has the same encoding.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.process.processes import Used

Progress = Callable[[str], None]
"""Called with one short line, without a newline, from the thread that runs the job."""

Tick = Callable[[float], None]
"""Called with a job's seconds on the guest's clock, from the thread that runs the job."""


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What runs before the job.

    `entry` names a function, `module:function`, that takes `args` (a dict) and returns any object,
    the context. It runs in the agent's process, as root. Without an entry, nothing is set up and
    the context is None.
    """

    entry: str | None = None
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    virtual_deadline_s: float = 300.0


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job: an entry point or a script, a seed, and a deadline in seconds of the guest's clock.

    `entry` names a function, `module:function`, called as `function(context, args, outdir)`:
    `context` is what the setup returned, `args` the dict below, and `outdir` an empty folder whose
    files become the result. It returns the exit code (None is 0).

    `script` is Python source instead. It runs as a program of its own in `outdir`, which keeps its
    output as `stdout` and `stderr`. `files` are texts, by name, in the script's folder, which it
    can import.

    A line on the console (an entry's standard output, /dev/console) that starts with "qjump-mn: "
    reaches the host's progress callback. With `tick_s`, the agent prints the job's time at this
    interval, in seconds of the guest's clock.
    """

    entry: str | None = None
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    script: str | None = None
    files: dict[str, str] = msgspec.field(default_factory=dict)
    seed: int = 0
    virtual_deadline_s: float = 600.0
    tick_s: float = 0.0


class Image(msgspec.Struct, frozen=True):
    """A kernel and an initramfs.

    `sha256` has the keys `kernel` and `initrd`. `packages` lists all packages in the initramfs, as
    `name=version`; `packages_sha256` also covers those that compile the kernel. `differences` has
    a sentence for each difference from the locked reference machine. `identity` identifies the
    image in manifests. `release` is the kernel's version, such as 7.3.4. `outer` is the folder of
    the machine around guests, for a host that cannot run them directly (outer.py); it does not
    change results.
    """

    kernel: Path
    initrd: Path
    sha256: dict[str, str]
    packages: list[str]
    packages_sha256: str
    differences: list[str]
    identity: str
    release: str
    outer: Path | None = None


class Result(msgspec.Struct, frozen=True):
    """The outcome of a job.

    `exit_code` is the job's. `virtual_s` is the job's duration on the guest's clock. `wall_s` is
    the whole run's duration on the host's, without `waited_s`, the wait for a core before it.
    `console` is the file with the console's text. `sha256` has the keys kernel, initrd, setup, job
    and result (the tar stream from the guest). `used` is the host's processor time and memory.
    """

    exit_code: int
    virtual_s: float
    wall_s: float
    waited_s: float
    console: Path
    sha256: dict[str, str]
    used: Used | None = None


def encode_setup(setup: Setup) -> bytes:
    """Encode a setup for the agent."""
    return _encode(setup)


def encode_job(job: Job) -> bytes:
    """Encode a job for the agent; raise UsageError if it makes no sense."""
    if (job.entry is None) == (job.script is None):
        raise UsageError("a guest job needs either an entry or a script, and not both")
    if not job.virtual_deadline_s > 0:
        raise UsageError(
            f"a guest job needs a virtual deadline above 0 s (got {job.virtual_deadline_s} s)"
        )
    return _encode(job)


def sha256_of(setup: Setup, job: Job) -> str:
    """Return the SHA-256 of a setup and a job, as the agent writes it into agent.json."""
    return hashlib.sha256(_json(setup) + _json(job)).hexdigest()


def _json(message: Setup | Job) -> bytes:
    return msgspec.json.encode(message, order="sorted")


def _encode(message: Setup | Job) -> bytes:
    """Return compressed JSON, preceded by its length in four bytes."""
    packed = zlib.compress(_json(message), 9)
    return len(packed).to_bytes(4, "big") + packed
