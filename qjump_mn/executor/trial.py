"""Carry out steps: those that bring a network up, then those of one trial after another."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from . import offloads, steps
from .errors import LostError, MachineError, QJumpError
from .lateness import Lateness
from .program import Programs
from .shell import Shell, in_namespace

NS = 1e9
PROGRESS = "qjump-mn: "
"""The prefix of console lines that are passed on to the user."""

MESSAGE, FACTS, RAW = "message.txt", "trial.json", "raw"
"""A trial's error message and facts (files), and its programs' output (a folder)."""

DISCARD = 9
"""A port where nothing listens (RFC 863)."""
ANNOUNCED_S = 0.005
"""How long the switches have to learn from one announcement before the next."""

Progress = Callable[[str], None]


def print_progress(line: str) -> None:
    """Print a line that the guest's host passes on to the user."""
    print(f"{PROGRESS}{line}", flush=True)


class Network:
    """A network that steps have brought up.

    It is a context manager that removes the network at the end; with ``undo=False`` it leaves
    that to the end of the machine.
    """

    def __init__(self, shell: Shell | None = None, *, undo: bool = True) -> None:
        self.shell, self.undo = shell or Shell(), undo
        self.exits = ExitStack()
        self._block: Block | None = None

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        self.exits.close()

    def build(self, todo: steps.Steps, scratch: Path) -> None:
        """Bring the network up; if that fails, remove its parts again."""
        try:
            Block(self, scratch, self.exits, print_progress).run(todo)
        except BaseException:
            self.exits.close()
            raise

    def trial(self, todo: steps.Steps, out: Path, progress: Progress) -> None:
        """Carry out a trial's steps, put their files into ``out``, and undo them.

        Raises LostError if a program dies or is late, MachineError if a command fails.
        """
        (out / RAW).mkdir(parents=True, exist_ok=True)
        with ExitStack() as exits:
            self._block = block = Block(self, out, exits, progress)
            block.run(todo)
            (out / FACTS).write_text(json.dumps(block.facts(), indent=1, sort_keys=True) + "\n")

    def stop(self) -> None:
        """End the current trial, from another thread; the trial raises LostError and is undone."""
        if self._block is not None:
            self._block.stop()


