"""The judge of one bundle: the process, with limits, that alone unpacks, parses and analyses it.

``python3 -m qjump_mn.cli.bundle.judge BUNDLE FOLDER BYTES SECONDS [ASSIGNMENT]`` unpacks the bundle into the
empty FOLDER, and prints what it finds as JSON, on one line. It takes BYTES of memory and SECONDS of a
processor at most, and so does the analysis that it starts. It is a stranger's file: nothing in it is
executed.
"""

from __future__ import annotations

import errno
import itertools
import re
import resource
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from qjump_mn.analysis.judging import judging
from qjump_mn.cli.bundle import archive, assignment
from qjump_mn.errors import BEGINS, InvalidRunError, LostError, MachineError, UsageError, last_words
from qjump_mn.install import provenance
from qjump_mn.results import contents, formatting, manifest, outcome
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import Outcome

MOST_SHOWN = 20
MOST_OPEN = 256
"""Files that are open at a time."""
WITH_FOLDER = ("<title>", "qjump-mn report ")
"""Lines of a report that begin so have the name of the run's folder, which a bundle has not."""

Options = Callable[[Sequence[str]], Mapping[str, Any]]
"""Parses a run's command line."""


class Part(msgspec.Struct, frozen=True):
    """One thing that was looked at: ``good`` is what is said where there are no problems."""

    name: str
    good: str
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """What is printed of it."""
        lines = [*self.notes, *(f"{self.name}: {problem}" for problem in self.problems[:MOST_SHOWN])]
        if len(self.problems) > MOST_SHOWN:
            lines.append(f"{self.name}: and {len(self.problems) - MOST_SHOWN} more")
        return lines if self.problems or not self.good else [*lines, f"{self.name}: {self.good}"]


class Findings(msgspec.Struct, frozen=True):
    """What the judge says of a bundle: ``error`` is the sentence where it could not be judged."""

    code: int
    error: str = ""
    about: str = ""
    parts: tuple[Part, ...] = ()
    is_done: bool = False
    """Whether a trial is done, which could be run again."""


def judge(path: Path, run: Path, options_of: Options, assigned: Path | None = None) -> Findings:
    """Unpack the bundle ``path`` into the empty folder ``run``, and say whether it is as it was made, of the
    plan that was ``assigned``, and says what its raw files say.

    The code is 0 where nothing was found, 4 for a run that cannot be believed, and 1 for anything else.
    Raises :class:`archive.ChangedError` for a bundle that was edited, other :class:`UsageError` for what is
    not a bundle and for an assignment that makes no plan, :class:`InvalidRunError` for one that exceeds the
    limits, :class:`LostError` where the analysis ended otherwise, and :class:`MachineError` where the disk is
    full.
    """
    asked = assignment.read(assigned) if assigned else None
    archive.opened(path, run)
    told = _manifest(path, run)
    parts = [_untouched(run, told)]
    if asked is not None:
        good, problems = "as assigned", assignment.differences(asked, told, options_of(told.argv))
    else:
        good, problems = assignment.compared_here(told)
    parts.append(Part("plan", good, tuple(problems)))
    judged, more = _judged_alike(path, run, told)
    parts += more
    invalid = [row for row in judged.verdicts if row.verdict == "INVALID"]
    if invalid:
        # A gate that does not hold leaves no verdict that may be believed, though the files are what they
        # were.
        parts.append(Part("the run cannot be believed", "", (invalid[0].note,)))
    code = max(1 if part.problems else 0 for part in parts)
    if invalid or not judged.believable:
        code = InvalidRunError.exit_code
    is_done = any(record.status == "done" for record in told.trials.values())
    return Findings(code=code, about=_about(told), parts=tuple(parts), is_done=is_done)


def _manifest(path: Path, run: Path) -> Manifest:
    """That of the bundle ``path``, which was opened into ``run``; nobody knows that folder."""
    try:
        told = manifest.read(run)
    except UsageError as error:
        raise UsageError(str(error).replace(str(run), str(path))) from None
    plan = told.plan
    arms = (plan.run.varied.get(one.what, plan.run.arms) for one in plan.run.perturbations)
    count = len(plan.run.seeds) * len(plan.run.arms) + sum(map(len, arms))
    if count > archive.MOST_FILES:
        raise UsageError(
            f"{path}: its plan has {count} trials, and a bundle has {archive.MOST_FILES} files at most"
        )
    return told


def _about(told: Manifest) -> str:
    version = told.versions.get("qjump-mn", "unknown")
    return (
        f"{told.plan.shown.experiment}, preset {told.plan.shown.preset}, "
        f"{formatting.seeds(told.plan.run.seeds)}; "
        f"run on {told.started_utc} by qjump-mn {version} on machine "
        f"{told.machine.get('image', 'none')[:12]}, backend {told.backend}: {shlex.join(told.argv)}"
    )


def _untouched(run: Path, told: Manifest) -> Part:
    problems = [*contents.discrepancies(run, told), *contents.unmarked(run, told)]
    if told.plan.hash != told.plan_sha256:
        problems.insert(0, "the plan is not the one that was run")
    return Part("files", f"all {len(told.files)} are those of the manifest", tuple(problems))


