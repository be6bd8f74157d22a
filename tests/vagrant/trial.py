"""`vagrant up` and what a user does then, from a copy of the checkout with a machine file in it,
and a folder of wheels if there is one."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qjump_mn.toolbox import checkout
from tests.vagrant import box, host

RUN = "cd /vagrant && sudo python3 -m qjump_mn.run fig3a --preset smoke --arms idle"
COMMANDS = (
    f"vagrant box add --name {box.NAME} /srv/{box.FILE}",
    "vagrant up --provider=libvirt",
    f"vagrant ssh -c '{RUN}'",
    "vagrant ssh -c 'qjump-mn doctor'",
    "vagrant destroy -f",
)
_DRAWN = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""Colours, and where a terminal writes next."""


@dataclass(frozen=True)
class Step:
    """A command, its exit code, how long it took and what it said."""

    command: str
    status: int
    seconds: float
    lines: list[str]


def tried(machine: Path, wheels: Path | None, progress: Callable[[str], None]) -> list[Step]:
    """What each command came to, up to the first that failed. ``wheels`` has those for Debian 12's
    Python. Raises MachineError where this machine cannot play the host."""

    def fill(folder: Path) -> None:
        checkout.copy(folder / "qjump-mn")
        shutil.copyfile(machine, folder / "qjump-mn/qjump-mn-machine.tar.xz")
        if wheels:
            shutil.copytree(wheels, folder / "qjump-mn/qjump-mn-wheels")
        shutil.copyfile(made, folder / box.FILE)

    system = host.tree(progress)
    made = box.made(system, progress)
    steps: list[Step] = []
    with host.started(system, fill) as there:
        for command in COMMANDS:
            progress(command)
            steps.append(_step(there, command, progress))
            if steps[-1].status:
                break
    return steps


def text(steps: list[Step], load: float) -> str:
    """Render the steps and their times as a Markdown table. ``load`` is the load average before the
    first."""
    rows = [
        f"{os.cpu_count()} processors without KVM, load {load:.1f}; Vagrant's machine runs in a "
        "translator.",
        "",
        "| command | time |",
        "|---|---|",
    ]
    for step in steps:
        status = f", exit code {step.status}" if step.status else ""
        rows.append(f"| `{step.command}` | {step.seconds:.0f} s{status} |")
    return "\n".join(rows)


def _step(there: host.Host, command: str, progress: Callable[[str], None]) -> Step:
    lines: list[str] = []

    def told(line: str) -> None:
        # What is drawn over, such as a progress bar, is not of the log.
        for one in _DRAWN.sub("\r", line).split("\r"):
            if one.strip() and not one.startswith("Progress:"):
                lines.append(one.rstrip())
                progress(lines[-1])

    start = time.monotonic()
    status = there.run(command, "/srv/qjump-mn", told)
    return Step(command, status, time.monotonic() - start, lines)
