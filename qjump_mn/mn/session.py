"""Run a command once a seed, as `qjump-mn mn` does, and say what came out."""

from __future__ import annotations

import datetime
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console

from qjump_mn import guest
from qjump_mn.errors import UsageError, reason_of
from qjump_mn.guest.terminal import Terminal
from qjump_mn.install import provenance
from qjump_mn.mn import imports, machine, port_report, running, typed
from qjump_mn.mn.keyboard import Keyboard
from qjump_mn.mn.request import Request
from qjump_mn.model.command import Command, CommandTrial
from qjump_mn.process.interrupts import Interrupted
from qjump_mn.results import command_directory, contents, previous_runs
from qjump_mn.results.command_directory import CommandDirectory
from qjump_mn.results.manifest import TrialRecord

_SPINS = "of processor without a system call"
_SPINS_ADVICE = "code takes no time here: a loop that waits must sleep, or ask for the time"


def run(
    request: Request,
    out: Path,
    argv: Sequence[str],
    err: Console,
    *,
    stdin: int = 0,
    record: Path | None = None,
) -> int:
    """Run the command with each seed, in a new run directory in ``out``; return its exit code.

    What it prints goes to standard output as it comes, what is said about it to ``err``. Unless the
    request says what is typed, it comes from the descriptor ``stdin``, and goes to the file
    ``record``. With several seeds the exit code is the first that is not 0, and all are typed what
    the first was. 5 is a lost machine.
    """
    machine.check_host()
    if request.packages:
        err.print(f"adds {', '.join(request.packages)} to the machine", markup=False)
        lock = machine.resolved(request.packages, lambda line: err.print(line, markup=False))
        request = request.with_packages(lock)
    command = request.command
    directory = _create(request, out, argv)
    image = running.prepare(command, directory.own, lambda line: err.print(line, markup=False))
    directory.enter_machine({"image": image.identity, "kernel": image.release})
    keyboard, codes = Keyboard(stdin), []
    replay = typed.read(directory.own / command_directory.TYPED) if command.typed_sha256 else None
    with _interrupts(keyboard) as stop:
        for trial in command.trials():
            if len(command.seeds) > 1:
                err.print(f"seed {trial.seed}", markup=False)
            typist = keyboard if replay is None else typed.Replay(replay)
            ended = _trial(image, command, directory, trial, typist, keyboard.show, stop, err)
            if replay is None:
                replay = tuple(keyboard.record)
                directory.enter_typed(typed.encode(replay))
            codes.append(ended.exit_code)
            _say_end(directory, trial, ended, err)
    if record:
        _copy_record(directory.own / command_directory.TYPED, record)
    directory.close(datetime.datetime.now(datetime.UTC))
    if compared := previous_runs.earlier(out, directory):
        err.print(compared, markup=False)
    return next((code for code in codes if code), 0)


def _create(request: Request, out: Path, argv: Sequence[str]) -> CommandDirectory:
    return command_directory.create(
        out,
        request.command,
        request.own,
        argv=tuple(argv),
        git=provenance.git(),
        versions=provenance.versions(),
        machine={},
        now=datetime.datetime.now(datetime.UTC),
    )


def _trial(
    image: guest.Image,
    command: Command,
    directory: CommandDirectory,
    trial: CommandTrial,
    typist: Keyboard | typed.Replay,
    show: Callable[[bytes], None],
    stop: guest.Stop,
    err: Console,
) -> TrialRecord:
    """Run the command with one seed, and finish the trial. Of a lost machine, what the command
    printed is kept."""
    target = directory.prepare(trial.name)
    kept = target / contents.RAW / "output"
    with tempfile.TemporaryFile() as printed:

        def shown(data: bytes) -> None:
            printed.write(data)
            show(data)

        record = running.execute(
            image,
            command,
            directory.own,
            trial.seed,
            target,
            terminal=Terminal(shown, typist.line, typist.interrupt, typist.close),
            progress=lambda line: err.print(line, markup=False),
            stop=stop,
        )
        if not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            printed.seek(0)
            with kept.open("wb") as file:
                shutil.copyfileobj(printed, file)
    directory.finish(trial.name, record)
    return record


def _copy_record(kept: Path, record: Path) -> None:
    try:
        record.write_bytes(kept.read_bytes() if kept.exists() else b"")
    except OSError as error:
        raise UsageError(f"{record} cannot be written: {reason_of(error)}") from None


def _say_end(
    directory: CommandDirectory, trial: CommandTrial, record: TrialRecord, err: Console
) -> None:
    """Say how the command ended, and where its files are."""
    sys.stdout.flush()
    if record.status == "lost":
        err.print(record.message, markup=False)
        if _SPINS in record.message:
            err.print(_SPINS_ADVICE, markup=False)
        err.print(f"run: {_short(directory.path)}", markup=False)
        return
    raw = directory.raw(trial.name)
    took = f"{record.virtual_s:.3f} s on the machine's clock, {record.wall_s:.1f} s here"
    ends = {0: "ended", 124: "was ended at its deadline"}
    how = ends.get(record.exit_code, f"ended with exit code {record.exit_code}")
    err.print(f"{shlex.join(directory.manifest.command.argv)} {how} after {took}", markup=False)
    if record.exit_code and (advice := imports.advice((raw / "output").read_bytes())):
        err.print(advice, markup=False)
    written = [path for path in (raw / "files").rglob("*") if path.is_file()]
    if written:
        files = "1 file" if len(written) == 1 else f"{len(written)} files"
        err.print(f"it wrote {files}: {_short(raw / 'files')}", markup=False)
    if (raw / "notes").exists():
        err.print((raw / "notes").read_text().rstrip("\n"), markup=False)
    port_report.show([port_report.read(path) for path in sorted(raw.glob("ports-*.json"))], err)
    err.print(f"run: {_short(directory.path)}", markup=False)


def _short(path: Path) -> Path:
    relative = Path(os.path.relpath(path))
    return path if ".." in relative.parts else relative


@contextmanager
def _interrupts(keyboard: Keyboard) -> Iterator[guest.Stop]:
    """Within the block, Ctrl-C of a person goes to the command; pressed again before that has taken
    it, or from anything but a person, it ends the run."""
    stop = guest.Stop()
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> None:
        if keyboard.press_interrupt():
            raise Interrupted

    if keyboard.is_person and before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
