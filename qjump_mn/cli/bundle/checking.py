"""``check``: start the judge of a bundle, print what it finds, and run trials again.

This process parses nothing of the bundle before its judge, which has limits, has done so.
"""

from __future__ import annotations

import io
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.text import Text

from qjump_mn import cache, session
from qjump_mn.backends import estimate
from qjump_mn.cli import verification
from qjump_mn.cli.bundle.judge import Findings, Part
from qjump_mn.errors import InvalidRunError, LostError, QJumpError, last_words
from qjump_mn.process import temp_dirs
from qjump_mn.process.die_with_parent import wrap_module
from qjump_mn.results import directory
from qjump_mn.results.directory import RunDirectory
from qjump_mn.toolbox import machines

MEMORY_BYTES = 4 << 30
TIME_S = 300
"""What judging may take of memory, and of a processor: 1 GiB and 15 s for the largest run of ours."""
WAIT_FACTOR = 4
"""On a busy machine a second of a processor takes so many at most."""
SHORT_S = 20.0
"""A trial that is expected to take less is run again unless the user says otherwise."""

NOT_PROVED = "nothing found; not proved: use --rerun"


class Rerun(NamedTuple):
    """What to run again: ``wanted`` is None for one trial of the shortest arm, if it is a matter of seconds
    and all that it needs is built; ``arms`` and ``sample`` are those of :func:`verification.verify`."""

    wanted: bool | None = None
    arms: Sequence[str] = ()
    sample: int = 0


NO_RERUN = Rerun(wanted=False)


class Checked(NamedTuple):
    """A bundle that was checked: ``code`` is that of :func:`check`, ``error`` why it could not be judged."""

    path: Path
    code: int
    parts: tuple[Part, ...] = ()
    error: QJumpError | None = None
    is_proved: bool = False

    @property
    def verdict(self) -> str:
        """In a few words."""
        if self.error:
            kinds = {1: "changed", 2: "not a bundle", 3: "not checked", 4: "not believable"}
            return kinds.get(self.code, "lost")
        kinds = {0: "all is well" if self.is_proved else "nothing found", 1: "faults", 4: "not believable"}
        return kinds.get(self.code, "lost")

    @property
    def problem(self) -> str:
        """The first; "" where there is none."""
        if self.error:
            return str(self.error).replace(str(self.path), self.path.name).removeprefix(f"{self.path.name}: ")
        return next((f"{part.name}: {one}" for part in self.parts for one in part.problems), "")


