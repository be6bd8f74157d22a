"""Run commands in a Mininet node or on the machine. A failure raises an error; Mininet only prints
it."""

from __future__ import annotations

import contextlib
import functools
import subprocess
from collections.abc import Sequence
from typing import Any

from mininet_qos.commands import QosError


def run(command: Sequence[str], node: Any = None, text: str = "") -> str:
    """Run ``command`` with the input ``text`` in the namespace of ``node``; return its output.
    Raises QosError."""
    code, out, said = _run(command, node, text)
    if code:
        where = f"on {node}" if node else "on this machine"
        raise QosError(
            f"{' '.join(command)} failed {where}: {' '.join((said or out).split())[:400]}"
        )
    return out


def batch(program: str, lines: Sequence[str], node: Any = None, *, force: bool = False) -> None:
    """Run lines of ``tc`` or ``ip`` in one process; with ``force``, ignore failures. Raises
    QosError."""
    if not lines:
        return
    text = "".join(f"{line}\n" for line in lines)
    if force:
        _run([program, "-force", "-batch", "-"], node, text)
        return
    code, _, said = _run([program, "-batch", "-"], node, text)
    if code:
        raise QosError(
            f"{program} failed on {node}: {' '.join(said.split())[:400]}{_advice(said, text)}"
        )


def _run(command: Sequence[str], node: Any, text: str) -> tuple[int, str, str]:
    start: Any = node.popen if node else subprocess.Popen
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    try:
        process = start(list(command), **pipes)
    except FileNotFoundError:
        raise QosError(f"{command[0]} is not installed") from None
    out, said = process.communicate(text.encode())
    return process.returncode, out.decode(), said.decode()


def _advice(said: str, text: str) -> str:
    """Say what to do if the kernel lacks a part."""
    if "kind is unknown" not in said and "Unknown qdisc" not in said:
        return ""
    if " wire " in text:
        return (
            " (install the module sch_wire and its tc plugin, packages qjump-dkms and qjump-tc, or "
            "use TbfLink)"
        )
    return " (this kernel lacks the module, or tc its plugin)"


@functools.cache
def load_ifb() -> None:
    """Load the module ``ifb`` without its two default devices. If that fails, the first ``ip link
    add`` says why."""
    with contextlib.suppress(QosError):
        run(["modprobe", "ifb", "numifbs=0"])
