"""What is to be done in the guest, and what came of it: plain data, strict, encoded the same way every
time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.process.processes import Used

Progress = Callable[[str], None]
"""Called with one short line, without a newline; may be called from the thread that called us only."""

Told = Callable[[float], None]
"""Called with the seconds that a job has taken on the guest's clock; may be called from the thread that
called us only."""


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is brought up before the job.

    `entry` names a function `module:function` taking `args` (a dict) and returning any object, the context;
    None means that nothing is set up and the context is None. It runs in the agent's process, as root.
    """

    entry: str | None = None
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    virtual_deadline_s: float = 300.0


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is done: an entry point or a script, a seed and a deadline in seconds of the guest's clock.

    `entry` names a function `module:function` called as `function(context, args, outdir)`: `context` is what
    the setup returned, `args` the dict below, `outdir` an empty folder whose files become the result. It
    returns the exit code (None is 0). `script` is Python source instead, run as a program of its own in
    `outdir` (its output is kept there as `stdout` and `stderr`), and `files` are texts, by name, that it
    finds beside it and can import. A line on the console (an entry's standard output, /dev/console) that
    starts with "qjump-mn: " reaches the host's progress callback. With ``tick_s`` the agent says on the
    console, each so many seconds of the guest's clock, how many the job has taken.
    """

    entry: str | None = None
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    script: str | None = None
    files: dict[str, str] = msgspec.field(default_factory=dict)
    seed: int = 0
    virtual_deadline_s: float = 600.0
    tick_s: float = 0.0


class Image(msgspec.Struct, frozen=True):
    """Kernel and initramfs.

    `sha256` has the keys `kernel` and `initrd`; `packages` is the complete list `name=version` of what the
    initramfs is made of, and `differences` says in one sentence each how it differs from the locked reference
    (empty: it is the reference). `packages_sha256` covers what the kernel is compiled by, too. `identity` is
    what runs are compared by. `release` is the kernel's, such as 7.3.4. `outer` is the folder of the machine
    that guests run in where the host cannot run them (outer.py), which moves no result.
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
    """What a run left.

    `exit_code` is the job's own; `virtual_s` and `wall_s` are the job's duration on the guest's clock and the
    whole run's on ours, without `waited_s`, the time before until there was a core. `console` is the
    console's full text. `sha256` has the keys kernel, initrd, setup, job and result (the stream of files as
    it left the guest), and `used` the host's processor and memory.
    """

    exit_code: int
    virtual_s: float
    wall_s: float
    waited_s: float
    console: Path
    sha256: dict[str, str]
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
    """Four bytes with the length, and so many of compressed JSON."""
    packed = zlib.compress(msgspec.json.encode(fields, order="sorted"), 9)
    return len(packed).to_bytes(4, "big") + packed
