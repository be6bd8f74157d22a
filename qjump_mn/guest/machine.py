"""QEMU with the virtual clock: one instruction is one nanosecond, idle time is skipped, nothing of the host
gets in."""

from __future__ import annotations

import contextlib
import datetime
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from qjump_mn.errors import LostError, MachineError
from qjump_mn.guest.cores import StoppedError
from qjump_mn.guest.job import Clock, Image, Progress
from qjump_mn.guest.qmp import Qmp
from qjump_mn.leash import leashed
from qjump_mn.processes import Used, is_alive, tag, wait
from qjump_mn.toolbox.machine_file import QEMU
from qjump_mn.toolbox.tree import Tree

TAG = "QJUMP_MN_RUN"
"""The environment variable by which our QEMUs are known: the harness's tag, see processes.py."""

_BEGAN = datetime.datetime(2026, 1, 1)
"""What a machine's clock says when it starts."""
_CLOCK_S = 1.0
_PROGRESS_MARK = "qjump-mn: "
_TAIL_LINES = 15
_STATE = "driver=qcow2,node-name=state,file.driver=file"

_COMMAND_LINE = (
    "console=ttyS0 quiet panic=-1 oops=panic rdinit=/init"
    # No instruction or address may depend on chance: no random layout, no seed from CPU or loader.
    " nokaslr norandmaps randomize_kstack_offset=off random.trust_cpu=off random.trust_bootloader=off"
    # The clock is exact: it needs no watchdog and no calibration against another one.
    " tsc=reliable nowatchdog"
    # Work that this machine has no use for: boot takes 12.3 s instead of 14. No mitigations: there is nobody
    # to protect from.
    " mitigations=off audit=0 apparmor=0 cryptomgr.notests init_on_alloc=0"
)


@dataclass(frozen=True)
class Files:
    """The files of one QEMU in a folder of its own: what goes in, what comes out."""

    folder: Path

    @property
    def setup(self) -> Path:
        """The setup's bytes, see job.py."""
        return self.folder / "setup"

    @property
    def job(self) -> Path:
        """The job's bytes, see job.py."""
        return self.folder / "job"

    @property
    def console(self) -> Path:
        """What the guest printed."""
        return self.folder / "console"

    @property
    def result(self) -> Path:
        """The result's stream, see result.py."""
        return self.folder / "result"

    @property
    def state(self) -> Path:
        """Device state: a qcow2 file that holds a snapshot of everything but memory."""
        return self.folder / "state"


def qemu_argv(image: Image, files: Files, memory: str, *, stopping: bool, state: bool) -> list[str]:
    """QEMU's command line. `memory` is the backend object; `stopping`: the stopping point stops; `state`:
    there is a state file."""
    root = image.tree
    return [
        *Tree(root).program(QEMU),
        "-L", str(root / "usr/share/seabios"), "-L", str(root / "usr/share/qemu"),
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        # A fixed version of the machine, without the devices that nothing uses: less to probe, less to save.
        "-machine", "pc-q35-10.0,hpet=off,smbus=off,sata=off,usb=off,memory-backend=ram",
        "-object", memory, "-m", f"{_size_mb(memory)}M",
        "-cpu", "max,-rdrand,-rdseed",
        # rr=record makes main loop and vCPU alternate. Without it they race for the clock when the guest goes
        # idle, and two runs differ by microseconds (QEMU 7.2 to 10.0). `-smp 2` hangs with icount.
        "-accel", "tcg", "-smp", "1", "-icount", "shift=0,sleep=off,rr=record,rrfile=/dev/null",
        "-rtc", f"base={_BEGAN:%Y-%m-%dT%H:%M:%S},clock=vm",
        "-seed", "1",  # should QEMU ever hand out a random number, then the same one
        "-device", "ib700", "-action", f"watchdog={'pause' if stopping else 'none'}",
        "-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", _COMMAND_LINE,
        "-serial", f"file:{files.console}",
        # The result leaves by virtio: 2 MB in 0.1 s. By a second serial port it would take 11 s, by
        # isa-debugcon a minute.
        "-device", "virtio-serial-pci,max_ports=2", "-chardev", f"file,id=result,path={files.result}",
        "-device", "virtserialport,chardev=result,name=result",
        "-fw_cfg", f"name=opt/qjump-mn/setup,file={files.setup}",
        "-fw_cfg", f"name=opt/qjump-mn/job,file={files.job}",
        *(["-blockdev", f"{_STATE},file.filename={files.state}", "-S"] if state else []),
    ]  # fmt: skip


