"""Check one bundle: start its judge, print the findings, and repeat trials.

This process parses nothing of the bundle before the judge, a process with limits, has done so.
"""

from __future__ import annotations

import io
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.text import Text

from qjump_mn import cache, session
from qjump_mn.backends import estimate
from qjump_mn.cli import command_verification, repeated, verification
from qjump_mn.cli.bundle.judge import Findings, Part
from qjump_mn.errors import InvalidRunError, LostError, QJumpError, last_words
from qjump_mn.guest import Stop
from qjump_mn.model.words import plain
from qjump_mn.process import temp_dirs
from qjump_mn.process.die_with_parent import wrap_module
from qjump_mn.results import command_directory
from qjump_mn.results.command_directory import CommandDirectory
from qjump_mn.results.directory import RunDirectory
from qjump_mn.toolbox import machines

MEMORY_BYTES = 4 << 30
TIME_S = 300
"""The judge's limits of memory and processor time; our largest run takes 1 GiB and 15 s."""
WAIT_FACTOR = 4
"""The most seconds of waiting for one second of processor time, on a busy machine."""
SHORT_S = 20.0
"""A trial that is expected to take less is repeated by default."""

NOT_PROVED = "nothing found; not proved: use --rerun"


class Rerun(NamedTuple):
    """Which trials to repeat.

    If ``wanted`` is None, that is one trial of the shortest arm, or a command with one seed,
    provided that it takes seconds and the machine is built. ``arms`` and ``sample`` are those of
    :func:`verification.verify`.
    """

    wanted: bool | None = None
    arms: Sequence[str] = ()
    sample: int = 0


NO_RERUN = Rerun(wanted=False)


class Checked(NamedTuple):
    """The result of a check: its exit code, as of :func:`check`, and why it could not be judged, if
    so. ``student`` and ``times`` are those of :class:`Findings`."""

    path: Path
    code: int
    parts: tuple[Part, ...] = ()
    error: QJumpError | None = None
    is_proved: bool = False
    student: str = ""
    times: str = ""

    @property
    def verdict(self) -> str:
        """The result in a few words."""
        if self.error:
            kinds = {1: "changed", 2: "not a bundle", 3: "not checked", 4: "not believable"}
            return kinds.get(self.code, "lost")
        kinds = {
            0: "all is well" if self.is_proved else "nothing found",
            1: "faults",
            4: "not believable",
        }
        return kinds.get(self.code, "lost")

    @property
    def problem(self) -> str:
        """The first problem; "" if there is none."""
        if self.error:
            return (
                str(self.error)
                .replace(str(self.path), self.path.name)
                .removeprefix(f"{self.path.name}: ")
            )
        return next(
            (f"{part.name}: {problem}" for part in self.parts for problem in part.problems), ""
        )


