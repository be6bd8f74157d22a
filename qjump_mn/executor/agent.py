"""The agent: runs in the guest as process 1, brings up the setup, does the job, hands the result out.

A program of its own: it imports nothing of the package, so that it starts fast and can be read alone. What
comes in and what goes out are files of the host's, which the guest's kernel has as devices: setup and job
are read from /dev/host-in, one tar stream and a trailer are written to /dev/host-out. The host's side is
qjump_mn/guest/.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import importlib
import io
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tarfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

_IN, _OUT = "/dev/host-in", "/dev/host-out"
_CLOCK = "qjump-mn-clock: "
_TRAILER_BYTES = 512
_FAILED = 5  # the exit code of an entry that raised

# include/uapi/linux/random.h, prctl.h and reboot.h
_RNDADDENTROPY = 0x40085203
_RNDRESEEDCRNG = 0x5207
_PR_SET_TIMERSLACK = 29
_POWER_OFF = 0x4321FEDC
_LIBC = ctypes.CDLL(None)


def main() -> NoReturn:
    """Process 1: start the agent proper, reap whatever dies, and switch off when the agent has ended."""
    agent = os.fork()
    if agent == 0:
        _agent()
    while True:
        pid, status = os.wait()
        if pid == agent:
            print(f"agent: ended with status {os.waitstatus_to_exitcode(status)}", flush=True)
            _power_off()


def _agent() -> NoReturn:
    os.setsid()
    # Else timers may end 50 us late, which is 40 frames at 10 Gb/s; what is started inherits it.
    _LIBC.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    _seed(b"setup")
    with open(_IN, "rb") as into:
        setup, job = _read(into), _read(into)
    context: Any = None
    if setup["entry"]:
        with _deadline(setup["virtual_deadline_s"], "setup"):
            context = _function(setup["entry"])(setup["args"])
    _seed(str(job["seed"]).encode())
    out = Path("/tmp/out")
    out.mkdir()
    started = time.monotonic_ns()
    with _deadline(job["virtual_deadline_s"], "job", job["tick_s"]):
        code = _run(job, context, out)
    _hand_out(out, code, time.monotonic_ns() - started, started)
    _power_off()


def _run(job: dict[str, Any], context: Any, out: Path) -> int:
    os.chdir(out)
    if job["script"] is not None:
        home = Path("/tmp/job")
        home.mkdir()
        for name, text in {**job["files"], "job.py": job["script"]}.items():
            (home / name).write_text(text)
        with open("stdout", "wb") as stdout, open("stderr", "wb") as stderr:
            code = subprocess.call(
                [sys.executable, str(home / "job.py")], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
            )
        return 128 - code if code < 0 else code
    try:
        return int(_function(job["entry"])(context, job["args"], out) or 0)
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        return _FAILED


def _function(entry: str) -> Callable[..., Any]:
    module, _, name = entry.partition(":")
    return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]


def _read(into: IO[bytes]) -> dict[str, Any]:
    """What comes next, of job.py's encoding."""
    size = int.from_bytes(into.read(4), "big")
    fields: dict[str, Any] = json.loads(zlib.decompress(into.read(size)))
    return fields


def _seed(seed: bytes) -> None:
    """Make what getrandom() and `random` give a function of the seed, and of the machine's state, which is
    the same in each run."""
    entropy = hashlib.sha512(b"qjump-mn " + seed).digest()
    with open("/dev/urandom", "wb", buffering=0) as pool:
        fcntl.ioctl(pool, _RNDADDENTROPY, struct.pack("ii", 8 * len(entropy), len(entropy)) + entropy)
        fcntl.ioctl(pool, _RNDRESEEDCRNG)
    random.seed(entropy)


@contextlib.contextmanager
def _deadline(seconds: float, what: str, tick_s: float = 0.0) -> Iterator[None]:
    """Switch the machine off, with a line on the console, when the block takes longer in virtual time; say
    every ``tick_s`` of it how long it has taken.

    By a process of its own, because the block may hold the interpreter in a call, and may use signals and
    alarms itself.
    """
    watch = os.fork()
    if watch == 0:
        os.setsid()
        began, ticks = time.monotonic(), 0
        while tick_s and (ticks + 1) * tick_s < seconds:
            ticks += 1
            time.sleep(max(0.0, began + ticks * tick_s - time.monotonic()))
            print(f"{_CLOCK}{ticks * tick_s:.9g}", flush=True)
        time.sleep(max(0.0, began + seconds - time.monotonic()))
        print(f"agent: the {what} overran its virtual deadline of {seconds:g} s", flush=True)
        _power_off()
    try:
        yield
    finally:
        os.kill(watch, signal.SIGKILL)
        os.waitpid(watch, 0)


class _Counted(io.RawIOBase):
    """What goes out: counts and hashes it."""

    def __init__(self) -> None:
        self.descriptor = os.open(_OUT, os.O_WRONLY)
        self.digest = hashlib.sha256()
        self.bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        written = os.write(self.descriptor, data)
        self.digest.update(data[:written])
        self.bytes += written
        return written


def _hand_out(out: Path, code: int, virtual_ns: int, started_ns: int) -> None:
    """Write the tar stream and, last, the trailer: without a trailer the host takes the run for lost."""
    port = _Counted()
    with io.BufferedWriter(port, 1 << 20) as buffered:
        with tarfile.open(fileobj=buffered, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for path in sorted(out.rglob("*")):
                archive.add(path, str(path.relative_to(out)), recursive=False)
        buffered.flush()
        trailer = {
            "bytes": port.bytes, "sha256": port.digest.hexdigest(), "exit_code": code,
            "virtual_ns": virtual_ns, "started_ns": started_ns,
        }  # fmt: skip
        os.write(port.descriptor, json.dumps(trailer).encode().ljust(_TRAILER_BYTES))


def _power_off() -> NoReturn:
    sys.stdout.flush()
    _LIBC.reboot(_POWER_OFF)
    os._exit(1)


if __name__ == "__main__":
    main()
