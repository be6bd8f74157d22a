"""Judge one bundle in a process with limits, the only one that unpacks, parses and analyses it.

``python3 -m qjump_mn.cli.bundle.judge BUNDLE FOLDER BYTES SECONDS [ASSIGNMENT]`` unpacks the bundle
into the empty FOLDER, and prints its findings as one line of JSON. It may use BYTES of memory and
SECONDS of processor time, and so may the analysis that it starts. Nothing in the bundle, a
stranger's file, is executed.
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
from qjump_mn.cli.bundle import archive, assignment, receipts
from qjump_mn.errors import BEGINS, InvalidRunError, LostError, MachineError, UsageError, last_words
from qjump_mn.install import provenance
from qjump_mn.results import command_directory, contents, formatting, manifest, outcome
from qjump_mn.results.manifest import AnyManifest, CommandManifest, Manifest
from qjump_mn.results.outcome import Outcome

MAX_PROBLEMS = 20
"""The most problems of a part that are printed."""
MAX_OPEN_FILES = 256
FOLDER_LINES = ("<title>", "qjump-mn report ")
"""Beginnings of report lines with the name of the run's folder, which a bundle does not have."""

Options = Callable[[Sequence[str]], Mapping[str, Any]]
"""Parses a run's command line."""


class Part(msgspec.Struct, frozen=True):
    """One part of the check; ``good`` is printed if there are no problems."""

    name: str
    good: str
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return the lines to print."""
        lines = [
            *self.notes,
            *(f"{self.name}: {problem}" for problem in self.problems[:MAX_PROBLEMS]),
        ]
        if len(self.problems) > MAX_PROBLEMS:
            lines.append(f"{self.name}: and {len(self.problems) - MAX_PROBLEMS} more")
        return lines if self.problems or not self.good else [*lines, f"{self.name}: {self.good}"]


class Findings(msgspec.Struct, frozen=True):
    """The judge's findings; ``error`` is the sentence of an error that ended the judging."""

    code: int
    error: str = ""
    about: str = ""
    parts: tuple[Part, ...] = ()
    is_done: bool = False
    """Whether there is a finished trial, which could be repeated."""
    student: str = ""
    """The name of ``run --student``, if it was given."""
    times: str = ""
    """When the run began and how long its trials took, which no other run has."""


def judge(path: Path, run: Path, options_of: Options, assigned: Path | None = None) -> Findings:
    """Unpack the bundle ``path`` into the empty folder ``run``, and judge it.

    The files must be unchanged, the plan the ``assigned`` one, and the verdicts those of the raw
    files. The code of the findings is 0 without problems, 4 for a run that cannot be believed, and
    else 1.

    Raises :class:`archive.ChangedError` for an edited bundle, another :class:`UsageError` for a
    file that is not a bundle and an assignment that makes no plan, :class:`InvalidRunError` for a
    run that exceeds the limits, :class:`MachineError` if the disk is full, and :class:`LostError`
    if the analysis ended for another reason.
    """
    course = assignment.read(assigned) if assigned else None
    archive.unpack(path, run)
    facts = _manifest(path, run)
    if isinstance(facts, CommandManifest):
        if course is not None:
            raise UsageError(
                f"{path} is the run of a command, and an assignment is an experiment's: check it "
                "without --assignment"
            )
        return _of_command(run, facts)
    parts = [_files_part(run, facts)]
    if course is not None:
        good, problems = (
            "as assigned",
            assignment.differences(course, facts, options_of(facts.argv)),
        )
    else:
        good, problems = assignment.compared_here(facts)
    parts.append(Part("plan", good, tuple(problems)))
    if facts.backend == "guest":
        parts.append(Part("jobs", "those of the plan", tuple(receipts.problems(run, facts))))
    judged, judged_parts = _judge_again(path, run, facts)
    parts += judged_parts
    invalid = [row for row in judged.verdicts if row.verdict == "INVALID"]
    if invalid:
        # Without its gate no verdict can be believed, even if the files are unchanged.
        parts.append(Part("the run cannot be believed", "", (invalid[0].note,)))
    code = max(1 if part.problems else 0 for part in parts)
    if invalid or not judged.believable:
        code = InvalidRunError.exit_code
    is_done = any(record.status == "done" for record in facts.trials.values())
    return Findings(
        code=code,
        about=_about(facts),
        parts=tuple(parts),
        is_done=is_done,
        student=options_of(facts.argv).get("student", ""),
        times=_times(facts),
    )