class RefusedError(QJumpError):
    """The judge of a bundle has ended with this sentence and exit code."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def check(
    path: Path, out: Console, *, assigned: Path | None = None, rerun: Rerun = NO_RERUN
) -> Checked:
    """Check that a bundle is unchanged, as ``assigned``, and agrees with its raw files; print
    findings.

    With ``rerun``, also check that repeated trials leave the same files. The exit codes are:

    - 0: all is well, and no trial is missing
    - 1: the bundle was edited, or something else is wrong
    - 2: the file is not a bundle, or the assignment makes no plan
    - 3: the disk is full
    - 4: the run cannot be believed, or not be judged within the limits
    - 5: the judge or a repeated trial was lost
    """
    try:
        with temp_dirs.folder() as folder:
            run = Path(folder, "run")
            run.mkdir()
            findings = _findings(path, run, assigned)
            for line in (
                findings.about,
                *(line for part in findings.parts for line in part.lines()),
            ):
                out.print(Text(plain(line)))
            rerun_code = _rerun(run, findings, rerun, out)
    except QJumpError as error:
        return Checked(path, error.exit_code, error=error)
    # A full disk, or a defect of ours that this bundle reveals: other bundles are still checked.
    except Exception as error:
        sentence, code = last_words(error)
        refused = RefusedError(sentence, code)
        refused.__cause__ = error
        return Checked(path, code, error=refused)
    parts, code = findings.parts, findings.code
    if rerun_code is not None:
        parts, code = (*parts, _rerun_part(rerun_code)), max(code, rerun_code)
    success = NOT_PROVED if rerun_code is None else "all is well"
    out.print("not all is well: see above" if code else success, markup=False)
    return Checked(
        path,
        code,
        parts,
        is_proved=rerun_code == 0,
        student=findings.student,
        times=findings.times,
    )


def _findings(path: Path, run: Path, assigned: Path | None) -> Findings:
    """Let the judge unpack the bundle into ``run`` and judge it.

    Raises the judge's error, :class:`InvalidRunError` if it exceeds its limits, and
    :class:`LostError` if something else ended it.
    """
    words = [
        str(path),
        str(run),
        str(MEMORY_BYTES),
        str(TIME_S),
        *([str(assigned)] if assigned else []),
    ]
    argv, environment = wrap_module("qjump_mn.cli.bundle.judge", *words)
    # Each thread of these libraries takes address space, which is limited.
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=WAIT_FACTOR * TIME_S)
        except subprocess.TimeoutExpired:
            raise InvalidRunError(
                f"{path}: the run cannot be judged within {WAIT_FACTOR * TIME_S} s"
            ) from None
        finally:
            process.kill()
    if process.returncode == -signal.SIGXCPU:
        raise InvalidRunError(
            f"{path}: the run cannot be judged within {TIME_S} s of processor time"
        )
    try:
        findings = msgspec.json.decode(output, type=Findings)
    except msgspec.DecodeError:
        raise LostError(
            f"{path}: its judge ended with {_end(process.returncode)}, without findings"
        ) from None
    if findings.error:
        raise RefusedError(plain(findings.error), findings.code)
    return findings


def _end(returncode: int) -> str:
    """Describe how a process ended: "SIGKILL" or "exit code 1"."""
    return signal.Signals(-returncode).name if returncode < 0 else f"exit code {returncode}"


def _rerun(run: Path, findings: Findings, rerun: Rerun, out: Console) -> int | None:
    """Repeat trials; return the exit code of :func:`verification.verify`, or None if none was
    run."""
    if rerun.wanted is None:
        return _rerun_shortest(run, out) if findings.is_done and not findings.code else None
    if not rerun.wanted:
        return None
    if not findings.is_done:
        out.print("no trial is done, so none can be repeated", markup=False)
        return None
    if findings.code == InvalidRunError.exit_code and not (rerun.arms or rerun.sample):
        out.print(
            "not repeated: the run is invalid; add --arms or --sample to repeat some of its "
            "trials anyway",
            markup=False,
        )
        return None
    return verification.verify(run, out, arms=rerun.arms, sample=rerun.sample)


def _rerun_shortest(run: Path, out: Console) -> int | None:
    """Repeat one trial of the shortest arm, or a command with one of its seeds, if that takes
    seconds and nothing must be built.

    Returns the exit code, or None if it could not be run.
    """
    try:
        with cache.read_only():
            existing = command_directory.existing(run)
            if isinstance(existing, CommandDirectory):
                code = _rerun_command(existing, out)
            else:
                arm = _shortest_arm(existing)
                code = verification.verify(run, out, arms=(arm,), sample=1) if arm else None
    except QJumpError:
        return None
    return None if code == LostError.exit_code else code


def _rerun_command(run: CommandDirectory, out: Console) -> int | None:
    """Repeat a command with one of its seeds; return the exit code.

    Returns None if that took :data:`SHORT_S` or more, or the machine is not built.
    """
    records = run.manifest.trials
    times_s = {name: record.wall_s for name, record in records.items() if record.wall_s is not None}
    done = command_verification.finished(run)
    short = [trial for trial in done if times_s.get(trial.name, SHORT_S) < SHORT_S]
    if not short or not machines.is_at_hand():
        return None
    # How long it took is a stranger's word.
    stop = Stop()
    timer = threading.Timer(WAIT_FACTOR * SHORT_S, stop.now)
    timer.start()
    try:
        return command_verification.repeat(run, repeated.sampled(short, 1), out, stop)
    finally:
        timer.cancel()


def _shortest_arm(run: RunDirectory) -> str:
    """Return the arm with the shortest expected trial.

    Returns "" if that takes :data:`SHORT_S` or more, or the run cannot be verified here.
    """
    manifest = run.manifest
    is_confined = manifest.clock != "real" and manifest.backend in session.CONFINED_BACKENDS
    if not is_confined or not machines.is_at_hand():
        return ""
    done = [trial for trial in manifest.plan.trials() if run.is_done(trial.name)]
    backend = session.backend_of(run, Console(file=io.StringIO()))
    expected_s = estimate.each_trial(manifest.plan, backend, done)
    shortest = min(done, key=lambda trial: expected_s[trial.name])
    return shortest.arm.name if expected_s[shortest.name] < SHORT_S else ""


def _rerun_part(code: int) -> Part:
    success = "the repeated trials left the same files"
    problems = {0: (), LostError.exit_code: ("a repeated trial was lost",)}
    return Part("rerun", success, problems.get(code, ("the repeated trials left other files",)))
