"""Run an instance inside an emulated machine, on hosts that are not x86-64 Linux.

The host's QEMU emulates a small x86-64 machine without network or disk (toolbox/outer_machine.py).
It boots, starts the instance, passes on what that writes, and ends with it. An instance gives the
same results to the bit, but takes about 35 times the processor's time.
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
"""If this environment variable is set, guests run in QEMU on any host."""

QEMU = "qemu-system-x86_64"
SLOWER = 35
"""An instance's slowdown; deadlines on the host's clock are this many times longer."""

MORE_MB = 640
"""The machine's memory in addition to the instance's.

It holds the machine's kernel, and the files of the instance both packed and unpacked.
"""

_COMMAND_LINE = "console=ttyS0 quiet panic=-1 nokaslr mitigations=off audit=0 apparmor=0"


def is_wanted() -> bool:
    """Whether guests run in QEMU on this host."""
    return processors.here() != processors.X86_64.name or bool(os.environ.get(VARIABLE))


def qemu() -> str:
    """Return the path of the host's QEMU; raise MachineError if it is not installed."""
    path = shutil.which(QEMU)
    if not path:
        raise MachineError(
            f"on {processors.here()} the guest needs {QEMU}, which is not installed: run `apt-get "
            "install qemu-system-x86`, `dnf install qemu-system-x86-core` or `pacman -S "
            "qemu-system-x86`, or use --backend simulator"
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
    """Run an instance as `instance.run` does, in a ``machine`` of toolbox/outer_machine.py.

    Raises MachineError if QEMU is not installed, and the errors of `instance.run`.
    """
    program, out, log, status_file = qemu(), folder / "out", folder / "log", folder / "status"
    for path in (out, log, status_file):
        path.touch()
    command_line = "\n".join(instance.command_line(memory_mb, words)).encode()
    nodes = {
        PROGRAM: Node.file(kernel, 0o755),
        IMAGE: Node.file(initrd),
        INPUT: Node.file(data),
        WORDS: Node.file(command_line),
    }
    _write_initrd(folder / "initrd", machine / INITRD, nodes)
    argv = _argv(program, machine / KERNEL, folder, memory_mb + MORE_MB)
    with (folder / "qemu").open("wb") as output:
        begin = partial(instance.start, argv, core, output, os.environ)
        _, used = instance.follow(begin, log, wall_deadline_s * SLOWER, line, stop)
    status = status_file.read_text().strip()
    if not status:
        texts = (
            path.read_text(errors="replace") for path in (log, folder / "console", folder / "qemu")
        )
        raise instance.lost("the machine around the guest ended before the guest", "\n".join(texts))
    if status != "0":
        raise instance.lost(
            f"the guest ended with status {status}", log.read_text(errors="replace")
        )
    return Outcome(out, log, used)


def _write_initrd(path: Path, base: Path, nodes: dict[str, Node]) -> None:
    """Write an initramfs that consists of ``base`` and more files."""
    with path.open("wb") as file, base.open("rb") as base_file:
        shutil.copyfileobj(base_file, file)
        file.writelines(cpio.archive(nodes))


def _argv(program: str, kernel: Path, folder: Path, memory_mb: int) -> list[str]:
    """Return QEMU's command line, which uses nothing that depends on QEMU's version.

    The machine has one processor, emulated with all features and no clock of its own, and a serial
    port for each file that it writes.
    """
    ports: Mapping[int, str] = {OUTPUT: "out", LOG: "log", STATUS: "status"}
    argv = [
        program,
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
        "-machine",
        "pc",
    ]
    argv += ["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "1", "-m", f"{memory_mb}M"]
    argv += ["-kernel", str(kernel), "-initrd", str(folder / "initrd"), "-append", _COMMAND_LINE]
    argv += ["-serial", f"file:{folder / 'console'}"]
    argv += ["-device", f"virtio-serial-pci,max_ports={max(ports) + 1}"]
    for number, name in ports.items():
        argv += ["-chardev", f"file,id={name},path={folder / name},append=on"]
        argv += ["-device", f"virtserialport,nr={number},chardev={name}"]
    return argv
