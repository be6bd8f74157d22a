"""Run a command in the machine: its image, and one execution."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from qjump_mn import guest
from qjump_mn.errors import LostError
from qjump_mn.guest.job import sha256_of
from qjump_mn.guest.terminal import Terminal
from qjump_mn.mn import machine, typed
from qjump_mn.model.command import Command
from qjump_mn.results import contents
from qjump_mn.results.command_directory import FOLDER, MININET, TYPED
from qjump_mn.results.manifest import TrialRecord
from qjump_mn.steps import openvswitch

HOME = "work"
"""The name of the command's folder in the machine, below /root."""

_RUNNER = "qjump_mn_guest.runner:run"
_BRING_UP = "executor.trial:bring_up"
_MARGIN_S = 60.0
_WALL_S = 86_400.0

END = "end.json"
"""How the command ended, in raw/."""

prepare = machine.prepare


class _End(msgspec.Struct):
    time_ns: int


def trial(
    image: guest.Image,
    command: Command,
    own: Path,
    seed: int,
    out: Path,
    *,
    show: Callable[[bytes], None],
    progress: Callable[[str], None] = lambda line: None,
    stop: guest.Stop | None = None,
) -> TrialRecord:
    """Run a command again: :func:`execute` with what was typed the first time."""
    record = typed.read(own / TYPED) if command.typed_sha256 else ()
    replay = typed.Replay(record)
    terminal = Terminal(show, replay.line, replay.interrupt)
    return execute(image, command, own, seed, out, terminal=terminal, progress=progress, stop=stop)


def execute(
    image: guest.Image,
    command: Command,
    own: Path,
    seed: int,
    out: Path,
    *,
    terminal: Terminal,
    progress: Callable[[str], None] = lambda line: None,
    stop: guest.Stop | None = None,
) -> TrialRecord:
    """Run a command once, with the files of ``own``, a run's folder; fill ``out``.

    Its exit code is in the record. The record of a lost guest says why.
    """
    try:
        result = guest.run(
            image,
            _setup(),
            job(command, own, seed),
            out,
            wall_deadline_s=_WALL_S,
            progress=progress,
            memory_mb=command.memory_mb,
            stop=stop,
            terminal=terminal,
        )
    except LostError as error:
        return TrialRecord(status="lost", exit_code=error.exit_code, message=str(error))
    end = out / contents.RAW / END
    if not end.exists():
        message = f"the machine could not run the command: see {result.console}"
        return TrialRecord(status="lost", exit_code=LostError.exit_code, message=message)
    used = result.used
    return TrialRecord(
        status="done",
        exit_code=result.exit_code,
        virtual_s=msgspec.json.decode(end.read_bytes(), type=_End).time_ns / 1e9,
        wall_s=result.wall_s,
        cpu_s=used.cpu_s if used else None,
        memory_mb=used.memory_mb if used else None,
    )


def job(command: Command, own: Path, seed: int) -> guest.Job:
    """Return the job of one execution."""
    args: dict[str, Any] = {
        "argv": command.argv,
        "folder_name": HOME,
        "folder": _encoded(own / FOLDER),
        "mininet": _encoded(own / MININET) if command.mininet_sha256 else None,
        "environment": machine.environment(command),
        "deadline_ns": command.deadline_ns,
    }
    return guest.Job(
        entry=_RUNNER,
        args=args,
        seed=seed,
        virtual_deadline_s=command.deadline_ns / 1e9 + _MARGIN_S,
    )


def job_sha256(command: Command, own: Path, seed: int) -> str:
    """Return the SHA-256 of an execution's setup and job, which its guest's agent writes too."""
    return sha256_of(_setup(), job(command, own, seed))


def _setup() -> guest.Setup:
    """Return the setup: Open vSwitch runs before the command starts."""
    steps = msgspec.to_builtins(openvswitch.start())
    return guest.Setup(entry=_BRING_UP, args={"steps": steps})


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