def _times(facts: AnyManifest) -> str:
    walls = (f"{name} {record.wall_s}" for name, record in sorted(facts.trials.items()))
    return "; ".join([facts.started_utc, *walls])


def _of_command(run: Path, facts: CommandManifest) -> Findings:
    """Check an unpacked run of a command. Its output is not judged: it has no claims."""
    done = {name for name, record in facts.trials.items() if record.status == "done"}
    missing = []
    for trial in facts.command.trials():
        if trial.name not in done:
            record = facts.trials.get(trial.name)
            reason = f"{record.status}: {record.message}" if record else "not run"
            missing.append(f"{trial.name} is {reason}")
    parts = (
        _files_part(run, facts),
        Part("jobs", "those of the command", tuple(receipts.problems(run, facts))),
        Part("seeds", f"all {len(facts.command.seeds)} are done", tuple(missing)),
    )
    code = max(1 if part.problems else 0 for part in parts)
    return Findings(code=code, about=_about(facts), parts=parts, is_done=bool(done))


def _manifest(path: Path, run: Path) -> AnyManifest:
    """Read the manifest of the bundle ``path``, unpacked into ``run``; errors name the bundle."""
    try:
        return manifest.read_any(run)
    except UsageError as error:
        raise UsageError(str(error).replace(str(run), str(path))) from None


def _about(facts: AnyManifest) -> str:
    version = facts.versions.get("qjump-mn", "unknown")
    if isinstance(facts, CommandManifest):
        run = f"a command, {formatting.seeds(facts.command.seeds)}"
    else:
        shown = facts.plan.shown
        run = f"{shown.experiment}, preset {shown.preset}, {formatting.seeds(facts.plan.run.seeds)}"
    return (
        f"{run}; run on {facts.started_utc} by qjump-mn {version} on machine "
        f"{facts.machine.get('image', 'none')[:12]}, backend {facts.backend}: "
        f"{shlex.join(facts.argv)}"
    )


def _files_part(run: Path, facts: AnyManifest) -> Part:
    problems = [*contents.discrepancies(run, facts), *contents.unmarked(run, facts)]
    if isinstance(facts, CommandManifest):
        problems = command_directory.problems(run, facts) + problems
    elif facts.plan.hash != facts.plan_sha256:
        problems.insert(0, "the plan is not the one that was run")
    return Part("files", f"all {len(facts.files)} are those of the manifest", tuple(problems))


def _report_lines(run: Path) -> dict[str, list[str]]:
    """Return the lines of the report and of the figures' tables, by file, without pictures."""
    lines_of = {}
    for name in (
        "report.md",
        "report.html",
        *(f"fig/{file.name}" for file in (run / "fig").glob("*.csv")),
    ):
        if (run / name).is_file():
            text = (run / name).read_text(errors="replace")
            text = re.sub(r"data:image/[a-z+]+;base64,[A-Za-z0-9+/=]*", "", text)
            lines = text.splitlines()
            lines_of[name] = [line for line in lines if not line.startswith(FOLDER_LINES)]
    return lines_of


def _report_part(theirs: dict[str, list[str]], ours: dict[str, list[str]], facts: Manifest) -> Part:
    """Compare the bundle's report and tables of figures with new ones from its raw files."""
    here = provenance.git()
    if facts.git != here:
        other = "another version of qjump-mn wrote it"
        reason = other if here.commit else "this copy of qjump-mn has no git to tell its version"
        return Part("report", f"not compared, as {reason}: read yours")
    problems = []
    for name in sorted(theirs.keys() | ours.keys()):
        pairs = itertools.zip_longest(theirs.get(name, ()), ours.get(name, ()), fillvalue="")
        different = next(
            (number for number, (their, our) in enumerate(pairs, 1) if their != our), None
        )
        if different is not None:
            problems.append(f"{name} is not what the raw files give, from line {different} on")
    return Part("report", "written again, it is the bundle's, apart from pictures", tuple(problems))