class Machine:
    """A running QEMU. Made by `machine`, which also ends it."""

    def __init__(self, process: subprocess.Popen[bytes], qmp: Qmp, files: Files) -> None:
        self.qmp = qmp
        self.files = files
        self.used: Used | None = None
        self._process = process
        self._seen = 0
        self._partial = ""

    def wait_stopped(self, wall_deadline_s: float, progress: Progress) -> None:
        """Wait for the stopping point. Raises LostError when the guest ends or the deadline passes before."""
        until = time.monotonic() + wall_deadline_s
        while self._process.poll() is None:
            self._follow(progress)
            with contextlib.suppress(LostError):  # it ended in between: the next turn sees it
                if self.qmp.status() == "watchdog":
                    return
            self._check(until, wall_deadline_s)
            time.sleep(0.05)
        raise self.lost("the guest ended before its stopping point")

    def wait_ended(self, wall_deadline_s: float, progress: Progress, clock: Clock | None = None) -> None:
        """Wait until QEMU has ended, however it did. Raises LostError when the deadline passes before."""
        until, next_s = time.monotonic() + wall_deadline_s, 0.0
        while self.qmp.drain():
            if clock and time.monotonic() >= next_s:
                with contextlib.suppress(LostError):  # it ended in between: the next turn sees it
                    clock(self._clock_s())
                next_s = time.monotonic() + _CLOCK_S
            select.select([self.qmp.socket], [], [], 0.1)
            self._follow(progress)
            self._check(until, wall_deadline_s)
        self.used = wait(self._process, 60)
        self._follow(progress)

    def lost(self, what: str) -> LostError:
        """The error for a guest that did not get through: `what`, or the reason the console gives, and its
        last lines."""
        text = self._console()
        lines = [line for line in text.splitlines() if line.strip()]
        for sign, reason in (
            ("Kernel panic", "the guest's kernel panicked"),
            ("panic_on_oom", "the guest ran out of memory"),
            ("overran its virtual deadline", "the guest overran its deadline in virtual time"),
        ):
            if any(sign in line for line in lines):
                what = reason
        with contextlib.suppress(OSError):
            lines += (self.files.folder / "stderr").read_text(errors="replace").splitlines()
        tail = "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])
        return LostError(f"{what}; the end of its console:\n{tail}")

    def _clock_s(self) -> float:
        """What the machine's real-time clock says, which runs with its virtual one and whose reading changes
        nothing in it."""
        now = self.qmp.command("qom-get", path="/machine", property="rtc-time")
        fields = ("tm_mon", "tm_mday", "tm_hour", "tm_min", "tm_sec")
        month, *rest = (now[field] for field in fields)
        then = datetime.datetime(1900 + now["tm_year"], month + 1, *rest)
        return (then - _BEGAN).total_seconds()

    def _check(self, until: float, wall_deadline_s: float) -> None:
        if time.monotonic() > until:
            raise self.lost(f"the guest overran its deadline of {wall_deadline_s:g} s")

    def _console(self) -> str:
        try:
            return self.files.console.read_text(errors="replace").replace("\r", "")
        except OSError:
            return ""

    def _follow(self, progress: Progress) -> None:
        with contextlib.suppress(OSError), self.files.console.open("rb") as console:
            console.seek(self._seen)
            data = console.read()
            self._seen += len(data)
            *lines, self._partial = (self._partial + data.decode(errors="replace")).split("\n")
            for line in lines:
                if line.startswith(_PROGRESS_MARK):
                    progress(line.removeprefix(_PROGRESS_MARK).strip())


class Stop:
    """Ends all QEMUs that were started under it, now and for good; used from several threads."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    def now(self) -> None:
        """Kill what runs: whoever waits for it gets a LostError. A later start raises StoppedError."""
        with self._lock:  # so that none is between its start and its entry
            self.event.set()
            for process in self._running:
                process.kill()

    @contextlib.contextmanager
    def running(self, start: Callable[[], subprocess.Popen[bytes]]) -> Iterator[subprocess.Popen[bytes]]:
        """The process that ``start`` starts, killed with the block."""
        with self._lock:
            if self.event.is_set():
                raise StoppedError("it was ended before its guest had started")
            process = start()
            self._running.add(process)
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            with self._lock:
                self._running.discard(process)


@contextlib.contextmanager
def machine(argv: list[str], files: Files, core: int | None, stop: Stop) -> Iterator[Machine]:
    """Start QEMU on the core that the caller has, or on all, and end it with the block, in whatever way
    that is left.

    It dies with the calling thread too (see leash.py). Raises MachineError when it does not start, and
    StoppedError when it must not.
    """
    our_end, qemu_end = socket.socketpair()

    def start() -> subprocess.Popen[bytes]:
        with qemu_end, (files.folder / "stderr").open("wb") as stderr:
            monitor = [
                "-chardev",
                f"socket,id=qmp,fd={qemu_end.fileno()}",
                "-mon",
                "chardev=qmp,mode=control",
            ]
            return subprocess.Popen(
                leashed([*argv, *monitor], core),
                # Not the host's modules, locale or sound; a session of its own, so that Ctrl-C reaches the
                # harness alone.
                env={"LC_ALL": "C", "QEMU_MODULE_DIR": "/nonexistent", TAG: tag(os.getpid())},
                stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, pass_fds=[qemu_end.fileno()],
                start_new_session=True,
            )  # fmt: skip

    with our_end, qemu_end, stop.running(start) as process:
        try:
            qmp = Qmp(our_end)
        except LostError as error:
            process.kill()
            last_words = (files.folder / "stderr").read_text(errors="replace").strip()
            raise MachineError(f"QEMU does not start: {last_words or error}") from error
        yield Machine(process, qmp, files)


def orphans() -> list[int]:
    """The pids of our QEMUs whose harness is gone, as far as we may see them."""
    return [pid for pid, harness in _tagged() if not is_alive(harness)]


def end_orphans() -> list[int]:
    """End every orphan at once; returns their pids."""
    pids = orphans()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def _tagged() -> Iterator[tuple[int, str]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for variable in (folder / "environ").read_bytes().split(b"\0"):
                name, _, harness = variable.decode(errors="replace").partition("=")
                if name == TAG:
                    yield int(folder.name), harness


def _size_mb(memory: str) -> int:
    return int(memory.partition("size=")[2].partition("M")[0])