def _written(run: Path) -> dict[str, list[str]]:
    """The lines of what was written from the raw files for readers, pictures apart."""
    found = {}
    for name in ("report.md", "report.html", *(f"fig/{file.name}" for file in (run / "fig").glob("*.csv"))):
        if (run / name).is_file():
            text = (run / name).read_text(errors="replace")
            text = re.sub(r"data:image/[a-z+]+;base64,[A-Za-z0-9+/=]*", "", text)
            lines = text.splitlines()
            found[name] = [line for line in lines if not line.startswith(WITH_FOLDER)]
    return found


def _written_alike(theirs: dict[str, list[str]], ours: dict[str, list[str]], told: Manifest) -> Part:
    """Compare the report and the tables of figures with those that are written anew."""
    if told.git != provenance.git():
        return Part("report", "not compared, for another version of qjump-mn wrote it: read yours")
    problems = []
    for name in sorted(theirs.keys() | ours.keys()):
        pairs = itertools.zip_longest(theirs.get(name, ()), ours.get(name, ()), fillvalue="")
        other = next((number for number, (one, two) in enumerate(pairs, 1) if one != two), None)
        if other is not None:
            problems.append(f"{name} is not what the raw files give, from line {other} on")
    return Part("report", "written anew, it is the bundle's, pictures apart", tuple(problems))


def _judged_alike(path: Path, run: Path, told: Manifest) -> tuple[Outcome, list[Part]]:
    """Judge the run from its raw files, and compare with what the bundle says."""
    try:
        said: Outcome | None = outcome.read(run)
    except UsageError:
        said = None
    report = _written(run)
    _analyse(path, run)
    judged = outcome.read(run)
    table = {row.claim: row.verdict for row in (said.verdicts if said else ())}
    problems = [] if said else ["the bundle has no verdicts that can be read"]
    for row in judged.verdicts if said else ():
        if table.get(row.claim) != row.verdict:
            theirs = table.get(row.claim, "nothing")
            problems.append(f"{row.claim} is {row.verdict}, the bundle says {theirs}")
    if said and said.arms != judged.arms:
        problems.append("the measures of the bundle are not those of its raw files")
    rows = [
        f"  {row.verdict}  {formatting.value(row)}  {row.statement} ({row.claim})" for row in judged.verdicts
    ]
    good = "judged again from the raw files, they are the bundle's"
    failed = [f"{check.name}: {check.text}" for check in judged.checks if check.status == "fail"]
    return judged, [
        Part("verdicts", good, tuple(problems), tuple(rows)),
        _written_alike(report, _written(run), told),
        Part("fidelity", "", tuple(failed)),
    ]


def _analyse(path: Path, run: Path) -> None:
    """Judge the run in a process of its own, which has this one's limits."""
    (run / outcome.NAME).unlink(missing_ok=True)
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with judging(run, **silent) as process:
        _, errors = process.communicate()
    # One that dies after its verdicts leaves the bundle's own report in place.
    if (run / outcome.NAME).is_file() and outcome.read(run).exit_code == process.returncode:
        return
    last = errors.decode(errors="replace").strip().splitlines()[-1:] or [f"exit {process.returncode}"]
    reason = last[0].removeprefix(BEGINS).replace(str(run), str(path))
    if process.returncode == -signal.SIGXCPU:
        raise out_of_time(path)
    if "MemoryError" in reason:
        raise out_of_memory(path)
    if process.returncode < 0:
        reason = f"its analysis was ended by {signal.Signals(-process.returncode).name}"
    kind = MachineError if process.returncode == MachineError.exit_code else LostError  # a full disk
    raise kind(f"{path}: the run cannot be judged: {reason}")


def out_of_time(path: Path) -> InvalidRunError:
    """The processor time that judging may take was not enough."""
    seconds = resource.getrlimit(resource.RLIMIT_CPU)[0]
    return InvalidRunError(f"{path}: the run cannot be judged within {seconds} s of processor time")


def out_of_memory(path: Path) -> InvalidRunError:
    """The memory that judging may take was not enough."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return InvalidRunError(f"{path}: the run cannot be judged within {limit >> 20} MiB of memory")


def _limit(memory_bytes: int, seconds: int) -> None:
    """End this process, and each that it starts, where it takes more."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))  # SIGXCPU first, SIGKILL then
    resource.setrlimit(resource.RLIMIT_FSIZE, (archive.MOST_BYTES, archive.MOST_BYTES))
    most_open = min(MOST_OPEN, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_open, most_open))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _refusal(path: Path, error: Exception) -> Findings:
    if isinstance(error, MemoryError | RecursionError):
        error = out_of_memory(path)
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        error = InvalidRunError(f"{path}: judging it would write a file of more than 2 GiB")
    sentence, code = last_words(error)
    return Findings(code=code, error=sentence)


def main(path: str, folder: str, memory_bytes: str, seconds: str, *assigned: str) -> None:
    """Judge, and print the findings."""
    _limit(int(memory_bytes), int(seconds))
    from qjump_mn.cli.commands import options_of
    from qjump_mn.programs import user_programs

    user_programs.forbid()
    try:
        findings = judge(Path(path), Path(folder), options_of, *map(Path, assigned))
    except Exception as error:
        findings = _refusal(Path(path), error)
    sys.stdout.buffer.write(msgspec.json.encode(findings) + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