def _judge_again(path: Path, run: Path, facts: Manifest) -> tuple[Outcome, list[Part]]:
    """Judge the run from its raw files, and compare the results with those in the bundle."""
    try:
        claimed: Outcome | None = outcome.read(run)
    except UsageError:
        claimed = None
    report = _report_lines(run)
    _analyse(path, run)
    judged = outcome.read(run)
    verdicts = {row.claim: row.verdict for row in (claimed.verdicts if claimed else ())}
    problems = [] if claimed else ["the bundle has no verdicts that can be read"]
    for row in judged.verdicts if claimed else ():
        if verdicts.get(row.claim) != row.verdict:
            theirs = verdicts.get(row.claim, "nothing")
            problems.append(f"{row.claim} is {row.verdict}, the bundle says {theirs}")
    if claimed and claimed.arms != judged.arms:
        problems.append("the measures of the bundle are not those of its raw files")
    rows = [
        f"  {row.verdict}  {formatting.value(row)}  {row.statement} ({row.claim})"
        for row in judged.verdicts
    ]
    good = "judged again from the raw files, they are the bundle's"
    failed = [f"{check.name}: {check.text}" for check in judged.checks if check.status == "fail"]
    return judged, [
        Part("verdicts", good, tuple(problems), tuple(rows)),
        _report_part(report, _report_lines(run), facts),
        Part("fidelity", "", tuple(failed)),
    ]


def _analyse(path: Path, run: Path) -> None:
    """Judge the run in another process, which inherits this one's limits."""
    (run / outcome.NAME).unlink(missing_ok=True)
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with judging(run, **silent) as process:
        _, errors = process.communicate()
    # An analysis that dies after its verdicts leaves the bundle's own report in place.
    if (run / outcome.NAME).is_file() and outcome.read(run).exit_code == process.returncode:
        return
    last = errors.decode(errors="replace").strip().splitlines()[-1:] or [
        f"exit {process.returncode}"
    ]
    reason = last[0].removeprefix(BEGINS).replace(str(run), str(path))
    if process.returncode == -signal.SIGXCPU:
        raise out_of_time(path)
    if "MemoryError" in reason:
        raise out_of_memory(path)
    if process.returncode < 0:
        reason = f"its analysis was ended by {signal.Signals(-process.returncode).name}"
    # MachineError: a full disk.
    kind = MachineError if process.returncode == MachineError.exit_code else LostError
    raise kind(f"{path}: the run cannot be judged: {reason}")


def out_of_time(path: Path) -> InvalidRunError:
    """Return the error of a run that exceeds the limit of processor time."""
    seconds = resource.getrlimit(resource.RLIMIT_CPU)[0]
    return InvalidRunError(f"{path}: the run cannot be judged within {seconds} s of processor time")


def out_of_memory(path: Path) -> InvalidRunError:
    """Return the error of a run that exceeds the limit of memory."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return InvalidRunError(f"{path}: the run cannot be judged within {limit >> 20} MiB of memory")


def _limit(memory_bytes: int, seconds: int) -> None:
    """Limit the memory, processor time and files of this process and of those that it starts."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))  # SIGXCPU first, SIGKILL then
    resource.setrlimit(resource.RLIMIT_FSIZE, (archive.MAX_BYTES, archive.MAX_BYTES))
    max_open = min(MAX_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (max_open, max_open))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _refusal(path: Path, error: Exception) -> Findings:
    if isinstance(error, MemoryError | RecursionError):
        error = out_of_memory(path)
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        error = InvalidRunError(f"{path}: judging it would write a file of more than 2 GiB")
    sentence, code = last_words(error)
    return Findings(code=code, error=sentence)


def main(path: str, folder: str, memory_bytes: str, seconds: str, *assigned: str) -> None:
    """Judge the bundle ``path``, and print the findings."""
    _limit(int(memory_bytes), int(seconds))
    from qjump_mn.cli.run_command import options_of
    from qjump_mn.programs import user_programs

    user_programs.forbid()
    try:
        findings = judge(Path(path), Path(folder), options_of, *map(Path, assigned))
    except Exception as error:
        findings = _refusal(Path(path), error)
    sys.stdout.buffer.write(msgspec.json.encode(findings) + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
