"""A guest with several processors that run at the same time, on the host's clock: for races between them, never
for a time or an order.

With `-icount` QEMU has one thread for all processors, and `-smp 2` hangs. Here each has a thread.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from qjump_mn import scratch
from qjump_mn.guest import Image, Job, Setup, snapshots
from qjump_mn.guest.cores import core
from qjump_mn.guest.job import encode_job, encode_setup
from qjump_mn.guest.machine import Files, Stop, machine, qemu_argv
from qjump_mn.guest.result import unpack

PROCESSORS = 4

# A host that is busy elsewhere stops a processor for a while, which is no stall of the guest's. Reports of a
# debug kernel are long.
_WORDS = "rcupdate.rcu_cpu_stall_timeout=300 log_buf_len=16M"


def argv_of(image: Image, files: Files, memory_mb: int) -> list[str]:
    """QEMU's command line: the guest's, but for its processors and its clock."""
    argv = qemu_argv(image, files, snapshots.own_memory(memory_mb), stopping=False, state=False)
    argv[argv.index("-accel") : argv.index("-rtc")] = ["-accel", "tcg,thread=multi", "-smp", str(PROCESSORS)]
    argv[argv.index("-append") + 1] += f" {_WORDS}"
    return argv


def run(image: Image, job: Job, out: Path, *, memory_mb: int, wall_deadline_s: float) -> tuple[int, float]:
    """Boot and run the job; its files are below `out` then, the console as console.log. Its exit code, and
    the processor's time that QEMU took, in s.

    Raises LostError where a result is missing.
    """
    out.mkdir(parents=True, exist_ok=True)
    with core(print), scratch.folder() as folder:  # it takes its turn among the others, and then every core
        files = Files(Path(folder))
        files.setup.write_bytes(encode_setup(Setup()))
        files.job.write_bytes(encode_job(job))
        try:
            with machine(argv_of(image, files, memory_mb), files, None, Stop()) as guest:
                guest.wait_ended(wall_deadline_s, print)
                trailer = unpack(files.result, out)
                if trailer is None:
                    raise guest.lost("the guest ended without a result")
        finally:
            if files.console.exists():
                shutil.copyfile(files.console, out / "console.log")
    return trailer.exit_code, guest.used.cpu_s if guest.used else 0.0
