"""An instance in a machine around it, where the host is no x86-64 Linux: a small one of x86-64, which the
host's own QEMU translates (toolbox/outer_machine.py), boots, starts the instance, hands on what it writes,
and ends with it.

What an instance does depends on nothing around it: it leaves the same bits, and takes some 35 times the
processor's time. The machine has no network and no disk.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from qjump_mn.errors import MachineError
from qjump_mn.guest import instance
from qjump_mn.guest.instance import MEMORY_MB, Outcome, Stop
from qjump_mn.toolbox import cpio, processors
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.machine_file import INITRD, KERNEL
from qjump_mn.toolbox.outer_machine import IMAGE, INPUT, LOG, OUTPUT, PROGRAM, STATUS, WORDS

VARIABLE = "QJUMP_MN_OUTER"
"""Set to anything, it has guests run so on any host."""

QEMU = "qemu-system-x86_64"
SLOWER = 35
"""How many times longer an instance takes; deadlines in seconds of the host are as many times later."""

MORE_MB = 640
"""The machine's memory beside the instance's: its kernel, and the files of the instance twice, packed and
unpacked."""

_COMMAND_LINE = "console=ttyS0 quiet panic=-1 nokaslr mitigations=off audit=0 apparmor=0"


def is_wanted() -> bool:
    """Whether guests run so here."""
    return processors.here() != processors.X86_64.name or bool(os.environ.get(VARIABLE))


def qemu() -> str:
    """The path of the host's QEMU. Raises MachineError where it is not installed."""
    path = shutil.which(QEMU)
    if not path:
        raise MachineError(
            f"the guest runs here, on {processors.here()}, in {QEMU}, which is not installed: `apt-get "
            "install qemu-system-x86`, `dnf install qemu-system-x86-core` or `pacman -S qemu-system-x86`; or "
            "take --backend simulator"
        )
    return path


def run(
    machine: Path,
    kernel: Path,
    initrd: Path,
    data: bytes,
    folder: Path,
    *,
    memory_mb: int = MEMORY_MB,
    wall_deadline_s: float = 900.0,
    words: Sequence[str] = (),
    line: Callable[[str], None] = lambda line: None,
    core: int | None = None,
    stop: Stop | None = None,
) -> Outcome:
    """As `instance.run` does, in a ``machine`` of toolbox/outer_machine.py. Raises MachineError where there
    is no QEMU, and as that does."""
    program, out, log, status = qemu(), folder / "out", folder / "log", folder / "status"
    for path in (out, log, status):
        path.touch()
    command_line = "\n".join(instance.command_line(memory_mb, words)).encode()
    own = {
        PROGRAM: Node.file(kernel, 0o755),
        IMAGE: Node.file(initrd),
        INPUT: Node.file(data),
        WORDS: Node.file(command_line),
    }
    with (folder / "initrd").open("wb") as file, (machine / INITRD).open("rb") as below:
        shutil.copyfileobj(below, file)
        file.writelines(cpio.archive(own))
    argv = _argv(program, machine / KERNEL, folder, memory_mb + MORE_MB)
    with (folder / "qemu").open("wb") as said:
        begin = partial(instance.start, argv, core, said, os.environ)
        _, used = instance.followed(begin, log, wall_deadline_s * SLOWER, line, stop)
    ended = status.read_text().strip()
    if not ended:
        texts = (path.read_text(errors="replace") for path in (log, folder / "console", folder / "qemu"))
        raise instance.lost("the machine around the guest ended before it", "\n".join(texts))
    if ended != "0":
        raise instance.lost(f"the guest ended with status {ended}", log.read_text(errors="replace"))
    return Outcome(out, log, used)


def _argv(program: str, kernel: Path, folder: Path, memory_mb: int) -> list[str]:
    """QEMU's command line, with nothing that depends on its version: translation without a clock of its own,
    one processor with all that the translator knows, and a port for each file that it writes."""
    ports: Mapping[int, str] = {OUTPUT: "out", LOG: "log", STATUS: "status"}
    argv = [program, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "pc"]
    argv += ["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "1", "-m", f"{memory_mb}M"]
    argv += ["-kernel", str(kernel), "-initrd", str(folder / "initrd"), "-append", _COMMAND_LINE]
    argv += ["-serial", f"file:{folder / 'console'}"]
    argv += ["-device", f"virtio-serial-pci,max_ports={max(ports) + 1}"]
    for number, name in ports.items():
        argv += ["-chardev", f"file,id={name},path={folder / name},append=on"]
        argv += ["-device", f"virtserialport,nr={number},chardev={name}"]
    return argv
