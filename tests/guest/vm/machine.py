"""QEMU with the virtual clock: one instruction is one nanosecond, idle time is skipped, nothing of
the host gets in. Or, with several processors, on the host's clock: for races between them, never
for figures.

With `-icount` QEMU has one thread for all processors, and `-smp 2` hangs; with several each has a
thread.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from functools import partial
from pathlib import Path

from qjump_mn import toolbox
from qjump_mn.guest import Image, Job, Result, Setup, Stop
from qjump_mn.guest.cores import core
from qjump_mn.guest.instance import MEMORY_MB, lost, start
from qjump_mn.guest.job import encode_job, encode_setup
from qjump_mn.guest.result import unpack
from qjump_mn.process import temp_dirs
from qjump_mn.process.processes import wait

QEMU = "qemu"
"""The lock of the tree with QEMU."""

_COMMAND_LINE = (
    "console=ttyS0 quiet panic=-1 oops=panic rdinit=/init"
    # No instruction or address may depend on chance: no random layout, no seed from CPU or loader.
    " nokaslr norandmaps randomize_kstack_offset=off random.trust_cpu=off "
    "random.trust_bootloader=off"
    # The clock is exact: it needs no watchdog and no calibration against another one.
    " tsc=reliable nowatchdog"
    # Work that this machine has no use for: boot takes 12.3 s instead of 14. No mitigations: there
    # is nobody to protect from.
    " mitigations=off audit=0 apparmor=0 cryptomgr.notests init_on_alloc=0"
)
_ENVIRONMENT = {"LC_ALL": "C", "QEMU_MODULE_DIR": "/nonexistent"}  # not the host's modules
# A host that is busy elsewhere stops a processor for a while, which is no stall of the guest's.
# Reports of a debug kernel are long.
_SEVERAL = " rcupdate.rcu_cpu_stall_timeout=300 log_buf_len=16M"


def _argv(image: Image, folder: Path, memory_mb: int, processors: int) -> list[str]:
    """QEMU's command line. rr=record makes main loop and vCPU alternate: without it they race for
    the clock when the guest goes idle, and two runs differ by microseconds."""
    tree = toolbox.made(QEMU)
    clock = ["tcg", "-smp", "1", "-icount", "shift=0,sleep=off,rr=record,rrfile=/dev/null"]
    several = ["tcg,thread=multi", "-smp", str(processors)]
    return [
        *tree.program("usr/bin/qemu-system-x86_64"),
        "-L", str(tree.root / "usr/share/seabios"), "-L", str(tree.root / "usr/share/qemu"),
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        # A fixed version of the machine, without the devices that nothing uses: less to probe.
        "-machine", "pc-q35-10.0,hpet=off,smbus=off,sata=off,usb=off", "-m", f"{memory_mb}M",
        "-cpu", "max,-rdrand,-rdseed",
        "-accel", *(several if processors > 1 else clock),
        "-rtc", "base=2026-01-01T00:00:00,clock=vm", "-seed", "1",
        "-kernel", str(image.kernel), "-initrd", str(image.initrd),
        "-append", _COMMAND_LINE + _SEVERAL * (processors > 1),
        "-serial", f"file:{folder / 'console'}",
        # The result leaves by virtio: 2 MB in 0.1 s. By a second serial port it would take 11 s.
        "-device", "virtio-serial-pci,max_ports=2", "-chardev", f"file,id=result,path={folder / 'result'}",
        "-device", "virtserialport,chardev=result,name=result",
        "-fw_cfg", f"name=opt/qjump-mn,file={folder / 'in'}",
    ]  # fmt: skip


def run(
    image: Image,
    setup: Setup,
    job: Job,
    out: Path,
    *,
    wall_deadline_s: float = 1800.0,
    memory_mb: int = MEMORY_MB,
    processors: int = 1,
) -> Result:
    """Boot, set up, and do the job; its files are unpacked into ``out``, with the console's text as
    `console.log`. Raises LostError where there is no complete result."""
    asked = time.monotonic()
    # With several processors it takes its turn among the others, and then every core.
    with core(print) as number, temp_dirs.folder() as name:
        folder, began = Path(name), time.monotonic()
        (folder / "in").write_bytes(encode_setup(setup) + encode_job(job))
        out.mkdir(parents=True, exist_ok=True)
        argv, pinned = (
            _argv(image, folder, memory_mb, processors),
            None if processors > 1 else number,
        )
        what = "the guest ended without a result"
        with (
            (folder / "stderr").open("wb") as stderr,
            Stop().running(partial(start, argv, pinned, stderr, _ENVIRONMENT)) as process,
        ):
            try:
                used = wait(process, wall_deadline_s)
            except subprocess.TimeoutExpired:
                used, what = None, f"the guest overran its deadline of {wall_deadline_s:g} s"
        if (folder / "console").exists():
            shutil.copyfile(folder / "console", out / "console.log")
        trailer = unpack(folder / "result", out) if used and (folder / "result").exists() else None
        if trailer is None:
            said = (out / "console.log", folder / "stderr")
            raise lost(
                what, "".join(path.read_text(errors="replace") for path in said if path.exists())
            )
    return Result(
        exit_code=trailer.exit_code,
        virtual_s=trailer.virtual_ns / 1e9,
        wall_s=time.monotonic() - began,
        waited_s=began - asked,
        console=out / "console.log",
        sha256={**image.sha256, "result": trailer.sha256},
        used=used,
    )