class Block:
    """Carries out steps that are undone together, and records their facts.

    There is a method for each kind of step, named by its tag.
    """

    def __init__(self, network: Network, out: Path, exits: ExitStack, progress: Progress) -> None:
        self._network, self._shell, self._out = network, network.shell, out
        self._exits, self._progress = exits, progress
        self._raw = out / RAW
        # Programs end before any step is undone.
        self._programs = Programs(self._shell, self._raw)
        self._stopped = threading.Event()
        self._marks_s: dict[str, float] = {}
        self._read_ns: dict[str, int] = {}
        self._facts: dict[str, Any] = {}

    def run(self, todo: steps.Steps) -> None:
        """Carry out every step, in order."""
        with self._programs:
            for step in todo:
                if self._stopped.is_set():
                    raise LostError("the trial was stopped")
                getattr(self, f"_{step.__struct_config__.tag}")(step)

    def stop(self) -> None:
        """Carry out no further step, and kill the programs."""
        self._stopped.set()
        self._programs.kill()

    def facts(self) -> dict[str, Any]:
        """Return a trial's facts: see TrialFacts in qjump_mn/results/tables.py."""
        return {**self._facts, "read_ns": self._read_ns}

    def _topology(self, step: steps.Topology) -> None:
        from .mininet import build  # a host that uses only the guest does not have Mininet

        build(step, self._shell, self._exits.callback)

    def _settings(self, step: steps.Settings) -> None:
        with in_namespace(step.node):
            for key, value in step.values.items():
                try:
                    before = _setting(key).read_text() if step.restored else ""
                    _setting(key).write_text(value)
                except OSError as error:
                    if step.restored or not isinstance(error, FileNotFoundError):
                        location = step.node or "this machine"
                        raise MachineError(
                            f"{key} = {value} was refused on {location}: {error}"
                        ) from None
                else:
                    if step.restored:
                        restore = steps.Settings(node=step.node, values={key: before})
                        self._at_exit(self._settings, restore)

    def _read_settings(self, step: steps.ReadSettings) -> None:
        began_ns = time.monotonic_ns()
        with in_namespace(step.node):
            text = "".join(f"{key} = {_setting(key).read_text()}" for key in step.keys)
        self._save(step.output, text, began_ns)

    def _offloads(self, step: steps.Offloads) -> None:
        if step.on:
            self._at_exit(self._offloads, steps.Offloads(node=step.node, devices=step.devices))
        with in_namespace(step.node):
            for device in step.devices:
                offloads.turn(device, on=step.on)

    def _announce(self, step: steps.Announce) -> None:
        with in_namespace(step.node), socket.socket(type=socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sender.sendto(b"", (step.address, DISCARD))
        time.sleep(ANNOUNCED_S)

    def _run(self, step: steps.Run) -> None:
        if step.undo is not None and self._network.undo:
            saved = ""
            if step.saves:
                saved = self._checked(step.node, step.saves, "", step.deadline_s, step.refusal)
            self._exits.callback(self._undo, step.undo, saved)
        self._checked(step.node, step.argv, step.stdin, step.deadline_s, step.refusal)

    def _read(self, step: steps.Read) -> None:
        began_ns = time.monotonic_ns()
        self._save(step.output, self._checked(step.node, step.argv, "", step.deadline_s), began_ns)

    def _save(self, output: str, text: str, began_ns: int) -> None:
        """Save a text that was read between ``began_ns`` and now."""
        self._read_ns[output] = (began_ns + time.monotonic_ns()) // 2
        path = self._out / output
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _start(self, step: steps.Start) -> None:
        self._programs.start(step)

    def _wait(self, step: steps.Wait) -> None:
        self._programs.wait(step)

    def _finish(self, step: steps.Finish | steps.Stop) -> None:
        self._programs.end(step)

    _stop = _finish

    def _mark(self, step: steps.Mark) -> None:
        self._marks_s[step.name] = time.monotonic()

    def _sleep(self, step: steps.Sleep) -> None:
        since_s = self._marks_s[step.mark] if step.mark else time.monotonic()
        self._stopped.wait(max(0.0, since_s + step.after_s - time.monotonic()))

    def _measure(self, step: steps.Measure) -> None:
        self._progress("measuring")
        self._ticks = _cpu_ticks()
        self._marks_s[steps.MEASUREMENT] = time.monotonic()
        self._facts = {
            "began_ns": round(self._marks_s[steps.MEASUREMENT] * NS),
            "began_utc_ns": time.time_ns(),
        }
        self._lateness = self._exits.enter_context(Lateness(step.every_s)) if step.every_s else None

    def _measured(self, step: steps.Measured) -> None:
        load_s, ended_s = self._marks_s[steps.LOAD], time.monotonic()
        if self._lateness is not None:
            self._lateness.end()
            self._facts["cpu_late_us"] = self._lateness.quantiles_us()
        self._facts |= {
            "window_s": [
                round(self._marks_s[steps.MEASUREMENT] - load_s, 9),
                round(ended_s - load_s, 9),
            ],
            "cpu_busy": round(_busy_share(self._ticks, _cpu_ticks()), 4),
        }

    def _checked(
        self, node: str, argv: tuple[str, ...], stdin: str, deadline_s: float, refusal: str = ""
    ) -> str:
        """Run a command and return its output; raise an error if it fails or is late."""
        command, location = " ".join(argv), node or "this machine"
        try:
            done = self._shell.run(node, argv, stdin=stdin, deadline_s=deadline_s)
        except subprocess.TimeoutExpired:
            raise LostError(
                f"{command} did not end within {deadline_s:.0f} s on {location}"
            ) from None
        except FileNotFoundError as error:
            raise MachineError(
                refusal or f"{error.filename} is not installed on {location}"
            ) from None
        if done.returncode:
            output = " ".join((done.stderr.strip() or done.stdout.strip())[:400].split())
            raise MachineError(f"{refusal or f'{command} failed on {location}'}: {output}")
        return done.stdout

    def _at_exit(self, undo: Callable[[Any], None], step: steps.Step) -> None:
        """Carry out the step at the end, ignoring errors; do nothing if nothing is undone."""

        def carry_out() -> None:
            with contextlib.suppress(OSError, MachineError):
                undo(step)

        if self._network.undo:
            self._exits.callback(carry_out)

    def _undo(self, step: steps.Run, stdin: str) -> None:
        # A step that failed cannot be undone; the undo of the other steps must go on.
        with contextlib.suppress(FileNotFoundError, subprocess.TimeoutExpired):
            self._shell.run(
                step.node, step.argv, stdin=step.stdin or stdin, deadline_s=step.deadline_s
            )


def bring_up(args: dict[str, Any]) -> Network:
    """Entry point of a guest's setup: carry out ``args["steps"]``; the guest's end undoes them."""
    network = Network(undo=False)
    network.build(steps.decode(args["steps"]), Path("/tmp"))
    return network


def run(network: Network, args: dict[str, Any], out: Path) -> int:
    """Entry point of a guest's job: carry out the trial ``args["steps"]`` and return an exit code.

    An error's sentence goes to the file :data:`MESSAGE`.
    """
    try:
        network.trial(steps.decode(args["steps"]), out, print_progress)
    except QJumpError as error:
        (out / MESSAGE).write_text(f"{error}\n")
        return error.exit_code
    return 0


def _setting(key: str) -> Path:
    """Return the file of a kernel setting."""
    return Path("/proc/sys", key.replace(".", "/"))


def _cpu_ticks() -> list[int]:
    """Return the processors' time by state, in ticks: user nice system idle iowait irq softirq …"""
    return [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]


def _busy_share(before: list[int], after: list[int]) -> float:
    spent = [last - first for first, last in zip(before, after, strict=True)][:8]
    idle = spent[3] + spent[4]
    return 1 - idle / sum(spent) if sum(spent) else 0.0
