"""The agent: runs in the guest as process 1, brings up the setup, stops for the snapshot, does the job, hands
the result out.

A program of its own: it imports nothing of the package, so that it starts fast and can be read alone. What
comes in is read from fw_cfg, which is synchronous: no interrupt at an instant of the host's choosing disturbs
the guest. What goes out is one tar stream and a trailer through a virtio port backed by a file. The host's
side is machine.py.
"""

from __future__ import annotations

import contextlib
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
from typing import Any, NoReturn

_FW_CFG = Path("/sys/firmware/qemu_fw_cfg/by_name/opt/qjump-mn")
_RESULT_PORT = "/dev/vport0p1"
_TRAILER_BYTES = 512
# QEMU's hw/watchdog/wdt_ib700.c: 0x0F stands for 0 s, one less for 2 s more.
_WATCHDOG_PORT = 0x443
_WATCHDOG_2_S = b"\x0e"
_FAILED = 5  # the exit code of an entry that raised

# include/uapi/linux/random.h
_RNDADDENTROPY = 0x40085203
_RNDRESEEDCRNG = 0x5207


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
    _seed(b"setup")
    if not os.path.exists(_RESULT_PORT):  # Debian 12's kernel; in 13's the drivers are built in
        subprocess.run(["modprobe", "-a", "virtio_pci", "virtio_console"], check=True)
    setup = _read("setup")
    context: Any = None
    if setup["entry"]:
        with _deadline(setup["virtual_deadline_s"], "setup"):
            context = _function(setup["entry"])(setup["args"])
    print(f"agent: set up at {time.monotonic():.3f} s", flush=True)
    _forget_fw_cfg()
    _stop()
    job = _read("job")
    _seed(str(job["seed"]).encode())
    out = Path("/tmp/out")
    out.mkdir()
    started = time.monotonic_ns()
    with _deadline(job["virtual_deadline_s"], "job"):
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


def _read(name: str) -> dict[str, Any]:
    """A blob of job.py's encoding. Only what is filled is read: the driver fetches byte by byte, and starts
    over at every page."""
    if not _FW_CFG.exists():
        subprocess.run(["modprobe", "qemu_fw_cfg"], check=True)
    descriptor = os.open(_FW_CFG / name / "raw", os.O_RDONLY)
    try:
        size = int.from_bytes(os.pread(descriptor, 4, 0), "big")
        data = b""
        while len(data) < size:
            data += os.pread(descriptor, min(4096, size - len(data)), 4 + len(data))
    finally:
        os.close(descriptor)
    fields: dict[str, Any] = json.loads(zlib.decompress(data))
    return fields


def _forget_fw_cfg() -> None:
    # The driver reads the directory of blobs when it is loaded: a fork must see its own.
    subprocess.run(["rmmod", "qemu_fw_cfg"], check=True)


def _stop() -> None:
    """Have the whole machine stopped while it is idle, 2 virtual seconds from now, by a watchdog that
    expires.

    See snapshots.py for why not by an instruction of ours. In a fork the sleep goes on where it was; in a
    cold run the watchdog changes nothing, so that both are the same machine in the same state from here on.
    """
    time.sleep(0.24)  # Open vSwitch wakes up every half second after the last step: stop between two of these
    with open("/dev/port", "r+b", buffering=0) as port:
        port.seek(_WATCHDOG_PORT)
        port.write(_WATCHDOG_2_S)
    time.sleep(2.5)


def _seed(seed: bytes) -> None:
    """Make what getrandom() and `random` give a function of the seed, and of the machine's state, which is
    the same in all forks."""
    entropy = hashlib.sha512(b"qjump-mn " + seed).digest()
    with open("/dev/urandom", "wb", buffering=0) as pool:
        fcntl.ioctl(pool, _RNDADDENTROPY, struct.pack("ii", 8 * len(entropy), len(entropy)) + entropy)
        fcntl.ioctl(pool, _RNDRESEEDCRNG)
    random.seed(entropy)


@contextlib.contextmanager
def _deadline(seconds: float, what: str) -> Iterator[None]:
    """Switch the machine off, with a line on the console, when the block takes longer in virtual time.

    By a process of its own, because the block may hold the interpreter in a call, and may use signals and
    alarms itself.
    """
    watch = os.fork()
    if watch == 0:
        os.setsid()
        time.sleep(seconds)
        print(f"agent: the {what} overran its virtual deadline of {seconds:g} s", flush=True)
        _power_off()
    try:
        yield
    finally:
        os.kill(watch, signal.SIGKILL)
        os.waitpid(watch, 0)


class _Port(io.RawIOBase):
    """The result port: counts and hashes what goes through it."""

    def __init__(self) -> None:
        self.descriptor = os.open(_RESULT_PORT, os.O_WRONLY)
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
    port = _Port()
    # 32 KiB is what the kernel's driver takes at once.
    with io.BufferedWriter(port, 32768) as buffered:
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
    Path("/proc/sysrq-trigger").write_text("o")
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