class RefusedError(QJumpError):
    """A bundle's judge has ended with this sentence and exit code."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def check(path: Path, out: Console, *, assigned: Path | None = None, rerun: Rerun = NO_RERUN) -> Checked:
    """Print whether the bundle ``path`` is as it was made, of the plan that was ``assigned``, and says what
    its raw files say; and whether trials that are run again leave the same files.

    The code is 0 where all is well and no trial is missing, 4 for a run that cannot be believed, or not be
    judged within the limits, 5 where a trial was lost that was run again, or the judge, 1 for a bundle that
    was edited and for anything else that is not well, 2 for what is not a bundle and for an assignment that
    makes no plan, and 3 where the disk is full.
    """
    try:
        with temp_dirs.folder() as folder:
            run = Path(folder, "run")
            run.mkdir()
            findings = _findings(path, run, assigned)
            for line in (findings.about, *(line for part in findings.parts for line in part.lines())):
                out.print(Text(plain(line)))
            again = _again(run, findings, rerun, out)
    except QJumpError as error:
        return Checked(path, error.exit_code, error=error)
    except (
        Exception
    ) as error:  # a full disk, or a bundle that finds a mistake of ours: the next one is checked
        sentence, code = last_words(error)
        refused = RefusedError(sentence, code)
        refused.__cause__ = error
        return Checked(path, code, error=refused)
    parts, code = findings.parts, findings.code
    if again is not None:
        parts, code = (*parts, _repeated(again)), max(code, again)
    good = NOT_PROVED if again is None else "all is well"
    out.print("not all is well: see above" if code else good, markup=False)
    return Checked(path, code, parts, is_proved=again == 0)


def plain(text: str) -> str:
    """A stranger's words without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _findings(path: Path, run: Path, assigned: Path | None) -> Findings:
    """Let the judge unpack the bundle into ``run`` and judge it; raise its error, :class:`InvalidRunError`
    where it exceeds its limits and :class:`LostError` where something else has ended it."""
    words = [str(path), str(run), str(MEMORY_BYTES), str(TIME_S), *([str(assigned)] if assigned else [])]
    argv, environment = wrap_module("qjump_mn.cli.bundle.judge", *words)
    # Each thread of these takes address space, which is limited, whatever the number of processors.
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment, start_new_session=True
    ) as process:
        try:
            said, _ = process.communicate(timeout=WAIT_FACTOR * TIME_S)
        except subprocess.TimeoutExpired:
            raise InvalidRunError(
                f"{path}: the run cannot be judged within {WAIT_FACTOR * TIME_S} s"
            ) from None
        finally:
            process.kill()
    if process.returncode == -signal.SIGXCPU:
        raise InvalidRunError(f"{path}: the run cannot be judged within {TIME_S} s of processor time")
    try:
        findings = msgspec.json.decode(said, type=Findings)
    except msgspec.DecodeError:
        raise LostError(
            f"{path}: its judge ended with {_end(process.returncode)}, and said nothing"
        ) from None
    if findings.error:
        raise RefusedError(plain(findings.error), findings.code)
    return findings


def _end(returncode: int) -> str:
    """How a process ended: "SIGKILL" or "exit code 1"."""
    return signal.Signals(-returncode).name if returncode < 0 else f"exit code {returncode}"


def _again(run: Path, findings: Findings, rerun: Rerun, out: Console) -> int | None:
    """Run trials again; return the exit code of :func:`verification.verify`, None where none were run."""
    if rerun.wanted is None:
        return _sample(run, out) if findings.is_done and not findings.code else None
    if not rerun.wanted:
        return None
    if not findings.is_done:
        out.print("no trial is done: nothing can be run again", markup=False)
        return None
    if findings.code == InvalidRunError.exit_code and not (rerun.arms or rerun.sample):
        out.print(
            "not run again: the run is invalid; add --arms or --sample to run some of its trials all the "
            "same",
            markup=False,
        )
        return None
    return verification.verify(run, out, arms=rerun.arms, sample=rerun.sample)


def _sample(run: Path, out: Console) -> int | None:
    """Run one trial of the shortest arm again, if that takes seconds and nothing must be built; return the
    exit code, None where it could not be run."""
    try:
        with cache.read_only():
            arm = _shortest_arm(directory.existing(run))
            code = verification.verify(run, out, arms=(arm,), sample=1) if arm else None
    except QJumpError:
        return None
    return None if code == LostError.exit_code else code


def _shortest_arm(run: RunDirectory) -> str:
    """The arm whose trials are expected to end first; "" where that is not in :data:`SHORT_S`, or the run
    cannot be verified here."""
    told = run.manifest
    if told.clock == "real" or told.backend not in session.CONFINED_BACKENDS or not machines.is_at_hand():
        return ""
    done = [trial for trial in told.plan.trials() if run.is_done(trial.name)]
    backend = session.backend_of(run, Console(file=io.StringIO()))
    expected_s = estimate.each_trial(told.plan, backend, done)
    shortest = min(done, key=lambda trial: expected_s[trial.name])
    return shortest.arm.name if expected_s[shortest.name] < SHORT_S else ""


def _repeated(code: int) -> Part:
    good = "what was run again left the same files"
    problems = {0: (), LostError.exit_code: ("a trial that was run again was lost",)}
    return Part("rerun", good, problems.get(code, ("what was run again left other files",)))
