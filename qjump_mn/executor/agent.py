"""The guest's process 1: run the setup and the job, and hand the result to the host.

It is a program of its own and imports nothing of the package, so that it starts fast and can be
read alone. Files of the host are devices in the guest: the agent reads setup and job from
/dev/host-in, and writes one tar stream and a trailer to /dev/host-out. The host's side is
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
_FAILED = 5  # the exit code of an entry point that raised an exception

# include/uapi/linux/random.h, prctl.h and reboot.h
_RNDADDENTROPY = 0x40085203
_RNDRESEEDCRNG = 0x5207
_PR_SET_TIMERSLACK = 29
_POWER_OFF = 0x4321FEDC
_LIBC = ctypes.CDLL(None)


def main() -> NoReturn:
    """Start the agent proper, reap all processes, and power off when the agent has ended."""
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
    # By default timers may end 50 us late, which is 40 frames at 10 Gb/s. Children inherit this.
    _LIBC.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    _seed(b"setup")
    with open(_IN, "rb") as stream:
        texts = _read(stream), _read(stream)
    setup, job = map(json.loads, texts)
    context: Any = None
    if setup["entry"]:
        with _deadline(setup["virtual_deadline_s"], "setup"):
            context = _import(setup["entry"])(setup["args"])
    _seed(str(job["seed"]).encode())
    out = Path("/tmp/out")
    out.mkdir()
    started = time.monotonic_ns()
    with _deadline(job["virtual_deadline_s"], "job", job["tick_s"]):
        code = _run(job, context, out)
    job_sha256 = hashlib.sha256(b"".join(texts)).hexdigest()
    _hand_out(out, code, time.monotonic_ns() - started, started, job_sha256)
    _power_off()


def _run(job: dict[str, Any], context: Any, out: Path) -> int:
    os.chdir(out)
    if job["script"] is not None:
        folder = Path("/tmp/job")
        folder.mkdir()
        for name, text in {**job["files"], "job.py": job["script"]}.items():
            (folder / name).write_text(text)
        argv = [sys.executable, str(folder / "job.py")]
        with open("stdout", "wb") as stdout, open("stderr", "wb") as stderr:
            code = subprocess.call(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
        return 128 - code if code < 0 else code
    try:
        return int(_import(job["entry"])(context, job["args"], out) or 0)
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        return _FAILED


def _import(entry: str) -> Callable[..., Any]:
    """Import a function by its name, ``module:function``."""
    module, _, name = entry.partition(":")
    return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]


def _read(stream: IO[bytes]) -> bytes:
    """Read the next message, JSON that qjump_mn/guest/job.py encodes."""
    size = int.from_bytes(stream.read(4), "big")
    return zlib.decompress(stream.read(size))


def _seed(seed: bytes) -> None:
    """Seed getrandom() and `random`: they then depend on the seed and the machine's state only.

    The machine's state is the same in each run.
    """
    entropy = hashlib.sha512(b"qjump-mn " + seed).digest()
    with open("/dev/urandom", "wb", buffering=0) as pool:
        fcntl.ioctl(
            pool, _RNDADDENTROPY, struct.pack("ii", 8 * len(entropy), len(entropy)) + entropy
        )
        fcntl.ioctl(pool, _RNDRESEEDCRNG)
    random.seed(entropy)


@contextlib.contextmanager
def _deadline(seconds: float, phase: str, tick_s: float = 0.0) -> Iterator[None]:
    """Power off, with a line on the console, if the block overruns ``seconds`` of virtual time.

    Every ``tick_s`` a line says how long the block has taken. A process of its own does this,
    because the block may hold the interpreter in a call, and may use signals and alarms itself.
    """
    watchdog = os.fork()
    if watchdog == 0:
        os.setsid()
        began, ticks = time.monotonic(), 0
        while tick_s and (ticks + 1) * tick_s < seconds:
            ticks += 1
            time.sleep(max(0.0, began + ticks * tick_s - time.monotonic()))
            print(f"{_CLOCK}{ticks * tick_s:.9g}", flush=True)
        time.sleep(max(0.0, began + seconds - time.monotonic()))
        print(f"agent: the {phase} overran its virtual deadline of {seconds:g} s", flush=True)
        _power_off()
    try:
        yield
    finally:
        os.kill(watchdog, signal.SIGKILL)
        os.waitpid(watchdog, 0)


class _HashingWriter(io.RawIOBase):
    """Writes to the host, and counts and hashes the bytes."""

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


def _hand_out(out: Path, code: int, virtual_ns: int, started_ns: int, job_sha256: str) -> None:
    """Write the tar stream, then the trailer; without a trailer the host reports a lost run.

    The stream's agent.json has the SHA-256 of what this guest was told to do, and of each file.
    """
    files = {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
    receipt = json.dumps({"job": job_sha256, "files": files}, indent=1)
    (out / "agent.json").write_text(f"{receipt}\n")
    output = _HashingWriter()
    with io.BufferedWriter(output, 1 << 20) as buffered:
        with tarfile.open(fileobj=buffered, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for path in sorted(out.rglob("*")):
                archive.add(path, str(path.relative_to(out)), recursive=False)
        buffered.flush()
        trailer = {
            "bytes": output.bytes, "sha256": output.digest.hexdigest(), "exit_code": code,
            "virtual_ns": virtual_ns, "started_ns": started_ns,
        }  # fmt: skip
        os.write(output.descriptor, json.dumps(trailer).encode().ljust(_TRAILER_BYTES))


def _power_off() -> NoReturn:
    sys.stdout.flush()
    _LIBC.reboot(_POWER_OFF)
    os._exit(1)


if __name__ == "__main__":
    main()
